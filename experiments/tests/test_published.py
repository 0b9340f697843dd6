"""The results in docs/results are those of the present code, as far as a few cheap cells show it."""

import importlib
import json
from pathlib import Path

import pytest

from selfpaced_experiments import classification, factorization

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "results.json"


def computed(cell):
    module, _, name = cell.function.partition(":")
    return getattr(importlib.import_module(module), name)(data_dir=None, **cell.params)


@pytest.fixture(scope="module")
def published():
    """The stored figure of seed 0, by table, method and column."""
    tables = json.loads(RESULTS.read_text(encoding="utf-8"))["tables"]

    def figure(table, method, column):
        rows = next(one["rows"] for one in tables if one["key"] == table)
        score = next(row["scores"][column] for row in rows if row["method"] == method)
        return score["by_seed"][score["seeds"].index(0)]

    return figure


@pytest.mark.parametrize(
    ("method", "rate"),
    [("SPL-IR-welsch", 0.0), ("SelfPacedLogisticRegression()", 0.0), ("SelfPacedLogisticRegression()", 0.2)],
)
def test_accuracy_is_what_was_published(method, rate, published):
    asked = {"method": method, "rate": rate}
    cells = classification.cells(quick=False, seeds=1, sets=["Breast"])
    (cell,) = [one for one in cells if asked.items() <= one.params.items()]
    stored = published(f"table5-{100 * rate:.0f}", method, "Breast")
    folds = computed(cell)["accuracy"]
    assert sum(folds) / len(folds) == pytest.approx(stored, abs=0.2), "print docs/results again"


@pytest.mark.parametrize("method", ["PRMF", "SelfPacedMF()"])
def test_errors_of_matrices_are_what_was_published(method, published):
    cells = factorization.cells(quick=False, seeds=1)
    (cell,) = [one for one in cells if one.params["method"] == method and not one.params["bare"]]
    for name, error in computed(cell)["errors"].items():
        assert error == pytest.approx(published("table2", method, name), rel=0.01), "print docs/results again"
