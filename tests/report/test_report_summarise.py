"""What the summary says about each kind of fitted object."""

import math
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from selfpaced import (
    SelfPacedClassifier,
    SelfPacedLinearRegression,
    SelfPacedLogisticRegression,
    SelfPacedMF,
    SelfPacedRegressor,
    SuspectFilter,
)
from selfpaced.assessment import Assessment, Places, Values
from selfpaced.report import summarise
from selfpaced.report.sections import grid_of


def column(summary, key):
    return next(list(c.values) for c in summary.suspects.columns if c.key == key)


def fact(summary, label):
    return next(f for f in summary.facts if f.label == label)


def test_classification(classified):
    case = classified
    summary = summarise(case.model, case.X, case.y)
    low = int((case.model.sample_weight_ < 0.5).sum())
    assert summary.kind == "classification"
    assert f"{low} (" in summary.sentence
    assert "easy" not in summary.sentence
    assert case.model.termination_ in summary.termination
    assert re.search(r"The mean weight of the rows is 0\.\d\d\.", summary.termination)
    assert fact(summary, "rows").value == "400"
    assert fact(summary, "estimated label-error rate").note.count("%") == 2
    assert re.search(r"Held-out accuracy on the given labels: \d\d\.\d %", summary.sentence)
    assert "x" in column(summary, "against")[0]
    assert len(summary.features.rows) == int((case.model.assessment_.levels() > 0).sum())
    likely, look = (int((case.model.assessment_.levels() == level).sum()) for level in (2, 1))
    assert f"{likely} likely errors" in summary.conclusion
    assert f"{look} row" in summary.conclusion


def test_the_flipped_labels_come_first(classified):
    case = classified
    found = column(summarise(case.model, case.X, case.y), "row")
    count = int(case.wrong.sum())
    assert case.wrong[found[:count]].mean() > 0.85


def test_suspects_are_counted_by_given_and_expected_label(classified):
    case = classified
    pairs = summarise(case.model, case.X, case.y).pairs
    assessment = case.model.assessment_
    found = assessment.levels() > 0
    given, expected = assessment.diagnosis.given[found], assessment.diagnosis.expected[found]
    assert (pairs.given, pairs.expected) == (("no", "yes"), ("no", "yes"))
    assert pairs.counts == ((0, int(np.sum(given == "no"))), (int(np.sum(given == "yes")), 0))
    assert np.all(given != expected)
    assert sum(pairs.rows) == 400


def test_columns_that_contribute_to_a_suspect_are_named(classified):
    """In Python as on the command line; a pipeline is asked about the columns it was given."""
    pd = pytest.importorskip("pandas")
    case = classified
    X = pd.DataFrame(case.X, columns=list("abcdef"))
    model = make_pipeline(StandardScaler(), SelfPacedLogisticRegression()).fit(X, case.y)
    named = column(summarise(model, X, case.y), "against")
    weight = np.abs(model[-1].coef_[0])
    strongest = set(np.array(list("abcdef"))[np.argsort(-weight)[:3]])
    assert np.mean([text.split(", ")[0] in strongest for text in named]) > 0.7
    assert "against" not in [c.key for c in summarise(model).suspects.columns]


def test_what_suspects_have_in_common_is_named(classified):
    pd = pytest.importorskip("pandas")
    case = classified
    found = case.model.assessment_.levels() > 0
    cells = pd.DataFrame({"clerk": np.where(found & (np.arange(400) % 10 > 0), "Kim", "Lee"), "x": case.X[:, 0]})
    patterns = summarise(case.model, case.X, case.y, cells=cells).patterns
    assert patterns[0].where == "clerk = Kim"
    assert patterns[0].suspects == patterns[0].rows
    assert patterns[0].lift > 4
    table = {"row": np.flatnonzero(found), "given": case.y[found], "expected": case.y[found]}
    table["target"] = ["clerk"] * int(found.sum())
    assert summarise(case.model, case.X, case.y, suspects=table, cells=cells).patterns == ()


def test_without_likely_errors_the_page_says_why_nothing_is_proven(classified):
    table = {"row": [3, 5], "level": ["worth a look"] * 2, "given": ["no", "yes"], "expected": ["yes", "no"]}
    summary = summarise(classified.model, classified.X, classified.y, suspects=table)
    assert summary.conclusion.startswith("No likely errors among 400 rows: no row is more probably wrong than right.")
    assert "2 rows worth a look" in summary.conclusion
    assert len(summary.suspects) == 2


def test_columns_that_are_not_used_are_named(classified):
    unused = [("order_id", "identifier"), ("notes2", "empty")]
    summary = summarise(classified.model, not_used=unused)
    assert summary.not_used == "Not used: order_id (identifier), notes2 (empty)."
    assert summarise(classified.model).not_used == ""


def test_a_chosen_candidate_with_a_lower_score_is_explained(classified):
    from dataclasses import replace

    class Other(type(classified.model)):
        pass

    model = Other()
    model.__dict__ = dict(classified.model.__dict__)
    best = max(range(len(model.path_)), key=lambda place: model.path_[place].score)
    worst = min(range(len(model.path_)), key=lambda place: model.path_[place].score)
    for chosen in (best, worst):
        model.path_ = tuple(replace(one, chosen=place == chosen) for place, one in enumerate(model.path_))
        note = summarise(model).score_note
        assert (note == "") == (chosen == best)
        assert chosen == best or "higher" in note


def test_soft_labels_are_not_called_weights(classified):
    case = classified
    model = SelfPacedClassifier(DecisionTreeClassifier(max_depth=4, random_state=0), random_state=0)
    sentence = summarise(model.fit(case.X, case.y)).sentence
    assert "soft labels" in sentence
    assert "easy" not in sentence


def test_without_the_data_there_are_still_suspects(classified):
    summary = summarise(classified.model)
    assert sorted(column(summary, "row")) == np.flatnonzero(classified.model.assessment_.levels()).tolist()
    wrong = column(summary, "noise_probability")
    assert wrong == sorted(wrong, reverse=True)
    assert summary.features is None


def test_held_out_accuracy_is_near_that_of_cross_validation(classified):
    from sklearn.model_selection import cross_val_score

    case = classified
    said = re.search(r"given labels: ([\d.]+) %", summarise(case.model, case.X, case.y).sentence)
    expected = cross_val_score(LogisticRegression(), case.X, case.y, cv=5).mean()
    assert float(said[1]) == pytest.approx(100 * expected, abs=3)


def test_the_path_ends_in_the_plain_model(classified):
    path = summarise(classified.model).path
    assert math.isinf(path[-1].lam)
    assert len(path) == len(classified.model.path_)
    assert sum(step.chosen for step in path) == 1
    weights = [step.mean_weight for step in path if math.isfinite(step.lam)]
    assert weights == sorted(weights)


def test_a_plain_outcome_is_said_plainly(classified):
    clean = np.where(classified.X @ np.arange(6.0) > 0, "yes", "no")
    model = SelfPacedLogisticRegression().fit(classified.X, clean)
    assert math.isinf(model.lam_)
    summary = summarise(model)
    assert "plain model is used" in summary.termination
    assert "plain model" not in summary.sentence  # said once
    assert fact(summary, "pace").value == "plain"


def test_regression(regressed):
    case = regressed
    summary = summarise(case.model, case.X, case.y)
    assert summary.kind == "regression"
    assert set(column(summary, "row")[:40]) == set(np.flatnonzero(case.wrong))
    assert re.search(r"Half of the rows are within [\d.]+ of their expected value", summary.sentence)


def test_a_model_on_a_log_scale_is_shown_in_the_unit_of_the_target():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.exp(7 + X[:, 0] + 0.1 * rng.normal(size=300))
    y[:9] *= 50
    model = TransformedTargetRegressor(SelfPacedLinearRegression(), func=np.log, inverse_func=np.exp).fit(X, y)
    summary = summarise(model, X, y)
    assert summary.scatter_scale == "symlog"
    given = sorted(given for given, _, suspect in summary.scatter if suspect)
    np.testing.assert_allclose(given, np.sort(y[:9]), rtol=1e-3)
    first = column(summary, "row")[:9]
    assert set(first) == set(range(9))
    np.testing.assert_allclose(column(summary, "given")[:9], y[first], rtol=1e-4)
    expected = np.exp(7 + X[first, 0])
    np.testing.assert_allclose(column(summary, "expected")[:9], expected, rtol=0.3)
    assert 20 < float(re.search(r"within ([\d.]+) of", summary.sentence)[1]) < 300


def test_factorization(factorized):
    case = factorized
    summary = summarise(case.model)
    observed = int((~np.isnan(case.X)).sum())
    assert f"{observed:,} observed entries of a 40 × 30 matrix by rank 2" in summary.sentence
    assert summary.noun == "entries"
    assert summary.features is None
    grid = np.array(summary.grid.residual, dtype=float)
    expected = np.abs(case.X - case.model.reconstruct())
    assert grid.shape == (40, 30)
    assert np.allclose(grid, expected, rtol=1e-3, equal_nan=True)
    rows, columns = column(summary, "row"), column(summary, "column")
    assert case.wrong[rows, columns].mean() > 0.9
    assert [c.key for c in summary.suspects.columns] == ["row", "column", "value", "expected", "weight"]


def test_sparse_and_triplets_have_the_same_map(factorized):
    Y = factorized.X
    rows, columns = np.nonzero(~np.isnan(Y))
    sparse = sp.csr_array((Y[rows, columns], (rows, columns)), shape=Y.shape)
    triplets = (rows, columns, Y[rows, columns])
    model = SelfPacedMF(rank=2, backend="numpy", random_state=0)
    maps = [summarise(model.fit(X), X).grid for X in (sparse, triplets)]
    assert maps[0] == maps[1] == summarise(model).grid


def test_a_large_matrix_is_seen_in_blocks():
    rows, columns = np.divmod(np.arange(333 * 70), 70)
    diagnosis = Values(np.full(rows.size, 2.0), np.zeros(rows.size), np.zeros(rows.size))
    places = Places(rows, columns, (333, 70))
    grid = grid_of(Assessment("entries", diagnosis, np.full(rows.size, 2.0), math.inf, places=places))
    assert (len(grid.row_starts), len(grid.column_starts)) == (50, 50)
    assert {value for row in grid.residual for value in row} == {2.0}
    assert {value for row in grid.weight for value in row} == {1.0}
    assert grid.row_starts[-1] == 327  # the first row of the last of 50 blocks
    assert 327 * 50 // 333 == 49 > 326 * 50 // 333


def test_clustering(clustered):
    summary = summarise(clustered.model, clustered.X)
    assert "150 samples, seen in 2 views, into 3 clusters" in summary.sentence
    for name, weight in zip(["shape", "sound"], clustered.model.view_weight_, strict=True):
        assert float(fact(summary, name).value.removesuffix(" %")) == pytest.approx(100 * weight, abs=1)
    assert {"cluster", "shape weight", "sound weight"} <= {c.key for c in summary.suspects.columns}


def test_inside_a_pipeline(classified):
    case = classified
    model = make_pipeline(StandardScaler(), SelfPacedLogisticRegression()).fit(case.X, case.y)
    summary = summarise(model, case.X, case.y)
    assert summary.title == "SelfPacedLogisticRegression"
    first = column(summary, "row")[0]
    assert summary.features.rows[0] == pytest.approx(case.X[first], rel=1e-4)  # raw, not scaled


def test_the_assess_of_a_filter(classified):
    case = classified
    model = SuspectFilter(SelfPacedLogisticRegression(), LogisticRegression()).fit(case.X, case.y)
    assert summarise(model, case.X, case.y).title == "SelfPacedLogisticRegression"


def test_wrapped_estimators(regressed):
    case = regressed
    model = SelfPacedRegressor(DecisionTreeRegressor(max_depth=3, random_state=0), random_state=0).fit(case.X, case.y)
    summary = summarise(model, case.X, case.y)
    assert summary.kind == "regression"
    assert "SelfPacedRegressor was fitted to 200 rows" in summary.sentence
    assert set(column(summary, "row")[:30]) <= set(np.flatnonzero(case.wrong))


def test_a_wrapped_regressor_shows_the_error_of_rows_it_has_not_seen(regressed):
    case = regressed
    model = SelfPacedRegressor(HistGradientBoostingRegressor(max_iter=20), random_state=0).fit(case.X, case.y)
    assert not hasattr(model, "plain_")  # not kept by default
    summary = summarise(model, case.X, case.y)
    diagnosis = model.assessment_.diagnosis
    error = re.search(r"within ([\d.]+) of", summary.sentence)[1]
    assert float(error) == pytest.approx(np.median(np.abs(diagnosis.given - diagnosis.expected)), rel=0.01)


def test_a_wrapped_classifier_is_told_by_its_posterior(classified):
    case = classified
    model = SelfPacedClassifier(DecisionTreeClassifier(random_state=0), random_state=0).fit(case.X, case.y)
    summary = summarise(model, case.X, case.y)
    rows = column(summary, "row")
    codes = np.searchsorted(model.classes_, np.asarray(case.y)[rows])
    wrong = 1.0 - model.sample_posterior_[rows, codes]
    np.testing.assert_allclose(column(summary, "noise_probability"), wrong, atol=1e-6)


def test_own_suspects_and_cells_are_found_by_label(classified):
    pandas = pytest.importorskip("pandas")
    case = classified
    raw = pandas.DataFrame({"name": [f"sample {k}" for k in range(400)]}, index=np.arange(1000, 1400))
    table = {"row": [1007, 1003], "weight": [0.1, 0.2]}
    summary = summarise(case.model, case.X, case.y, suspects=table, cells=raw)
    assert summary.features.rows == (("sample 7",), ("sample 3",))
    other = summarise(case.model, case.X, case.y, suspects={"row": [5000], "weight": [0.1]}, cells=raw)
    assert other.features is None


def test_the_data_must_be_those_of_the_fit(classified):
    case = classified
    with pytest.raises(ValueError, match=r"X must be what the model was fitted on \(400 rows\), got 10 rows"):
        summarise(case.model, case.X[:10], case.y[:10])


def test_something_else_is_refused(classified):
    with pytest.raises(TypeError, match="got LogisticRegression"):
        summarise(LogisticRegression().fit(classified.X, classified.y))


def test_versions_and_parameters(classified):
    summary = summarise(classified.model)
    assert {"selfpaced", "numpy", "scikit-learn", "Python"} <= {name for name, _ in summary.versions}
    assert ("regularizer", "'welsch'") in summary.parameters


@pytest.mark.parametrize("make", [list, np.array, pd.Series], ids=["list", "array", "series"])
@pytest.mark.parametrize(
    "model",
    [
        SelfPacedClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression())),
        make_pipeline(TfidfVectorizer(), SelfPacedLogisticRegression()),
    ],
    ids=["inside", "outside"],
)
def test_a_model_of_texts(model, make):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    texts = [f"{'good fine' if label else 'bad poor'} word{place % 60} of{place}" for place, label in enumerate(y)]
    given = np.where(np.arange(300) < 30, 1 - y, y)
    summary = summarise(model.fit(make(texts), given), make(texts), given)
    assert summary.suspects is not None
    assert fact(summary, "rows").value == "300"


def test_a_noise_rate_that_is_unknown():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), np.arange(600) % 2
    summary = summarise(SelfPacedClassifier(LogisticRegression()).fit(X, y), X, y)
    assert fact(summary, "estimated label-error rate").value == "unknown"
    assert "between 0 % and" in summary.conclusion
    assert "nan" not in summary.conclusion
