"""The sections ask for what the paper's protocol says, and their figures come from their cells."""

from __future__ import annotations

import numpy as np
import pytest

from selfpaced_experiments import classification, clustering, data, factorization, paper
from selfpaced_experiments.cells import Answer
from selfpaced_experiments.tasks import classification as folds
from selfpaced_experiments.tasks import clustering as partitions
from selfpaced_experiments.theory import STEPS, statements

SETS = ["Breast", "Spambase", "Svmguide1"]


def _params(cells, name):
    return {cell.params[name] for cell in cells}


def test_classification_asks_for_ten_folds_five_seeds_and_every_rate():
    cells = classification.cells(quick=False, seeds=None, sets=SETS)
    assert _params(cells, "folds") == {10}
    assert _params(cells, "seed") == set(range(5))
    assert _params(cells, "rate") == {0.0, 0.1, 0.2, 0.3, 0.4}
    assert _params(cells, "dataset") == set(SETS)
    peers = {"LR, C by 3-fold", "cleanlab", "Random forest", "HistGradientBoosting"}
    assert _params(cells, "method") == {"LR", *paper.RULES.values(), "SelfPacedLogisticRegression()", *peers}
    at_20 = [cell for cell in cells if cell.params["rate"] == 0.2]
    assert _params(at_20, "method") == _params(cells, "method")
    assert all(method in folds.MAKERS or method in folds.LINEAR for method in _params(cells, "method"))


def test_factorization_and_clustering_ask_for_the_paper_s_counts():
    cells = factorization.cells(quick=False, seeds=None)
    assert _params(cells, "seed") == set(range(50))
    extra = {
        "oracle",
        "PRMF, fixed ridge",
        "no pacing",
        "half-quadratic, warm",
        "half-quadratic, cold",
        "SelfPacedMF()",
    }
    assert _params(cells, "method") == {"PRMF", *paper.RULES.values(), *extra}
    cells = clustering.cells(quick=False, seeds=None)
    assert _params(cells, "seed") == set(range(20))
    assert _params(cells, "scaling") == {"unit-row", "zscore"}
    assert _params(cells, "method") >= {*paper.CLUSTERING, "KMeans(n_init=10)", "SpectralClustering"}


@pytest.mark.parametrize("module", [factorization, clustering])
def test_seeds_can_be_asked_for(module):
    assert _params(module.cells(quick=False, seeds=2), "seed") == {0, 1}


def test_tables_average_their_cells():
    cells = [c for c in classification.cells(quick=True, seeds=2, sets=["Breast"]) if c.params["method"] == "LR"]
    answers = [Answer(cell, {"accuracy": [90.0 + cell.params["seed"], 92.0], "seconds": 0.5}) for cell in cells]
    clean, noisy = classification.tables(answers)
    assert (clean.key, noisy.key) == ("table5-0", "table5-20")
    row = noisy.row("LR")
    assert row.scores["Breast"].mean == 91.25
    assert row.scores["Breast"].by_seed == (91.0, 91.5)
    assert row.published["Breast"].mean == 92.08
    assert row.fit.seconds == 0.5


def test_the_paper_s_plain_regression_on_breast_is_reproduced():
    found = folds.run(dataset="Breast", rate=0.0, seed=0, folds=10, method="LR", data_dir=None)
    assert len(found["accuracy"]) == 10
    assert abs(np.mean(found["accuracy"]) - 97.36) < 2.22
    noisy = folds.run(dataset="Breast", rate=0.2, seed=0, folds=10, method="LR", data_dir=None)
    assert np.mean(noisy["accuracy"]) < np.mean(found["accuracy"]) - 1


def test_noise_and_folds_are_seeded_apart(monkeypatch):
    seeds = []

    def recorded(y, rate, *, random_state):
        seeds.append(random_state)
        return np.asarray(y), np.zeros(len(y), dtype=bool)

    monkeypatch.setattr(folds, "flip_symmetric", recorded)
    folds.run(dataset="Breast", rate=0.2, seed=3, folds=5, method="LR", data_dir=None)
    assert len(set(seeds)) == 5
    assert 3 not in seeds


def test_a_single_view_comes_out_as_the_paper_says():
    try:
        data.load_mfeat(download=False)
    except data.DataNotFoundError as error:
        pytest.skip(f"data not at hand: {error}")
    runs = [partitions.run(method="MOR", scaling="unit-row", seed=s, data_dir=None)["scores"] for s in range(3)]
    for name, printed in paper.CLUSTERING["MOR"].items():
        assert abs(np.mean([scores[name] for scores in runs]) - printed.mean) < 0.02


def test_theory_finds_the_misprints_and_nothing_else():
    told = []
    found = statements(told.append)
    assert len(told) == STEPS
    assert all(s.holds for s in found if s.part in ("equivalence", "theorem"))
    assert {s.subject for s in found if s.part == "conditions" and not s.holds} <= {"hard", "logarithmic"}
    misprints = [s for s in found if s.part == "misprint"]
    assert len(misprints) == 5
    assert not any(s.holds for s in misprints)
    diversity = next(s for s in misprints if s.subject.startswith("Diversity"))
    assert diversity.value.endswith("in 0")
