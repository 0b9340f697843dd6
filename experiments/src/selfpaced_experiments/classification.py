"""Classification under label noise: the paper's protocol, our default, and what people use instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from selfpaced_experiments import paper
from selfpaced_experiments.cells import Answer, Cell
from selfpaced_experiments.results import FitCost, Group, Measure, ResultTable, Row, Score
from selfpaced_experiments.tasks.classification import SETS

__all__ = ["RATES", "cells", "tables"]

RATES = (0.0, 0.1, 0.2, 0.3, 0.4)
OURS = ("selfpaced.linear.logistic", "selfpaced_experiments.tasks.ours")


@dataclass(frozen=True)
class Method:
    """A column of the paper's table or a peer: how it is made and where it is run."""

    group: Group
    rates: tuple[float, ...] = RATES
    ours: bool = False
    packages: tuple[str, ...] = ("numpy", "scikit-learn")
    note: str = ""
    most_seeds: int | None = None


METHODS: dict[str, Method] = {
    "LR": Method("paper", note="liblinear, C = 1"),
    **{label: Method("paper", rates=(0.0, 0.2), ours=True, note='pace="paper"') for name, label in paper.RULES.items()},
    "SelfPacedLogisticRegression()": Method("ours", ours=True, note="every setting at its default"),
    "LR, C by 3-fold": Method("peer", note="five values of C, chosen on the noisy labels"),
    "cleanlab": Method(
        "peer",
        packages=("numpy", "scikit-learn", "cleanlab"),
        note="CleanLearning(LogisticRegression(C=1))",
    ),
    "Random forest": Method("peer", note="100 trees; the first 2 seeds only, for its cost", most_seeds=2),
    "HistGradientBoosting": Method("peer", note="defaults"),
}


def cells(*, quick: bool, seeds: int | None, sets: Sequence[str]) -> list[Cell]:
    """The cells of the section, cheap seeds first so that an early look shows whole rows."""
    made = []
    folds, count = (5 if quick else 10), seeds or (1 if quick else 5)
    for method, spec in METHODS.items():
        for seed in range(min(count, spec.most_seeds or count)):
            for rate in (r for r in spec.rates if not quick or r in (0.0, 0.2)):
                for name in sets:
                    made.append(_make_cell(method, spec, name, rate, seed, folds))
    return sorted(made, key=lambda c: c.params["seed"])


def _make_cell(method: str, spec: Method, name: str, rate: float, seed: int, folds: int) -> Cell:
    return Cell(
        function="selfpaced_experiments.tasks.classification:run",
        params={"dataset": name, "rate": rate, "seed": seed, "folds": folds, "method": method},
        label=f"{name} {rate:.0%} {method} seed {seed}",
        parts=OURS if spec.ours else (),
        packages=spec.packages,
    )


def tables(answers: Sequence[Answer]) -> list[ResultTable]:
    """One table for each noise rate that was run."""
    made = []
    for rate in sorted({answer.cell.params["rate"] for answer in answers}):
        here = [answer for answer in answers if answer.cell.params["rate"] == rate]
        made.append(_table(rate, here))
    return made


def _table(rate: float, answers: Sequence[Answer]) -> ResultTable:
    sets = [name for name in SETS if any(a.cell.params["dataset"] == name for a in answers)]
    rows = [row for method in METHODS if (row := _row(method, rate, sets, answers)) is not None]
    folds = answers[0].cell.params["folds"]
    seeds = len({a.cell.params["seed"] for a in answers})
    noise = "clean labels" if rate == 0 else f"{rate:.0%} of the training labels flipped"
    return ResultTable(
        key=f"table5-{round(100 * rate)}",
        title=f"Table 5, {noise}: classification accuracy in %",
        protocol=(
            f"{folds}-fold cross-validation, {seeds} seed{'s' * (seeds > 1)} of folds and noise, features "
            "z-scored on the training fold, accuracy on clean test labels; the spread is over all folds and "
            "seeds, as the paper's is over folds."
        ),
        columns=tuple(Measure(name, True, 2) for name in sets),
        rows=tuple(rows),
    )


def _row(method: str, rate: float, sets: Sequence[str], answers: Sequence[Answer]) -> Row | None:
    scores, seconds, seeds = {}, [], 0
    for name in sets:
        mine = [a for a in answers if a.cell.params["method"] == method and a.cell.params["dataset"] == name]
        if mine:
            scores[name] = Score.of({a.cell.params["seed"]: a.value["accuracy"] for a in mine})
            seconds += [a.value["seconds"] for a in mine]
            seeds = max(seeds, len(mine))
    if not scores:
        return None
    published = paper.CLASSIFICATION.get(rate, {}).get(method, {})
    return Row(
        method=method,
        group=METHODS[method].group,
        published={name: published[name] for name in sets if name in published},
        scores=scores,
        fit=FitCost(float(np.mean(seconds)), seeds),
        note=METHODS[method].note + _fewer(scores, answers),
    )


def _fewer(scores: dict[str, Score], answers: Sequence[Answer]) -> str:
    """What is said of a row that has fewer seeds than the table."""
    whole = len({a.cell.params["seed"] for a in answers})
    counts = {name: len(score.seeds) for name, score in scores.items() if len(score.seeds) < whole}
    told = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f"; fewer than {whole} seeds: {told}" if told else ""
