"""Multi-view clustering of handwritten digits: the paper's scaling, our default, and what people use instead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from selfpaced_experiments import paper
from selfpaced_experiments.cells import Answer, Cell
from selfpaced_experiments.results import FitCost, Group, Measure, ResultTable, Row, Score

__all__ = ["cells", "tables"]

PARTS = ("selfpaced.clustering", "selfpaced_experiments.metrics")
SCALINGS = {"unit-row": "paper", "zscore": "default"}
_SINGLE = ("FOU", "FAC", "KAR", "MOR", "PIX", "ZER")
_RULES = ("SPL-hard", "SPL-mixture", "MSPL", "SPL-IR-huber", "SPL-IR-L1-L2", "SPL-IR-cauchy", "SPL-IR-welsch")
_EXTRA: dict[str, tuple[Group, str]] = {
    "SPL-IR-welsch, one start": ("reference", "n_init=1: the paper does not speak of restarts"),
    'embedding="spectral"': ("ours", "SelfPacedMultiViewKMeans on per-view and joint spectral embeddings"),
    "KMeans(n_init=10)": ("peer", "scikit-learn, views side by side"),
    "SpectralClustering": ("peer", "scikit-learn, views side by side, nearest neighbours"),
}

_NOTES = {"SPL-IR-welsch": "the rule that SelfPacedMultiViewKMeans() uses by default"}


def cells(*, quick: bool, seeds: int | None) -> list[Cell]:
    """The cells of the section, seed by seed."""
    count = seeds or (2 if quick else 20)
    methods = (*_SINGLE, "Con-MC", *_RULES, *_EXTRA)
    return [
        Cell(
            function="selfpaced_experiments.tasks.clustering:run",
            params={"method": method, "scaling": scaling, "seed": seed},
            label=f"{SCALINGS[scaling]} scaling {method} seed {seed}",
            parts=PARTS,
        )
        for seed in range(count)
        for scaling in SCALINGS
        for method in methods
    ]


def tables(answers: Sequence[Answer]) -> list[ResultTable]:
    """One table for each scaling; the paper's figures stand in both, since its scaling is not stated."""
    return [table for scaling in SCALINGS if (table := _table(scaling, answers)).rows]


def _table(scaling: str, answers: Sequence[Answer]) -> ResultTable:
    here = [a for a in answers if a.cell.params["scaling"] == scaling]
    seeds = len({a.cell.params["seed"] for a in here})
    rows = [_row(method, here) for method in (*_SINGLE, "Con-MC", *_RULES, *_EXTRA)]
    described = {
        "unit-row": "every sample has length one in every view, which gives the paper's single-view rows",
        "zscore": "the library's default: columns z-scored, every view divided to total variance one",
    }
    return ResultTable(
        key=f"table3-{SCALINGS[scaling]}",
        title=f"Table 3, {'the paper’s' if scaling == 'unit-row' else 'our default'} scaling: clustering of UCI digits",
        protocol=(
            f"Six views, ten clusters, {seeds} runs; {described[scaling]}. Single views and Con-MC are k-means with "
            "one start, as the paper's figures say; the self-paced rows use the library's restarts, chosen by the "
            "latent objective. Labels are used for measuring only."
        ),
        columns=tuple(Measure(name, True, 3) for name in paper.METRICS),
        rows=tuple(row for row in rows if row is not None),
    )


def _row(method: str, answers: Sequence[Answer]) -> Row | None:
    mine = sorted((a for a in answers if a.cell.params["method"] == method), key=lambda a: a.cell.params["seed"])
    if not mine:
        return None
    group, note = _EXTRA.get(method, ("paper", _NOTES.get(method, "")))
    return Row(
        method=method,
        group=group,
        published=paper.CLUSTERING.get(method, {}),
        scores={
            name: Score.of({a.cell.params["seed"]: [a.value["scores"][name]] for a in mine}) for name in paper.METRICS
        },
        fit=FitCost(float(np.mean([a.value["seconds"] for a in mine])), len(mine)),
        note=note,
    )
