"""Means as part of the model, the rank by held-out entries, and the quality of the fit."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from selfpaced import SelfPacedMF
from selfpaced.datasets import make_low_rank


def rmse(model, truth):
    return float(np.sqrt(np.mean((model.reconstruct() - truth) ** 2)))


def effects(seed=0, size=3.0):
    rng = np.random.default_rng(seed)
    return size * rng.standard_normal((100, 1)) + size * rng.standard_normal(100) + 10.0


@pytest.fixture(scope="module")
def shifted(made):
    return SelfPacedMF(random_state=0).fit(made.data + effects())


@pytest.mark.parametrize("offset", [2.0, 10.0])
def test_an_offset_does_not_break_the_rank(made, offset):
    """Without means in the model this was rank 1 and an error of 1.9."""
    found = SelfPacedMF(random_state=0).fit(made.data + offset)
    assert (found.rank_, found.center_, found.quality_) == (4, "both", "recovered")
    assert rmse(found, made.truth + offset) < 0.065
    assert found.mean_ == pytest.approx(offset, abs=0.5)


def test_no_means_where_there_are_none(made):
    found = SelfPacedMF(random_state=0).fit(made.data)
    given = SelfPacedMF(4, center=None, ridge=0.005, random_state=0).fit(made.data)
    assert (found.rank_, found.center_, found.mean_) == (4, None, 0.0)
    np.testing.assert_array_equal(found.reconstruct(), given.reconstruct())
    assert given.quality_ == "not checked"
    assert given.rank_path_ == ()


def test_row_and_column_means_are_found(made, shifted):
    assert (shifted.rank_, shifted.center_) == (4, "both")
    assert rmse(shifted, made.truth + effects()) < 0.07
    whole = shifted.mean_ + shifted.row_means_[:, None] + shifted.column_means_
    np.testing.assert_allclose(whole + shifted.row_factors_ @ shifted.components_, shifted.reconstruct(), atol=1e-9)
    assert np.median(shifted.row_means_) == pytest.approx(0, abs=1e-12)
    assert shifted.row_means_.std() == pytest.approx(3, rel=0.3)


def test_new_rows_have_a_mean_too(made, shifted):
    data, truth = made.data + effects(), made.truth + effects()
    factors = shifted.transform(data)
    assert factors.shape == (100, 5)
    assert shifted.get_feature_names_out().shape == (5,)
    same = np.isclose(factors, shifted.fit_transform(data), atol=1e-3).all(axis=1)
    assert same.mean() >= 0.95
    moved = shifted.inverse_transform(shifted.transform(data[:10] + 50.0))
    assert np.sqrt(np.mean((moved - 50.0 - truth[:10]) ** 2)) < 0.1
    np.testing.assert_allclose(shifted.inverse_transform(shifted.transform(data[:1] * np.nan))[0], whole_mean(shifted))
    assert 0.9 < shifted.score(data) <= 1
    with pytest.raises(ValueError, match=r"rank_ \+ 1, the row's mean, = 5 columns, got 4"):
        shifted.inverse_transform(factors[:, :4])
    again = pickle.loads(pickle.dumps(shifted))
    np.testing.assert_array_equal(again.transform(data), factors)
    assessment = shifted.assessment_
    rows, columns = assessment.places.rows, assessment.places.columns
    np.testing.assert_allclose(assessment.diagnosis.expected, shifted.reconstruct(rows, columns), atol=1e-9)


def whole_mean(model):
    return model.mean_ + model.column_means_


@pytest.mark.parametrize(("center", "width"), [("rows", 5), ("columns", 4), ("both", 5), (None, 4)])
def test_means_that_are_asked_for(made, center, width):
    found = SelfPacedMF(4, center=center, random_state=0).fit(made.data)
    assert found.center_ == center
    assert found.transform(made.data[:3]).shape == (3, width)
    assert (found.row_means_ == 0).all() == (center in ("columns", None))
    assert (found.column_means_ == 0).all() == (center in ("rows", None))
    assert rmse(found, made.truth) < 0.065


def test_backends_agree_with_means(made, shifted):
    pytest.importorskip("numba")
    slow = SelfPacedMF(random_state=0, backend="numpy").fit(made.data + effects())
    np.testing.assert_allclose(slow.reconstruct(), shifted.reconstruct(), atol=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1e5])
def test_the_unit_does_not_matter_with_means(made, shifted, unit):
    scaled = SelfPacedMF(random_state=0).fit((made.data + effects()) * unit)
    np.testing.assert_allclose(scaled.reconstruct() / unit, shifted.reconstruct(), atol=1e-4)


def test_float32_with_means(made):
    found = SelfPacedMF(random_state=0).fit((made.data + effects()).astype(np.float32))
    assert found.row_means_.dtype == found.components_.dtype == np.float32
    assert found.transform(made.data[:2].astype(np.float32)).dtype == np.float32
    assert rmse(found, made.truth + effects()) < 0.07


def test_cold_rows_and_columns_get_the_mean(made):
    X = made.data + effects()
    X[3], X[:, 8] = np.nan, np.nan
    with pytest.warns(UserWarning, match="no observed entry"):
        found = SelfPacedMF(random_state=0).fit(X)
    whole = found.reconstruct()
    np.testing.assert_allclose(whole[3], found.mean_ + found.column_means_)
    np.testing.assert_allclose(whole[:, 8], found.mean_ + found.row_means_)


def test_a_larger_rank_than_before_is_found():
    """Rank 14 of 120 x 120: more than the twelve that were once looked for."""
    made = make_low_rank(120, 120, 14, missing=0.2, outliers=0.1, random_state=3)
    found = SelfPacedMF(random_state=0).fit(made.data)
    assert found.rank_ == 14
    assert rmse(found, made.truth) < 0.12
    labels = [candidate.label for candidate in found.rank_path_]
    assert labels[0] == "rank 0"
    assert [c.label for c in found.rank_path_ if c.chosen] == ["rank 14"]


def test_a_rank_at_its_limit_is_a_warning(made):
    with pytest.warns(ConvergenceWarning, match="the chosen rank, 3, is the largest that was tried"):
        found = SelfPacedMF(max_rank=3, random_state=0).fit(made.data)
    assert found.rank_ == 3


def test_pure_noise_is_no_better_than_the_means():
    rng = np.random.default_rng(5)
    X = np.where(rng.random((80, 80)) < 0.4, np.nan, rng.standard_normal((80, 80)) + 3.0)
    with pytest.warns(ConvergenceWarning, match="means only"):
        found = SelfPacedMF(random_state=0).fit(X)
    assert (found.rank_, found.center_, found.quality_) == (0, "both", "means only")
    assert "means only" in found.termination_
    assert found.components_.shape == (0, 80)
    assert rmse(found, 3.0) < 0.35
    assert found.transform(X).shape == (80, 1)
    assert found.rank_path_[0].chosen
    with pytest.warns(ConvergenceWarning, match="means only"):
        asked = SelfPacedMF(2, random_state=0).fit(X)
    assert asked.rank_ == 2


@pytest.mark.parametrize("seed", [0, 1])
def test_more_wrong_entries_than_right_ones(seed):
    """57 %: medians are lost, and a start that leaves out what is far from the crowd is not."""
    made = make_low_rank(outliers=0.34, random_state=seed)
    found = SelfPacedMF(random_state=0).fit(made.data)
    assert (found.rank_, found.quality_) == (4, "recovered")
    assert rmse(found, made.truth) < 0.3


@pytest.mark.parametrize("share", [0.45, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_too_many_wrong_entries_are_not_called_recovered(seed, share):
    made = make_low_rank(outliers=share, random_state=seed)  # 75 and 83 % of what is seen
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = SelfPacedMF(random_state=0).fit(made.data)
    assert rmse(found, made.truth) > 0.5
    assert found.quality_ in ("means only", "unreliable")
    assert any(found.quality_ in str(one.message) for one in caught)


def test_a_rank_that_is_asked_for_does_not_hold_together():
    made = make_low_rank(outliers=0.45, random_state=0)
    with pytest.warns(ConvergenceWarning, match="means only|unreliable"):
        found = SelfPacedMF(4, center=None, random_state=0).fit(made.data)
    assert found.quality_ != "recovered"
    assert rmse(found, made.truth) > 0.5


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_sided_errors(seed):
    """+10 on 30 % of the entries: rank 5 and several times the noise before the means were in the model."""
    made = make_low_rank(outliers=0, random_state=seed)
    wrong = np.random.default_rng(seed + 50).random(made.data.shape) < 0.3
    found = SelfPacedMF(random_state=0).fit(made.data + 10.0 * wrong)
    assert found.rank_ == 4
    assert rmse(found, made.truth) < 0.06


def test_one_sided_errors_in_almost_half_of_the_entries():
    """+10 on 45 %: means by medians are off by more than the data are wide."""
    made = make_low_rank(outliers=0, random_state=4)
    wrong = np.random.default_rng(54).random(made.data.shape) < 0.45
    found = SelfPacedMF(random_state=0).fit(made.data + 10.0 * wrong)
    assert (found.rank_, found.quality_) == (4, "recovered")
    assert rmse(found, made.truth) < 0.08


def test_a_constant_matrix_is_explained_by_its_mean():
    for value in (0.0, 5.0):
        found = SelfPacedMF(random_state=0).fit(np.full((30, 20), value))
        assert found.rank_ == 0
        assert found.quality_ == "recovered"
        np.testing.assert_allclose(found.reconstruct(), value, atol=1e-6)
        short = found.termination_ == "The plain model is used: every observed entry is zero."
        assert short == (value == 0)


def test_the_rank_is_found_on_part_of_a_matrix():
    """Of 72,000 entries about 40,000 take part in the choice."""
    made = make_low_rank(400, 300, 5, random_state=2)
    found = SelfPacedMF(random_state=0).fit(made.data + 4.0)
    assert (found.rank_, found.center_, found.quality_) == (5, "both", "recovered")
    assert rmse(found, made.truth + 4.0) < 0.05


def test_components_that_only_the_whole_matrix_shows():
    rng = np.random.default_rng(4)
    factors = rng.standard_normal((300, 5)) * [1, 1, 1, 0.09, 0.09]
    truth = 3 + factors @ rng.standard_normal((5, 280))
    X = truth + 0.5 * rng.standard_normal(truth.shape)
    X[rng.random(X.shape) < 0.05] = 40.0
    model = SelfPacedMF(random_state=0).fit(X)
    assert model.rank_ == 5
    assert [trial.label for trial in model.rank_path_ if trial.chosen] == ["rank 3"]
    assert np.sqrt(np.mean((model.reconstruct() - truth) ** 2)) < 0.11


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_has_no_further_components(seed):
    """Some rows of noise have many entries, others few; what is chosen on a part of them is not extended."""
    rng = np.random.default_rng(seed)
    truth = 5 + rng.standard_normal((300, 2)) @ rng.standard_normal((2, 250))
    X = truth + rng.standard_t(4, truth.shape)
    X[rng.random(X.shape) > 0.5 * rng.random((300, 1)) + 0.4] = np.nan
    assert SelfPacedMF(random_state=0).fit(X).rank_ == 2
