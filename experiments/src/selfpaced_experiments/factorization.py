"""Robust matrix factorization: the paper's table and figures 2b and 3, with the honest rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from selfpaced_experiments import paper
from selfpaced_experiments.cells import Answer, Cell
from selfpaced_experiments.results import FitCost, Group, Measure, ResultTable, Row, Score
from selfpaced_experiments.tasks.factorization import FIXED, LAMS, STAGES

__all__ = ["PARTS", "cells", "figure2_cells", "figure3_cells", "half_quadratic_series", "tables", "tendency_series"]

PARTS = ("selfpaced.factorization",)
_PACKAGES = ("numpy", "scikit-learn", "numba")
_EXTRA: dict[str, tuple[Group, str]] = {
    "SelfPacedMF()": ("ours", "every setting at its default: the rank is found, not given"),
    "oracle": ("reference", "least squares on the entries known to be clean"),
    "PRMF, fixed ridge": ("reference", "without the falling ridge of the library's PRMF"),
    "no pacing": ("reference", "PRMF with the same rescue and polish, without any path"),
    "half-quadratic, warm": ("reference", f"Welsch at the fixed lam = {FIXED:g} from the warm start"),
    "half-quadratic, cold": ("reference", f"Welsch at the fixed lam = {FIXED:g} from random factors"),
}
_METHODS = ("PRMF", *paper.RULES.values(), *_EXTRA)
_BARE = ("PRMF", *paper.RULES.values(), "oracle", "half-quadratic, warm", "half-quadratic, cold")
_CURVES = ("PRMF", "mixture", "huber", "l1l2", "cauchy", "welsch")
_TASK = "selfpaced_experiments.tasks.factorization"

Series = dict[str, dict[str, tuple[float, ...]]]


def cells(*, quick: bool, seeds: int | None) -> list[Cell]:
    """The cells of both tables, realization by realization."""
    made = []
    for seed in range(seeds or (3 if quick else 50)):
        for bare, methods in ((False, _METHODS), (True, _BARE)):
            for method in methods:
                params = {"method": method, "bare": bare, "seed": seed}
                label = f"{method}{', path alone' * bare} seed {seed}"
                made.append(Cell(f"{_TASK}:run", params, label, PARTS, _PACKAGES))
    return made


def figure2_cells(*, quick: bool, seeds: int | None) -> list[Cell]:
    """The cells of figure 2b, on realizations that the table does not use."""
    return [
        Cell(f"{_TASK}:half_quadratic", {"seed": seed}, f"figure 2b seed {seed}", PARTS, _PACKAGES)
        for seed in _figure_seeds(quick, seeds)
    ]


def figure3_cells(*, quick: bool, seeds: int | None) -> list[Cell]:
    """The cells of figure 3, on the same realizations."""
    return [
        Cell(f"{_TASK}:tendency", {"rule": rule, "seed": seed}, f"figure 3 {rule} seed {seed}", PARTS, _PACKAGES)
        for seed in _figure_seeds(quick, seeds)
        for rule in _CURVES
    ]


def _figure_seeds(quick: bool, seeds: int | None) -> range:
    return range(1000, 1000 + (seeds or (2 if quick else 10)))


def tables(answers: Sequence[Answer]) -> list[ResultTable]:
    """The paper's table with our defaults, and again with the path alone."""
    parts = [[a for a in answers if a.cell.params["bare"] == bare] for bare in (False, True)]
    return [_table(bare, part) for bare, part in zip((False, True), parts, strict=True) if part]


def _table(bare: bool, answers: Sequence[Answer]) -> ResultTable:
    seeds = len({a.cell.params["seed"] for a in answers})
    rows = [_row(method, answers) for method in _METHODS]
    settings = (
        "Without rescue of rows and columns and without the final polish: the path alone, which is what the paper has."
        if bare
        else "Rows of the paper: rank 4 given, everything else at the library's default (rescue and polish included)."
    )
    return ResultTable(
        key="table2-path" if bare else "table2",
        title=f"Table 2{', the path alone' * bare}: matrix factorization, error against the true matrix",
        protocol=(
            "The paper's synthetic set (100 x 100, rank 4, 40 % missing, 20 % with uniform noise on [-20, 20], normal "
            f"noise of 0.1 on the rest), mean (std) of {seeds} realizations; the paper gives no spread. {settings}"
        ),
        columns=(Measure("RMSE", False, 4), Measure("MAE", False, 4)),
        rows=tuple(row for row in rows if row is not None),
    )


def _row(method: str, answers: Sequence[Answer]) -> Row | None:
    mine = sorted((a for a in answers if a.cell.params["method"] == method), key=lambda a: a.cell.params["seed"])
    if not mine:
        return None
    group, note = _EXTRA.get(method, ("paper", ""))
    scores = {
        name: Score.of({a.cell.params["seed"]: [a.value["errors"][name]] for a in mine}) for name in ("RMSE", "MAE")
    }
    worst = max(a.value["errors"]["RMSE"] for a in mine)
    return Row(
        method=method,
        group=group,
        published=paper.FACTORIZATION.get(method, {}),
        scores=scores,
        # The first fit of a process compiles the kernels: the median leaves that out.
        fit=FitCost(float(np.median([a.value["seconds"] for a in mine])), len(mine)),
        note=f"{note}{'; ' if note else ''}worst realization {worst:.3f}",
    )


def half_quadratic_series(answers: Sequence[Answer]) -> tuple[Series, str]:
    """The curves of figure 2b and how many realizations they average."""
    names = {
        "half-quadratic, cold start": "random",
        "half-quadratic, warm start": "warm",
        "self-paced path": "path",
    }
    series: Series = {"lam": {"lam": LAMS}}
    for label, key in names.items():
        values = np.array([a.value[key] for a in answers])
        series[label] = {
            "mean": _floats(values.mean(axis=0)),
            "std": _floats(values.std(axis=0)),
            "low": _floats(values.min(axis=0)),
            "high": _floats(values.max(axis=0)),
        }
    return series, f"Mean of {len(answers)} realizations, without rescue and polish."


def tendency_series(answers: Sequence[Answer]) -> tuple[Series, str]:
    """The curves of figure 3, mean over realizations."""
    series: Series = {}
    count = 0
    for rule in _CURVES:
        mine = [a for a in answers if a.cell.params.get("rule") == rule]
        count = len(mine)
        series[rule] = {}
        for name in ("RMSE", "MAE"):
            shortest = min(len(a.value[name]) for a in mine)
            series[rule][name] = _floats(np.mean([a.value[name][:shortest] for a in mine], axis=0))
    note = f"Mean of {count} realizations, {STAGES} stages of mu = 1.05, without rescue and polish."
    return series, note


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
