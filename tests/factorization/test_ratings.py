"""Ratings and images: long frames, ids, predictions of what is unknown, raters ranked, outliers as an image."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from selfpaced import PRMF, SelfPacedMF, suspects
from selfpaced.factorization import estimator
from selfpaced.factorization.engine import from_csr
from selfpaced.factorization.residuals import odd_raters

pd = pytest.importorskip("pandas")


def make_ratings(seed=0, users=80, items=60, share=0.5):
    """Lines of user, item, rating: levels of users and items, two tastes, whole stars."""
    rng = np.random.default_rng(seed)
    level = 3.3 + 0.5 * rng.standard_normal((users, 1)) + 0.5 * rng.standard_normal(items)
    truth = level + 0.6 * rng.standard_normal((users, 2)) @ rng.standard_normal((2, items))
    given = np.clip(np.rint(truth + 0.3 * rng.standard_normal(truth.shape)), 1, 5)
    i, j = np.nonzero(rng.random(truth.shape) < share)
    order = rng.permutation(i.size)
    i, j = i[order], j[order]
    frame = pd.DataFrame({"user": [f"u{k:03d}" for k in i], "item": 1000 + 7 * j, "rating": given[i, j]})
    return frame, truth, i, j


LONG = ("user", "item", "rating")


@pytest.fixture(scope="module")
def ratings():
    return make_ratings()


@pytest.fixture(scope="module")
def model(ratings):
    return SelfPacedMF(2, center="both", bounds=(1, 5), random_state=0).fit(ratings[0], long=LONG)


def test_a_long_frame_is_the_matrix_of_its_ids(ratings, model):
    frame, _, i, j = ratings
    wide = np.full((80, 60), np.nan)
    wide[i, j] = frame["rating"]
    same = SelfPacedMF(2, center="both", random_state=0).fit(wide)
    np.testing.assert_allclose(model.reconstruct(), same.reconstruct(), atol=1e-9)
    assert model.row_labels_[:2].tolist() == ["u000", "u001"]
    assert model.column_labels_[:2].tolist() == [1000, 1007]
    np.testing.assert_allclose(model.entry_weight_, same.entry_weight_[i, j], atol=1e-9)
    np.testing.assert_allclose(model.sample_loss_, np.abs(frame["rating"] - same.reconstruct()[i, j]), atol=1e-9)


def test_polars_and_dicts_are_the_same(ratings, model):
    pl = pytest.importorskip("polars")
    for given in (pl.from_pandas(ratings[0]), {name: ratings[0][name].to_numpy() for name in LONG}):
        again = SelfPacedMF(2, center="both", random_state=0).fit(given, long=LONG)
        np.testing.assert_allclose(again.reconstruct(), model.reconstruct(), atol=1e-9)
        assert again.row_labels_.tolist() == model.row_labels_.tolist()


def test_predictions_by_id(ratings, model):
    frame, truth, i, j = ratings
    expected = np.clip(model.reconstruct(i, j), 1, 5)
    np.testing.assert_allclose(model.predict(frame["user"], frame["item"]), expected)
    assert model.reconstruct().max() > 5 >= model.predict("u000", model.column_labels_).max()
    hidden = np.ones(truth.shape, bool)
    hidden[i, j] = False
    assert np.sqrt(np.mean((model.reconstruct() - truth)[hidden] ** 2)) < 0.5
    assert model.predict(["u000", "u001"], 1000).shape == (2,)
    some = frame[frame["user"] == "u003"]
    np.testing.assert_allclose(model.predict(some), np.clip(model.inverse_transform(model.transform(some)), 1, 5))


def test_unknown_users_and_items_get_the_mean(model):
    items = model.column_labels_
    np.testing.assert_allclose(model.predict("nobody", items), np.clip(model.mean_ + model.column_means_, 1, 5))
    users = model.predict(model.row_labels_, -5)
    np.testing.assert_allclose(users, np.clip(model.mean_ + model.row_means_, 1, 5))
    assert model.predict("nobody", -5) == pytest.approx(model.mean_)


def test_unknown_rows_without_means_are_usual_rows():
    rng = np.random.default_rng(0)
    truth = rng.uniform(1, 3, (40, 1)) * rng.uniform(1, 3, 30)
    found = SelfPacedMF(1, center=None, ridge=0.005, random_state=0).fit(truth)
    np.testing.assert_allclose(found.predict(99, np.arange(30)), truth.mean(axis=0), rtol=0.02)


def test_positions_are_checked(model):
    plain = SelfPacedMF(1, center=None, ridge=0.005, random_state=0).fit(np.outer(np.arange(1.0, 9), np.ones(7)))
    for ask in (plain.predict, plain.reconstruct):
        with pytest.raises(ValueError, match="rows must be integers >= 0, got -1"):
            ask(-1, 0)
        with pytest.raises(ValueError, match=r"columns must be integers >= 0, got 0\.5"):
            ask(0, 0.5)
    with pytest.raises(ValueError, match="rows must be below 8, got 8"):
        plain.reconstruct(8, 0)


def test_new_raters_are_transformed_from_a_long_frame(ratings, model):
    frame = ratings[0]
    some = frame[frame["user"].isin(["u003", "u007"])]
    factors = model.transform(some)
    assert factors.shape == (2, 3)
    np.testing.assert_allclose(factors, model.fit_transform(frame, long=LONG)[[3, 7]], atol=0.2)
    unknown = pd.concat([some, pd.DataFrame({"user": ["u003"], "item": [5], "rating": [1.0]})])
    np.testing.assert_allclose(model.transform(unknown), factors)
    assert model.assess(frame) is model.assessment_


def test_raters_of_noise_have_the_least_weight():
    frame, _, i, _ = make_ratings(3)
    rng = np.random.default_rng(9)
    careless = np.isin(i, [5, 40, 77])
    frame.loc[careless, "rating"] = rng.integers(1, 6, careless.sum())
    found = SelfPacedMF(random_state=0, bounds=(1, 5)).fit(frame, long=LONG)
    assert found.center_ == "both"
    worst = np.argsort(found.row_weight_)[:3]
    assert set(found.row_labels_[worst]) == {"u005", "u040", "u077"}
    assert found.column_weight_.shape == (60,)
    assert np.nanmean(found.row_weight_) == pytest.approx(np.average(found.entry_weight_), abs=0.05)


def test_outliers_and_suspects_have_labels(ratings):
    frame, _, _, _ = ratings
    frame = frame.copy()
    frame["rating"] = frame["rating"] + 0.0
    at = int(np.flatnonzero(frame["rating"] <= 2)[0])
    frame.loc[at, "rating"] = 50.0
    found = SelfPacedMF(2, center="both", random_state=0).fit(frame, long=LONG)
    first, table = found.outliers_[0], suspects(found, n=2)
    for row in (first, table.iloc[0]):
        assert (row["row"], row["column"]) == (frame["user"][at], frame["item"][at])
    assert table["given"][0] == 50.0
    assert list(table.columns)[:5] == ["row", "column", "level", "given", "expected"]


def test_a_wide_frame_with_labels(made):
    wide = pd.DataFrame(made.data, index=[f"r{k}" for k in range(100)], columns=[f"c{k}" for k in range(100)])
    found = SelfPacedMF(4, center=None, ridge=0.005, random_state=0).fit(wide)
    first = found.outliers_[0]
    assert made.outlier_mask[int(first["row"][1:]), int(first["column"][1:])]
    np.testing.assert_allclose(found.predict("r3", ["c5", "c6"]), found.reconstruct(3, [5, 6]))
    counted = SelfPacedMF(4, center=None, ridge=0.005, random_state=0).fit(pd.DataFrame(made.data))
    assert counted.row_labels_ is None
    assert counted.outliers_["row"].dtype == np.int32


def test_models_with_labels_can_be_saved(tmp_path, model):
    pytest.importorskip("skops", reason='saving models needs the extra "io"')
    from selfpaced.persistence import load, save

    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(["u001", "new"], 1007), model.predict(["u001", "new"], 1007))


@pytest.mark.parametrize(
    ("long", "message"),
    [
        (("user", "item"), "long must name three columns"),
        ("user", "long must name three columns"),
        (("user", "film", "rating"), r"long must name columns of X, got \['film'\]; X has"),
    ],
)
def test_wrong_names_are_named(ratings, long, message):
    with pytest.raises(ValueError, match=message):
        SelfPacedMF().fit(ratings[0], long=long)


def test_a_dict_is_known_again_and_text_among_its_values_is_named(ratings, model):
    frame = ratings[0]
    lines = {name: frame[name].to_numpy() for name in frame}
    assert_allclose(model.transform(lines), model.transform(frame))
    lines["rating"] = np.full(len(frame), "good")
    with pytest.raises(ValueError, match="rating must be numeric with NaN"):
        SelfPacedMF(random_state=0).fit(lines, long=("user", "item", "rating"))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_equal_entries_have_no_gain():
    model = SelfPacedMF(random_state=0).fit(np.full((30, 20), 3.0))
    assert_allclose(model.row_gain_, 0.0)


def test_missing_ids_and_bounds_are_refused(ratings):
    frame = ratings[0].assign(user=np.nan)
    with pytest.raises(ValueError, match="user must name a row or column in every line, got missing ids"):
        SelfPacedMF().fit(frame, long=LONG)
    with pytest.raises(ValueError, match=r"bounds must be None or two numbers \(low, high\), got \(5, 1\)"):
        SelfPacedMF(bounds=(5, 1)).fit(ratings[0], long=LONG)
    assert PRMF(2, random_state=0).fit(ratings[0], long=LONG).predict("u000", 1000).shape == ()


def test_ids_of_any_kind(ratings):
    """Ids without an order among them, and dates in any unit."""
    frame = ratings[0]
    users, kinds = sorted(frame["user"].unique()), ["b", 3, (1, 2)]
    mixed = frame.assign(user=[kinds[users.index(user)] if users.index(user) < 3 else user for user in frame["user"]])
    found = SelfPacedMF(2, center="both", ridge=0.005, random_state=0).fit(mixed, long=LONG)
    assert {"b", 3, (1, 2)} <= set(found.row_labels_)
    asked = np.empty(2, dtype=object)
    asked[:] = [3, "nobody"]
    assert found.predict(asked, 1000)[1] == pytest.approx(found.mean_ + found.column_means_[0])


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
def test_dates_are_the_same_in_every_unit(ratings, unit):
    frame = ratings[0]
    days = np.datetime64("2020-01-01", unit) + np.arange(80) * np.timedelta64(1, "D")
    users = sorted(frame["user"].unique())
    dated = {"user": days[[users.index(user) for user in frame["user"]]], **{name: frame[name] for name in LONG[1:]}}
    found = SelfPacedMF(2, center="both", ridge=0.005, random_state=0).fit(dated, long=LONG)
    expected = found.predict(days[:3], 1000)
    for asked in (days[:3].astype("datetime64[ms]"), [pd.Timestamp(day) for day in days[:3]], pd.Series(days[:3])):
        np.testing.assert_allclose(found.predict(asked, 1000), expected)
    unknown = found.mean_ + found.column_means_[0]
    np.testing.assert_allclose(found.predict(["2019-01-01", "2021-01-05"], 1000), unknown)
    np.testing.assert_allclose(found.predict(["nobody"], 1000), unknown)


def test_an_image_is_a_low_rank_part_and_a_sparse_one():
    x, y = np.meshgrid(np.linspace(0, 1, 50), np.linspace(0, 1, 40))
    image = 0.5 + 0.2 * np.sin(5 * x) * np.cos(3 * y) + 0.1 * x * y
    rng = np.random.default_rng(0)
    salt = rng.random(image.shape) < 0.2
    given = np.where(salt, rng.integers(0, 2, image.shape), image + 0.01 * rng.standard_normal(image.shape))
    given[rng.random(image.shape) < 0.2] = np.nan
    found = SelfPacedMF(random_state=0).fit(given)
    assert np.sqrt(np.mean((found.low_rank_ - image) ** 2)) < 0.01
    assert found.sparse_.shape == image.shape
    seen = ~np.isnan(given)
    np.testing.assert_array_equal(found.sparse_[seen & salt] != 0, True)
    np.testing.assert_allclose((found.low_rank_ + found.sparse_)[seen & salt], given[seen & salt])
    assert (found.sparse_[seen & ~salt] != 0).mean() < 0.05


def make_fillers(seed, pushers=6):
    """Raters of tastes, then some who push the first item and fill the rest with their usual number of stars."""
    frame, _, i, j = make_ratings(seed, users=120)
    rng = np.random.default_rng([seed, 1])
    stars = np.full((120, 60), np.nan)
    stars[i, j] = frame["rating"]
    fakes = np.where(
        rng.random((pushers, 60)) < 0.5, np.clip(np.rint(3.3 + rng.standard_normal((pushers, 60))), 1, 5), np.nan
    )
    fakes[:, 0] = 5
    return np.vstack([stars, fakes]), np.arange(120 + pushers) >= 120


@pytest.mark.parametrize("careless", [0.0, 0.1])
def test_planted_raters_have_the_least_gain(careless):
    stars, fake = make_fillers(1)
    rng = np.random.default_rng(5)
    noise = (rng.random(stars.shape) < careless) & ~fake[:, None] & ~np.isnan(stars)
    stars[noise] = rng.integers(1, 6, noise.sum())
    found = SelfPacedMF(bounds=(1, 5), random_state=0).fit(stars)
    above = found.row_gain_[~fake][:, None] > found.row_gain_[fake]
    assert above.mean() > 0.95  # the area under the curve
    assert np.median(found.row_gain_[fake]) < 0.1 < 0.3 < np.median(found.row_gain_[~fake]) < 1


def test_gains_do_not_depend_on_gross_errors_and_follow_the_columns_too():
    rng = np.random.default_rng(2)
    X = 5 + rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40)) + 0.1 * rng.standard_normal((60, 40))
    X[:, 7] = 5 + rng.standard_normal(60)
    X[rng.random(X.shape) < 0.1] = 60.0
    X[3] = np.nan
    with pytest.warns(UserWarning, match="no observed entry in rows"):
        found = SelfPacedMF(2, random_state=0).fit(X)
    assert np.isnan(found.row_gain_[3])
    assert np.isnan(found.row_gain_).sum() == 1
    assert int(np.argmin(found.column_gain_)) == 7
    assert found.column_gain_[7] < 0.05
    assert np.nanmedian(found.row_gain_) > 0.5
    with pytest.raises(AttributeError, match="has no gains: it was fitted as a part of another model"):
        _ = found.plain_.row_gain_


def test_reweighted_rows_push_less():
    X, fake = make_fillers(11, pushers=14)
    settings = {"bounds": (1, 5), "random_state": 0}
    clean = SelfPacedMF(**settings).fit(X[~fake])
    users = np.arange(120)

    def shift(model):
        return float((model.predict(users, 0) - clean.predict(users, 0)).mean())

    one, careful = (SelfPacedMF(**settings, reweight_rows=n).fit(X) for n in (0, 2))
    assert shift(careful) < 0.5 * shift(one)
    assert "the last of 3 fits" in careful.termination_


@pytest.mark.parametrize("noticed_in", ["all rows", "some rows"])
def test_rows_are_reweighted_if_raters_of_an_item_are_unlike_others(monkeypatch, noticed_in):
    X, fake = make_fillers(11, pushers=24)
    X[:100, 0] = np.nan  # so that pushers are the majority of those who rate this item
    if noticed_in == "some rows":
        monkeypatch.setattr(estimator, "SCALE_ENTRIES", 2 * np.isfinite(X).sum() // 3)
    settings = {"bounds": (1, 5), "random_state": 0}
    assert "fits" not in SelfPacedMF(**settings).fit(X[~fake]).termination_
    model = SelfPacedMF(**settings).fit(X)
    assert "the last of 3 fits" in model.termination_
    assert_allclose(model.reconstruct(), SelfPacedMF(**settings, reweight_rows=2).fit(X).reconstruct())


def test_odd_raters_are_those_of_one_column_and_not_of_all():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 30)) < 0.3, 1.0, np.nan)
    X[:40, 7] = 1.0  # every odd row has this column
    i, j = np.nonzero(X == 1.0)
    side = from_csr(sp.csr_array((X[i, j], (i, j)), shape=X.shape)).by_row
    odd = np.repeat([0.0, 1.0], [40, 360])
    assert odd_raters(side, odd, 30)
    assert not odd_raters(side, rng.permutation(odd), 30)
    assert not odd_raters(side, -odd, 30)  # usual rows are no better than their means: rows are not told apart


def test_reweighting_rows_is_a_fit_with_weights_of_the_gain(ratings):
    frame, *_ = ratings
    first = SelfPacedMF(random_state=0).fit(frame, long=LONG)
    share = np.clip(first.row_gain_ / np.nanmedian(first.row_gain_), 1e-3, 1)
    rows = np.searchsorted(first.row_labels_, frame["user"])
    given = np.random.default_rng(0).uniform(0.5, 1.5, rows.size)
    again = SelfPacedMF(random_state=0, reweight_rows=1)
    assert_allclose(
        again.fit(frame, long=LONG).reconstruct(),
        SelfPacedMF(random_state=0).fit(frame, long=LONG, sample_weight=share[rows]).reconstruct(),
        atol=1e-10,
    )
    again.fit(frame, long=LONG, sample_weight=given)  # beside weights of the user's own
    assert np.isfinite(again.reconstruct()).all()


def test_rows_without_anything_in_common_keep_their_weights():
    noise = np.random.default_rng(0).standard_normal((60, 40))
    with pytest.warns(ConvergenceWarning, match="means only") as told:
        model = SelfPacedMF(random_state=0, reweight_rows=2).fit(noise)
    assert model.rank_ == 0
    assert len(told) == 1
