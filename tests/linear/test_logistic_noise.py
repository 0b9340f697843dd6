"""Wrong labels or a wrong model: what is called a likely error, worth a look, or neither."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, scale

from selfpaced import SelfPacedLogisticRegression, label_issues, suspects
from selfpaced.datasets import flip_symmetric
from selfpaced.label_noise import fit_channel


def three_classes(seed, apart=3.0, n=1200):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4))
    X[:, :3] += apart * np.eye(3)[y]
    return X, y, rng


@pytest.mark.parametrize("seed", [0, 1])
def test_a_class_taken_for_one_other_is_given_back(seed):
    X, y, rng = three_classes(seed)
    given = np.where((y == 0) & (rng.random(len(y)) < 0.4), 1, y)
    model = SelfPacedLogisticRegression().fit(X, given)
    assert model.score(X, y) > model.plain_.score(X, y) + 0.05
    assert model.noise_model_.transition[0, 1] > 0.15
    assert np.all(model.noise_model_.transition[[0, 1, 1, 2, 2], [2, 0, 2, 0, 1]] < 0.05)
    unshifted = (X @ model.coef_.T + model.raw_intercept_).argmax(axis=1)
    assert np.mean(model.predict(X) != unshifted) > 0.02


def alike(seed, n, d, k):
    """Classes that are far apart, but for the first and the last, which have the same features."""
    rng = np.random.default_rng(seed)
    y = rng.choice(k, n, p=np.r_[2, np.ones(k - 1)] / (k + 1))
    centre = rng.normal(size=(k, d))
    centre *= 4 / np.linalg.norm(centre, axis=1, keepdims=True)
    centre[-1] = centre[0]
    return rng.normal(size=(n, d)) + centre[y], y


@pytest.mark.parametrize(("n", "d", "k"), [(600, 64, 3), (600, 12, 3), (600, 64, 5), (1200, 40, 10)])
def test_classes_that_look_alike_are_not_taken_for_one_another(n, d, k):
    for seed in range(3):
        X, y = alike(seed, n, d, k)
        model = SelfPacedLogisticRegression().fit(X, y)
        assert not (model.assessment_.levels() == 2).any()
        assert model.noise_rate_interval_[0] == 0.0


def test_wrong_labels_are_told_from_classes_that_look_alike():
    X, y = alike(0, 900, 40, 5)
    given, flipped = flip_symmetric(y, 0.2, random_state=0)
    model = SelfPacedLogisticRegression().fit(X, given)
    likely = model.assessment_.levels() == 2
    assert model.noise_rate_interval_[0] <= 0.2 <= model.noise_rate_interval_[1]
    assert likely.sum() > 0.4 * flipped.sum()
    assert flipped[likely].mean() > 0.9


@pytest.mark.parametrize("apart", [1.0, 3.0])
def test_classes_that_only_overlap_are_not_taken_for_one_another(apart):
    X, y, _ = three_classes(2, apart)
    model = SelfPacedLogisticRegression().fit(X, y)
    assert model.noise_rate_interval_[0] == 0.0
    assert model.noise_rate_if_any_ < 0.1
    assert not (model.assessment_.levels() == 2).any()
    assert model.score(X, y) >= model.plain_.score(X, y) - 0.01


def test_one_rate_for_all_is_not_read_as_one_class_into_another():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 3000)
    logits = 3.0 * np.eye(4)[y] + rng.normal(size=(3000, 4))
    given, _ = flip_symmetric(y, 0.2, random_state=1)
    channel = fit_channel(logits, given, noiseless=True)
    assert abs(channel.noise_rate - 0.2) < 0.05
    off = channel.transition[~np.eye(4, dtype=bool)]
    assert off.max() < 3 * off.min()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mixed_cells_of_a_coarse_table_are_not_called_wrong(seed):
    rng = np.random.default_rng(seed)
    rank, male = rng.choice(4, 2200, p=(0.15, 0.13, 0.32, 0.4)), rng.random(2200) < 0.79
    adult = rng.random(2200) < 0.95
    chance = np.where(male, np.array([0.34, 0.14, 0.17, 0.22])[rank], np.array([0.97, 0.88, 0.46, 0.87])[rank])
    y = (rng.random(2200) < np.where(adult, chance, np.maximum(chance, 0.55))).astype(int)
    X = scale(np.column_stack([np.eye(4)[rank], adult, male]))
    model = SelfPacedLogisticRegression().fit(X, y)
    assert model.noise_rate_interval_[0] == 0.0
    assert not np.any(label_issues(model, X, y)["is_label_issue"])


def documents(seed, n=500, words=800):
    """Counts of words of three topics, and the labels of a rule that three keywords and three common words make."""
    rng = np.random.default_rng(seed)
    usual = 1 / np.arange(5, words + 5)
    frequency = usual * np.exp(rng.normal(size=(3, words)))
    frequency /= frequency.sum(axis=1, keepdims=True)
    y = rng.integers(0, 3, n)
    counts = np.stack([np.bincount(rng.choice(words, 40, p=frequency[t]), minlength=words) for t in y])
    hits = np.empty((n, 3))
    for topic in range(3):
        own = 20 + np.argsort(-frequency[topic, 20:300] / usual[20:300])[:3]
        hits[:, topic] = counts[:, np.r_[own, rng.choice(np.arange(20, 120), 3, replace=False)]].sum(axis=1)
    X = np.sqrt(counts) / np.linalg.norm(np.sqrt(counts), axis=1, keepdims=True)
    return X, y, np.where(hits.any(axis=1), hits.argmax(axis=1), 0), rng


@pytest.mark.parametrize("seed", [0, 1])
def test_programmatic_labels_that_the_features_contradict_are_worth_a_look(seed):
    X, y, given, _ = documents(seed)
    wrong = given != y
    assert 0.15 < wrong.mean() < 0.6
    model = SelfPacedLogisticRegression().fit(X, given)
    listed = suspects(model)["row"].to_numpy()
    assert len(listed) > 0.03 * len(y)
    assert wrong[listed].mean() > wrong.mean() + 0.2
    assert wrong[listed[:15]].mean() > 0.8


def test_clean_documents_and_labels_at_random_are_not_flagged():
    X, y, _, rng = documents(0)
    for labels in (y, rng.permutation(y)):
        model = SelfPacedLogisticRegression().fit(X, labels)
        assert not np.any(label_issues(model, X, labels)["is_label_issue"])
        assert model.noise_rate_interval_[0] == 0.0


@pytest.mark.parametrize(("n", "features", "seed"), [(150, 200, 0), (400, 400, 1), (400, 600, 2)])
def test_many_features_that_say_little_do_not_make_overlap_wrong(n, features, seed):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, 5))
    X = factors @ rng.standard_normal((5, features)) + 0.3 * rng.standard_normal((n, features))
    y = rng.random(n) < 1 / (1 + np.exp(-2 * factors[:, 0]))
    model = SelfPacedLogisticRegression(max_iter=1000).fit(X, y)
    assert not np.any(label_issues(model, X, y)["is_label_issue"])
    assert model.noise_rate_interval_[0] == 0.0


def bowl(n, seed, noise=0.0):
    """A border that no line follows, and labels wrong at random."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    z = 4 * (X[:, 0] + 0.8 * (X[:, 1] ** 2 - 1) + 0.8 * X[:, 2] * X[:, 3])
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return X, np.where(rng.random(n) < noise, 1 - y, y)


@pytest.mark.parametrize("n", [4000, 25_000])
def test_a_border_that_bends_is_no_noise(n):
    X, y = bowl(n, 0)
    model = SelfPacedLogisticRegression().fit(X, y)
    assert model.misfit_check_ == "quadratic"
    assert model.noise_rate_interval_[0] == 0.0
    assert model.assess(X, y).wrong.max() < 0.5
    X, y = bowl(n, 0, noise=0.2)
    low, high = SelfPacedLogisticRegression().fit(X, y).noise_rate_interval_
    assert 0.05 < low < 0.2 < high


@pytest.mark.parametrize("n", [3000, 12_000])
def test_labels_that_depend_on_the_logarithm_of_a_column_are_no_noise(n):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, 4))
    y = (rng.random(n) < 1 / (1 + np.exp(1 - 2 * Z[:, 0]))).astype(int)
    model = SelfPacedLogisticRegression().fit(np.exp(1.5 * Z), y)
    assert model.noise_rate_interval_[0] == 0
    assert not (model.assessment_.levels() == 2).any()


def test_bends_that_a_line_misses_are_no_likely_errors():
    """Rows that a flexible reference model predicts rightly are not claimed, although labels are wrong elsewhere."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1500, 2))
    y = (X[:, 1] > 0.8 * np.sin(4 * X[:, 0])).astype(int)
    given, flipped = flip_symmetric(y, 0.1, random_state=0)
    likely = SelfPacedLogisticRegression().fit(X, given).assessment_.levels() == 2
    assert not likely.any() or flipped[likely].mean() > 0.7


@pytest.mark.parametrize("rate", [0.1, 0.25])
def test_likely_errors_are_withdrawn_if_a_better_model_does_not_expect_them(rate):
    """A line through a parabola claims rows inside it; the reference model explains these."""
    right, wrong = 0, 0
    for seed in range(1, 4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1000, 4))
        y = (X[:, 1] > X[:, 0] ** 2 - 1).astype(int)
        given, flipped = flip_symmetric(y, rate, random_state=seed)
        model = SelfPacedLogisticRegression().fit(scale(X), given)
        likely, (low, high) = model.assessment_.levels() == 2, model.noise_rate_interval_
        assert model.misfit_check_ == "quadratic"
        assert low < rate < high
        right, wrong = right + (likely & flipped).sum(), wrong + (likely & ~flipped).sum()
    assert right >= 2 * wrong


def clean_table(kind, seed, n=800):
    """Labels that are all right: far apart, mixed, drawn at random, or of skewed classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    if kind == "separable":
        y = (X[:, 0] - X[:, 1] > 0).astype(int)
        return X + 0.5 * np.outer(2 * y - 1, [1, -1, 0, 0]), y
    if kind == "overlapping":
        return X, (rng.random(n) < 1 / (1 + np.exp(-1.5 * X[:, 0] + X[:, 1]))).astype(int)
    if kind == "no signal":
        return X, rng.integers(0, 2, n)
    if kind == "three classes":
        return X, (X @ rng.standard_normal((4, 3)) + rng.gumbel(size=(n, 3))).argmax(axis=1)
    y = (rng.random(n) < 1 / (1 + np.exp(2.5 - 1.5 * X[:, 0]))).astype(int)  # skewed
    return X, y


@pytest.mark.parametrize("kind", ["separable", "overlapping", "no signal", "three classes", "skewed"])
@pytest.mark.parametrize("seed", range(4))
def test_clean_tables_have_no_likely_error_and_a_ranked_list(kind, seed):
    X, y = clean_table(kind, seed)
    model = SelfPacedLogisticRegression(random_state=seed).fit(X, y)
    assert model.noise_rate_interval_[0] == 0.0
    assert not np.any(label_issues(model, X, y)["is_label_issue"])
    table = suspects(model, X, y)
    assert set(table["level"]) <= {"worth a look"}
    assert table["probability_if_noisy"].is_monotonic_decreasing
    assert (table["given"] != table["expected"]).all()
    assert table["noise_probability"].max() < 0.5 if len(table) else kind == "separable"


def test_the_sentence_leaves_out_a_rate_of_almost_none():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    model = SelfPacedLogisticRegression().fit(X, X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=500) > 0)
    assert model.noise_rate_if_any_ < 0.001
    assert "of the labels may be wrong; these labels" in model.termination_
    model = SelfPacedLogisticRegression().fit(*clean_table("overlapping", 0))
    assert model.noise_rate_if_any_ > 0.001
    assert "if any are)" in model.termination_


def test_clean_tables_of_skewed_features_have_next_to_no_likely_errors():
    likely = []
    for seed in range(6):
        X, y = clean_table("skewed", seed)
        model = SelfPacedLogisticRegression().fit(np.exp(X), y)
        assert model.noise_rate_interval_[0] == 0.0
        likely.append(int(label_issues(model, np.exp(X), y)["is_label_issue"].sum()))
    assert np.median(likely) == 0
    assert sum(likely) <= 1  # of 4,800 labels


def test_a_single_label_that_overlap_cannot_explain_is_a_likely_error():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 2))
    y = (X[:, 0] > 0).astype(int)
    worst = int(np.argmax(X[:, 0]))
    y[worst] = 0
    model = SelfPacedLogisticRegression().fit(X, y)
    table = suspects(model)
    assert model.noise_rate_interval_[0] == 0.0
    assert table["row"][table["level"] == "likely error"].tolist() == [worst]


@pytest.mark.parametrize(("slope", "significant"), [(1.5, False), (8.0, True)])
def test_noise_of_one_class_is_significant_only_where_classes_hardly_overlap(slope, significant):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 3))
    y = (rng.random(600) < 1 / (1 + np.exp(-slope * X[:, 0]))).astype(int)
    model = SelfPacedLogisticRegression().fit(X, np.where((y == 1) & (rng.random(600) < 0.3), 0, y))
    assert (model.noise_rate_interval_[0] > 0) == significant
    assert (model.assessment_.levels() == 2).any() == significant


# ------------------------------------------------------------------------------------------------- groups


def patients(seed, wrong=0.15, n=200, visits=5):
    """Visits of patients, who have one label each; of some patients all labels are wrong."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(n, 6))
    y = np.repeat(base[:, 0] - base[:, 1] + 0.2 * rng.logistic(size=n) > 0, visits)
    bad = np.repeat(rng.random(n) < wrong, visits)
    X = np.repeat(base, visits, axis=0) + 0.5 * rng.normal(size=(n * visits, 6))
    return X, (y ^ bad).astype(int), bad, np.repeat(np.arange(n), visits)


def test_groups_of_one_row_change_nothing():
    X, y, _, _ = patients(0)
    plain = SelfPacedLogisticRegression().fit(X, y)
    grouped = SelfPacedLogisticRegression().fit(X, y, groups=np.arange(len(y))[::-1])
    np.testing.assert_allclose(grouped.coef_, plain.coef_, rtol=1e-10)
    np.testing.assert_allclose(grouped.noise_rate_interval_, plain.noise_rate_interval_, atol=0.02)


def test_intervals_count_groups_and_cover():
    covered, wider = [], []
    for seed in range(8):
        X, y, bad, groups = patients(seed)
        model = SelfPacedLogisticRegression().fit(X, y, groups=[f"patient {g}" for g in groups])
        alone = SelfPacedLogisticRegression().fit(X, y)
        low, high = model.noise_rate_interval_
        covered.append(low <= bad.mean() <= high)
        wider.append(high - low >= np.diff(alone.noise_rate_interval_)[0])
    assert np.mean(covered) >= 0.9
    assert np.mean(wider) >= 0.7


def test_nothing_is_claimed_about_clean_groups():
    for seed in range(3):
        X, y, _, groups = patients(seed, wrong=0.0)
        assert not (SelfPacedLogisticRegression().fit(X, y, groups=groups).assessment_.levels() == 2).any()


def test_groups_with_an_equal_row_share_a_fold():
    X, y, _, groups = patients(1)
    X[5], y[5] = X[0], y[0]  # patients 0 and 1
    joined = np.where(groups == 1, 0, groups)
    one = SelfPacedLogisticRegression().fit(X, y, groups=groups)
    other = SelfPacedLogisticRegression().fit(X, y, groups=joined)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-10)


def test_groups_that_cannot_be():
    X, y, _, _ = patients(0)
    for groups, match in ((np.zeros(3), "one value per row"), (np.zeros(len(y)), "two different"), (X, "one value")):
        with pytest.raises(ValueError, match=f"groups must have.*{match}"):
            SelfPacedLogisticRegression().fit(X, y, groups=groups)


@pytest.mark.parametrize("absent", [None, np.nan])
def test_missing_groups_are_refused_by_their_row(absent):
    X, y, _, groups = patients(0)
    named = [f"patient {g}" for g in groups]
    named[7] = absent
    with pytest.raises(ValueError, match="groups must not have missing values, got one in row 7"):
        SelfPacedLogisticRegression().fit(X, y, groups=np.array(named, dtype=object))


def test_too_few_groups_are_told():
    X, y, _, _ = patients(0)
    model = SelfPacedLogisticRegression().fit(X, y, groups=np.arange(len(y)) % 3)
    assert "too few distinct rows or groups" in model.termination_


def test_groups_are_routed_to_the_last_step_of_a_pipeline():
    X, y, _, groups = patients(2)
    direct = SelfPacedLogisticRegression().fit(X, y, groups=groups)
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(FunctionTransformer(), SelfPacedLogisticRegression().set_fit_request(groups=True))
        model.fit(X, y, groups=groups)
    np.testing.assert_allclose(model[-1].coef_, direct.coef_)
    assert model[-1].noise_rate_interval_ == direct.noise_rate_interval_


def test_several_outputs_are_fitted_one_by_one():
    X, y, _, _ = patients(3)
    model = MultiOutputClassifier(SelfPacedLogisticRegression()).fit(X, np.column_stack([y, 1 - y]))
    assert model.predict(X).shape == (len(y), 2)
    np.testing.assert_allclose(model.estimators_[0].coef_, -model.estimators_[1].coef_, atol=0.05)
