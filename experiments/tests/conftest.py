"""Small made-up results that the tests of rendering, claims and documents share."""

from __future__ import annotations

import pytest

from selfpaced_experiments import paper
from selfpaced_experiments.results import (
    Figure,
    FitCost,
    Measure,
    Results,
    ResultTable,
    Row,
    RunRecord,
    Score,
    Statement,
)


def _row(method, group, values, published=None):
    scores = {name: Score.of({0: [value], 1: [value + 0.1]}) for name, value in values.items()}
    return Row(method, group, published or {}, scores, FitCost(0.5, 2), "a note" if group == "ours" else "")


@pytest.fixture
def run():
    return RunRecord(
        "selfpaced reproduce claims --jobs 2",
        False,
        {"table5": 2},
        "2026-01-02",
        60.0,
        2,
        {"numpy": "2"},
        {},
        9,
        3,
    )


@pytest.fixture
def results(run):
    """Two classification tables in which every rule beats LR under noise and none does on clean labels."""
    tables = []
    for rate, shift in ((0.0, -1.0), (0.2, 2.0)):
        printed = paper.CLASSIFICATION[rate]
        rows = [_row("LR", "paper", {"Breast": 97.0 - 20 * rate}, {"Breast": printed["LR"]["Breast"]})]
        for index, label in enumerate(paper.RULES.values()):
            value = {"Breast": 97.0 - 20 * rate + shift + 0.01 * index}
            rows.append(_row(label, "paper", value, {"Breast": printed[label]["Breast"]}))
        rows.append(_row("SelfPacedLogisticRegression()", "ours", {"Breast": 97.0}))
        columns = (Measure("Breast", True, 2),)
        tables.append(ResultTable(f"table5-{round(100 * rate)}", f"At {rate}", "Ten folds.", columns, tuple(rows)))
    theory = (
        Statement("theorem", "welsch", "same model", True, "1e-9"),
        Statement("misprint", "L1-L2", "phi(0) = 0", False, "it is 3"),
    )
    lam = (0.1, 1.0, 3.0)
    series = {
        "lam": {"lam": lam},
        "half-quadratic, cold start": {"mean": (0.9, 0.5, 0.3), "std": (0.1, 0.1, 0.1)},
        "half-quadratic, warm start": {"mean": (0.2, 0.05, 0.06), "std": (0.0, 0.0, 0.0)},
        "self-paced path": {"mean": (0.1, 0.06, 0.07), "std": (0.0, 0.0, 0.0)},
    }
    drawn = (Figure("figure-2b", "Figure 2b", "A caption.", ("figure-2b.png", "figure-2b.svg"), series),)
    return Results(run=run, tables=tuple(tables), theory=theory, figures=drawn, skipped=("table 3: no file",))
