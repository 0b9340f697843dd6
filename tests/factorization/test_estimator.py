"""SelfPacedMF and PRMF: accuracy, pacings, fitted attributes, new rows."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from selfpaced import PRMF, SelfPacedMF
from selfpaced.datasets import make_low_rank
from selfpaced.factorization.engine import Engine
from selfpaced.pacing import Fixed, Geometric, Graduated, Quantile, Span, Stages
from selfpaced.regularizers import REGISTRY, from_loss
from selfpaced.robust import Opening
from selfpaced.selection import Candidate


def rmse(model, truth):
    return float(np.sqrt(np.mean((model.reconstruct() - truth) ** 2)))


GIVEN = {"rank": 4, "center": None, "ridge": 0.005}  # nothing is left to be chosen by held-out entries


@pytest.fixture(scope="module")
def model(made):
    return SelfPacedMF(random_state=0).fit(made.data)


@pytest.mark.parametrize("rule", [*REGISTRY])
def test_every_rule_of_the_core_reaches_the_same_accuracy(made, rule):
    assert rmse(SelfPacedMF(4, rule, random_state=1).fit(made.data), made.truth) < 0.055


def test_a_users_own_loss(made):
    own = from_loss(lambda loss, lam: lam * np.arctan(loss / lam))
    assert rmse(SelfPacedMF(4, own, random_state=1).fit(made.data), made.truth) < 0.055


@pytest.mark.parametrize(
    "pacing",
    [
        Fixed(1.2),
        Graduated(bound=0.7),
        Geometric(mu=1.2, stop=Stages(8)),
        Quantile(end=0.66, stages=6),
    ],
)
def test_every_pacing_of_the_core_works(made, pacing):
    found = SelfPacedMF(4, "welsch", pace=pacing, random_state=0).fit(made.data)
    assert rmse(found, made.truth) < 0.06
    assert " was chosen: at lam = " in found.termination_


def test_a_score_needs_an_entry(made):
    model = SelfPacedMF(4, random_state=0).fit(made.data)
    with pytest.raises(ValueError, match="at least one observed entry to be scored"):
        model.score(np.full((2, 100), np.nan))


def test_fixed_pace_ends_at_a_fixed_point_of_the_half_quadratic_iteration(made):
    """Reweighted ridge regressions, written out row by row, do not move the solution."""
    setting = {"polish": 0, "rescue": False, "tol": 1e-7, "max_sweeps": 400, **GIVEN}
    found = SelfPacedMF(regularizer="welsch", pace=Fixed(1.2), random_state=0, **setting).fit(made.data)
    U, V = found.row_factors_.copy(), found.components_.T.copy()
    for _ in range(2):
        for own, other, X in ((U, V, made.data), (V, U, made.data.T)):
            for i, row in enumerate(X):
                seen = ~np.isnan(row)
                size = np.abs(row[seen] - other[seen] @ own[i])
                weight = np.exp(-((size / 1.2) ** 2)) / np.maximum(size, found.scale_)
                gram = (other[seen] * weight[:, None]).T @ other[seen] + found._ridge * np.eye(4)
                own[i] = np.linalg.solve(gram, (other[seen] * weight[:, None]).T @ row[seen])
    np.testing.assert_allclose(U @ V.T, found.reconstruct(), atol=0.02)


def test_outliers_are_found_and_ordered(made, model):
    found = model.outliers_
    hits = made.outlier_mask[found["row"], found["column"]]
    gross = np.abs(made.data - made.truth)[made.outlier_mask] > 0.6
    assert hits.mean() > 0.99
    assert hits.sum() > 0.98 * gross.sum()
    assert hits[:1000].all()
    off = np.abs(found["value"] - found["expected"])
    assert (off > 3.5 * model.scale_).all()
    assert (np.diff(found["weight"]) >= 0).all()
    zero = found["weight"] == 0
    assert (np.diff(off[zero]) <= 0).all()
    np.testing.assert_allclose(found["value"], made.data[found["row"], found["column"]])


def test_fitted_attributes(made, model):
    assert model.rank_ == 4
    assert model.components_.shape == (4, 100)
    assert model.scale_ == pytest.approx(0.1, rel=0.05)
    weights = model.entry_weight_
    np.testing.assert_array_equal(np.isnan(weights), np.isnan(made.data))
    clean = ~np.isnan(made.data) & ~made.outlier_mask
    assert weights[clean].mean() > 0.95
    assert weights[made.outlier_mask].mean() < 0.1
    assert model.sample_weight_ is weights
    seen = ~np.isnan(made.data)
    np.testing.assert_allclose(model.sample_loss_[seen], np.abs(made.data - model.reconstruct())[seen], atol=1e-9)
    assert all(isinstance(candidate, Candidate) for candidate in model.path_)
    assert model.path_[0].lam == np.inf
    assert [candidate.chosen for candidate in model.path_] == [False] * (len(model.path_) - 1) + [True]
    assert model.lam_ == model.path_[-1].lam
    assert model.n_iter_ <= 50
    assert "Rank 4 was found; the noise scale is 0." in model.termination_
    assert isinstance(model.plain_, PRMF)
    assert rmse(model.plain_, made.truth) > rmse(model, made.truth)


def test_same_seed_same_model_other_threads_too(made, model):
    again = SelfPacedMF(random_state=0, n_jobs=2).fit(made.data)
    np.testing.assert_array_equal(again.reconstruct(), model.reconstruct())
    other = SelfPacedMF(random_state=1).fit(made.data)
    assert not np.array_equal(other.reconstruct(), model.reconstruct())
    np.testing.assert_allclose(other.reconstruct(), model.reconstruct(), atol=0.2)


def test_backends_agree_on_the_whole_fit(made, model):
    pytest.importorskip("numba")
    slow = SelfPacedMF(random_state=0, backend="numpy").fit(made.data)
    np.testing.assert_allclose(slow.reconstruct(), model.reconstruct(), atol=1e-8)
    np.testing.assert_allclose(slow.components_, model.components_, atol=1e-8)


@pytest.mark.parametrize("unit", [1e-6, 1e5])
def test_the_unit_of_the_data_does_not_matter(made, model, unit):
    scaled = SelfPacedMF(random_state=0).fit(made.data * unit)
    np.testing.assert_allclose(scaled.reconstruct() / unit, model.reconstruct(), atol=1e-5)


def test_float32_stays_float32_and_accurate(made):
    found = SelfPacedMF(random_state=0).fit(made.data.astype(np.float32))
    assert found.components_.dtype == found.row_factors_.dtype == np.float32
    assert found.transform(made.data.astype(np.float32)).dtype == np.float32
    assert rmse(found, made.truth) < 0.055


@pytest.mark.parametrize("rank", [2, 5, 8])
def test_rank_is_found(rank):
    made = make_low_rank(rank=rank, random_state=rank)
    assert SelfPacedMF(random_state=0).fit(made.data).rank_ == rank


def test_new_rows_are_fitted_robustly(made):
    train = SelfPacedMF(4, random_state=0).fit(made.data[:80])
    factors = train.transform(made.data[80:])
    error = train.inverse_transform(factors) - made.truth[80:]
    assert np.sqrt(np.mean(error**2)) < 0.08
    one_by_one = np.vstack([train.transform(made.data[i : i + 1]) for i in range(80, 100)])
    np.testing.assert_allclose(one_by_one, factors, atol=1e-10)


def test_transform_of_the_training_rows_is_fit_transform(made, model):
    same = np.isclose(model.transform(made.data), model.row_factors_, atol=1e-3).all(axis=1)
    assert same.mean() >= 0.95  # the others have an entry just at the border of rejection
    np.testing.assert_array_equal(clone(model).fit_transform(made.data), model.row_factors_)


def test_transform_of_an_empty_row_is_the_prior(made, model):
    row = np.full((1, 100), np.nan)
    np.testing.assert_array_equal(model.transform(row), np.zeros((1, 4)))


def test_reconstruct(model):
    whole = model.reconstruct()
    np.testing.assert_allclose(model.reconstruct([3, 5], [7, 9]), whole[[3, 5], [7, 9]])
    np.testing.assert_allclose(model.reconstruct(np.arange(100)[:, None], [7, 9]), whole[:, [7, 9]])
    with pytest.raises(ValueError, match="rows and columns together"):
        model.reconstruct([1])
    with pytest.raises(ValueError, match="rank_ = 4 columns, got 3"):
        model.inverse_transform(np.ones((2, 3)))


def test_score_gains_nothing_beyond_the_true_rank(made):
    scores = {rank: SelfPacedMF(rank, random_state=0).fit(made.data).score(made.data) for rank in (2, 4, 6)}
    assert scores[2] < scores[4] - 0.5
    assert scores[6] < scores[4] + 0.005
    assert 0.9 < scores[4] <= 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rank 2 is too small to beat the means
        search = GridSearchCV(SelfPacedMF(random_state=0), {"rank": [2, 4]}, cv=2).fit(made.data)
    assert search.best_params_ == {"rank": 4}


def test_callback_sees_every_stage_and_can_stop(made):
    seen = []

    def callback(stage, solution):
        seen.append((stage.lam, solution.model.U.shape, solution.model.V.shape))
        return len(seen) == 2

    found = SelfPacedMF(4, callback=callback, random_state=0).fit(made.data)
    assert len(seen) == 2
    assert seen[0][1:] == ((100, 4), (100, 4))
    assert "callback" in found.termination_


def interrupt_at(monkeypatch, call):
    """Raise KeyboardInterrupt in the given sweep."""
    calls, real = [], Engine.sweep

    def sweep(self, *args):
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt
        real(self, *args)

    monkeypatch.setattr(Engine, "sweep", sweep)


@pytest.mark.parametrize("call", [29, 31, 33, 36, 40])
def test_an_interrupt_keeps_the_last_complete_part(made, model, monkeypatch, call):
    """28 sweeps of the warm start come first; then the path, rescue and polish."""
    interrupt_at(monkeypatch, call)
    found = SelfPacedMF(random_state=0, **GIVEN)
    with pytest.raises(KeyboardInterrupt, match="kept"):
        found.fit(made.data)
    monkeypatch.undo()
    assert found.termination_.startswith("Interrupted from outside")
    assert [c.lam for c in found.path_] == [c.lam for c in model.path_[: len(found.path_)]]
    assert sum(c.chosen for c in found.path_) == 1
    np.testing.assert_allclose(found.transform(made.data).shape, found.row_factors_.shape)
    assert rmse(found, made.truth) < 0.3


@pytest.mark.parametrize("kind", [SelfPacedMF, PRMF])
def test_an_interrupt_before_there_is_a_model_leaves_everything_as_it_was(made, monkeypatch, kind):
    unfitted, old = kind(4, random_state=0), kind(4, random_state=0).fit(made.data)
    factors = old.row_factors_
    for one in (unfitted, old):
        interrupt_at(monkeypatch, 3)
        with pytest.raises(KeyboardInterrupt):
            one.fit(made.data[:50])
        monkeypatch.undo()
    assert not [name for name in vars(unfitted) if name.endswith("_")]
    assert old.row_factors_ is factors
    assert old.transform(made.data).shape == (100, 4)


@pytest.mark.parametrize("pace", ["paper", 1.5, Fixed(1.5), Span(0.5, 4.0, 6), Opening(growth=1.6)])
def test_every_kind_of_pace(made, pace):
    found = SelfPacedMF(4, "welsch", pace=pace, random_state=0).fit(made.data)
    assert rmse(found, made.truth) < 0.1
    assert sum(candidate.chosen for candidate in found.path_) == 1


def test_the_assessment_of_entries(made, model):
    assessment = model.assessment_
    rows, columns = assessment.places.rows, assessment.places.columns
    np.testing.assert_array_equal(assessment.diagnosis.given, made.data[rows, columns])
    np.testing.assert_allclose(assessment.diagnosis.expected, model.reconstruct(rows, columns), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(assessment.weight, model.entry_weight_[rows, columns])
    worst = assessment.ranking(50)
    assert made.outlier_mask[rows[worst], columns[worst]].all()
    assert model.assess(made.data) is assessment
    new = model.assess(made.data[:10])
    assert new.fingerprint == ""
    assert new.places.shape == (10, 100)
    np.testing.assert_allclose(new.weight, assessment.weight[: new.weight.size], atol=0.05)


def test_no_convergence_is_a_warning_and_a_model(made):
    with pytest.warns(ConvergenceWarning, match="max_sweeps = 4"):
        found = SelfPacedMF(4, pace=Fixed(1.0), max_sweeps=4, tol=0.0, random_state=0).fit(made.data)
    assert np.isfinite(found.reconstruct()).all()


def test_a_pace_that_shuts_everything_out_keeps_the_start(made):
    with pytest.warns(ConvergenceWarning, match="hardly any entry has weight"):
        found = SelfPacedMF(4, "hard", pace=Fixed(1e-9), random_state=0).fit(made.data)
    assert found.lam_ == np.inf
    assert [candidate.chosen for candidate in found.path_] == [True]
    assert rmse(found, made.truth) < 0.06


def test_missing_rows_and_columns_are_named_and_stay_at_the_prior(made):
    X = made.data.copy()
    X[[2, 7]] = np.nan
    X[:, 5] = np.nan
    with (
        pytest.warns(UserWarning, match=r"no observed entry in rows 2, 7 \(2 in all, see missing_rows_\)"),
        pytest.warns(UserWarning, match=r"no observed entry in columns 5 "),
    ):
        found = SelfPacedMF(random_state=0).fit(X)
    assert found.missing_rows_.tolist() == [2, 7]
    assert found.missing_columns_.tolist() == [5]
    assert (found.row_factors_[[2, 7]] == 0).all()
    assert (found.components_[:, 5] == 0).all()
    kept = np.delete(np.delete(found.reconstruct() - made.truth, [2, 7], axis=0), 5, axis=1)
    assert np.sqrt(np.mean(kept**2)) < 0.055


def test_clean_complete_data_is_reproduced():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 30))
    found = SelfPacedMF(3, random_state=0).fit(X)
    np.testing.assert_allclose(found.reconstruct(), X, atol=1e-3)
    assert len(found.outliers_) == 0


def test_prmf_minimises_its_objective(made):
    rough = PRMF(4, max_iter=5, random_state=0).fit(made.data)
    assert rough.n_iter_ == 5
    fine = PRMF(4, max_iter=60, random_state=0).fit(made.data)
    assert np.nansum(fine.sample_loss_) < np.nansum(rough.sample_loss_)
    assert rmse(fine, made.truth) < 0.2
    assert (fine.entry_weight_[~np.isnan(made.data)] == 1).all()
    better = PRMF(4, rescue=True, polish=8, random_state=0).fit(made.data)
    assert rmse(better, made.truth) < rmse(fine, made.truth)
    plain = PRMF(4, continuation=False, random_state=0).fit(made.data)
    assert plain.n_iter_ == 30


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"rank": 101}, ValueError, r"rank must be at most min\(n_samples = 100, n_features = 100\), got 101"),
        ({"rank": 0}, ValueError, "rank must be 'auto' or an integer >= 1, got 0"),
        ({"rank": 2.5}, ValueError, "rank must be"),
        ({"regularizer": "welsh"}, ValueError, "did you mean 'welsch'"),
        ({"pace": "fast"}, ValueError, "pace must be 'auto', 'paper', a positive number .*, got 'fast'"),
        ({"ridge": -1.0}, ValueError, "ridge must be 'auto' or a finite number >= 0, got -1.0"),
        ({"center": "row"}, ValueError, "center must be 'auto', 'both', 'rows', 'columns' or None, got 'row'"),
        ({"max_rank": 0}, ValueError, "max_rank must be None or an integer >= 1, got 0"),
        ({"polish": -1}, ValueError, "polish must be"),
        ({"init": "svd"}, ValueError, "init must be 'warm' or 'random', got 'svd'"),
        ({"init": "random"}, ValueError, "rank must be a number"),
        ({"backend": "gpu"}, ValueError, "backend must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or a non-zero integer, got 0"),
        ({"n_jobs": True}, ValueError, "n_jobs must be"),
    ],
)
def test_wrong_parameters_are_named(made, parameters, error, message):
    with pytest.raises(error, match=message):
        SelfPacedMF(**parameters).fit(made.data)


def test_progress_bar_counts_sweeps(made, capsys):
    found = SelfPacedMF(4, random_state=0, verbose=1).fit(made.data)
    written = capsys.readouterr()
    assert written.out == ""
    assert f"{found.n_iter_}/" in written.err
    SelfPacedMF(4, random_state=0).fit(made.data)
    assert capsys.readouterr().err == ""


def test_pickle(made, model):
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(made.data), model.transform(made.data))
