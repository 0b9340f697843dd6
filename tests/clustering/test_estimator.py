"""The clusterer: scikit-learn's checks, every rule, robustness, weights, restarts."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from selfpaced import SelfPacedMultiViewKMeans
from selfpaced.clustering import paced
from selfpaced.clustering.paced import pace_of, resolve
from selfpaced.datasets import make_multiview_digits
from selfpaced.pacing import Fixed, Geometric, Ladder, Span, Stages, half_loss
from selfpaced.regularizers import REGISTRY, Regularizer, Welsch, from_loss
from selfpaced_experiments.metrics import clustering_accuracy

RULES = sorted(name for name, rule in REGISTRY.items() if issubclass(rule, Regularizer))


def blobs(n=150, clusters=3, widths=(4, 3), seed=0, spread=0.5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % clusters
    views = [rng.normal(0, 3, (clusters, d))[y] + spread * rng.standard_normal((n, d)) for d in widths]
    return views, y


def model(n_clusters=3, **settings):
    settings = {"n_init": 4, "random_state": 0} | settings
    return SelfPacedMultiViewKMeans(n_clusters, **settings)


@parametrize_with_checks([SelfPacedMultiViewKMeans(n_init=4)])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("rule", [*RULES, "mspl", "MSPL", "mixture", None, Welsch()])
def test_every_rule_finds_clear_clusters(rule, two_views):
    views, y = two_views
    found = model(regularizer=rule).fit(views)
    assert clustering_accuracy(y, found.labels_) == 1
    assert found.sample_weight_.min() >= 0
    assert found.sample_weight_.max() <= 1
    assert found.sample_weight_.shape == found.sample_loss_.shape == (150, 2)
    np.testing.assert_array_equal(found.predict(views), found.labels_)
    assert len(found.path_) == (1 if rule is None else pace_of(resolve(rule), "auto")[0].stages)
    assert [c.chosen for c in found.path_] == [False] * (len(found.path_) - 1) + [True]


def test_a_loss_of_one_s_own(two_views):
    views, y = two_views
    rule = from_loss(lambda loss, lam: lam * np.log1p(loss / lam))
    assert clustering_accuracy(y, model(regularizer=rule).fit(views).labels_) == 1


@pytest.mark.parametrize("rule", ["diversity", "group-sqrt"])
def test_group_rules_are_refused(rule, two_views):
    with pytest.raises(ValueError, match="elementwise rule"):
        model(regularizer=rule).fit(two_views[0])


def plan(rule, pace="auto", restarts=3):
    pacing, typical = pace_of(resolve(rule), pace)
    return paced.Plan(resolve(rule), pacing, typical, restarts, keep=5, max_iter=50, tol=0)


def costs(rule, median):
    """The latent loss at every pace, for data of this median loss."""
    made = plan(rule)
    pacing = made.paced(median)
    step = paced.Settling(made, pacing, None, made.unit(median), None)
    return [step.cost(lam) for lam in pacing.lams]


def test_mspl_is_the_logistic_rule():
    assert resolve("mspl") == resolve("logistic")
    cost = costs("mspl", median=0.3)[0]
    # A sample of median loss starts at half weight although the rule is not free of scale.
    assert cost.weight(np.array([0.3]))[0] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_pace_runs_from_half_weight_at_the_median_to_the_end(rule):
    pace, _ = pace_of(resolve(rule), "auto")
    first, *_, last = costs(rule, median=0.02)
    assert first.weight(np.array([0.02]))[0] == pytest.approx(0.5, abs=0.5 if rule == "hard" else 1e-3)
    assert half_loss(last.rule, last.lam) * last.unit == pytest.approx(0.02 * pace.end, rel=1e-3)


def test_plain_is_k_means():
    views, _ = blobs(spread=2.0, seed=3)
    X = np.hstack(views)
    found = model(regularizer=None, view_scaling="none", n_init=20).fit(X)
    peer = KMeans(3, n_init=20, random_state=0, tol=0).fit(X)
    assert found.inertia_ == pytest.approx(peer.inertia_, rel=1e-3)
    assert adjusted_rand_score(found.labels_, peer.labels_) > 0.97
    assert found.lam_ == np.inf
    np.testing.assert_array_equal(found.sample_weight_, 1)


def test_objective_is_the_latent_loss_it_says():
    views, _ = blobs(spread=2.0)
    found = model().fit(views)
    latent = Welsch().latent(found.sample_loss_.astype(float), found.lam_)
    assert found.objective_ == pytest.approx(latent.sum(), rel=1e-4)
    np.testing.assert_allclose(found.sample_weight_, Welsch().weight(found.sample_loss_, found.lam_), rtol=1e-4)
    np.testing.assert_allclose(found.transform(views).min(axis=1), latent.mean(axis=1), rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(found.transform(views).argmin(axis=1), found.labels_)


@pytest.mark.parametrize("rule", ["welsch", "cauchy", "l1l2"])
def test_sweeps_at_one_pace_never_raise_the_objective(rule):
    views, _ = blobs(spread=2.0, n=300)
    data = paced.Views(tuple(view.astype(np.float32) for view in views))
    now = paced._start(data, 3, plan(rule), np.random.default_rng(0))
    cost = costs(rule, now.median_loss())[0]
    seen = []
    for _ in range(6):
        now = now.swept(cost, None)
        seen.append(now.last.objective)
    assert (np.diff(seen, axis=0) <= 1e-4 * seen[0]).all()


def corrupted(seed=0, share=0.2, scale=10.0):
    views, y = blobs(n=300, clusters=4, widths=(5, 4, 6), seed=seed)
    rng = np.random.default_rng(seed + 1)
    bad = rng.permutation(300)[: int(300 * share)]
    for view in views:
        view[bad] = scale * view.std(axis=0) * rng.standard_normal((len(bad), view.shape[1]))
    clean = np.ones(300, bool)
    clean[bad] = False
    return views, y, clean


def test_gross_outliers_leave_the_clusters_alone_and_are_flagged():
    views, y, clean = corrupted()
    found = model(4, n_init=10).fit(views)
    assert clustering_accuracy(y[clean], found.labels_[clean]) == 1
    assert found.outliers_[~clean].all()
    assert found.outliers_[clean].mean() < 0.02
    assert found.sample_weight_[~clean].mean() < 0.1 < found.sample_weight_[clean].mean()
    peer = KMeans(4, n_init=10, random_state=0).fit(np.hstack(views))
    assert clustering_accuracy(y[clean], peer.labels_[clean]) < 0.9


def test_single_view_is_a_robust_k_means():
    views, y, clean = corrupted(seed=4)
    found = model(4, n_init=10).fit(views[0])
    assert clustering_accuracy(y[clean], found.labels_[clean]) > 0.95
    assert found.cluster_centers_.shape == (4, 5)


def test_a_noise_view_gets_less_weight():
    views, y = blobs(n=300, widths=(4, 5))
    noise = np.random.default_rng(9).standard_normal((300, 6))
    found = model().fit({"a": views[0], "b": views[1], "noise": noise})
    assert clustering_accuracy(y, found.labels_) == 1
    weight = dict(zip(found.view_names_, found.view_weight_, strict=True))
    assert weight["noise"] < 0.7 * min(weight["a"], weight["b"])


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_shuffled_view_gets_a_low_weight(share):
    views, y = blobs(n=300, widths=(4, 5, 6), spread=1.0)
    rng = np.random.default_rng(3)
    views[1] = views[1][rng.permutation(300)]
    lost = rng.random(300) < share
    views[0][lost] = np.nan
    found = model().fit(views)
    assert found.view_weight_[1] < 0.1 * min(found.view_weight_[0], found.view_weight_[2])
    assert clustering_accuracy(y, found.labels_) > 0.95
    np.testing.assert_array_equal(found.predict(views), found.labels_)
    same = model(view_scaling="zscore").fit(views)
    assert same.view_weight_[1] > 0.3 * same.view_weight_.max()


@pytest.mark.parametrize("embedding", [None, "spectral"])
def test_sample_weight_is_repetition_and_zero_is_absence(embedding):
    views, _ = blobs(n=120, spread=1.5, seed=2)
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, 120)
    rows = rng.permutation(np.repeat(np.arange(120), counts))
    weighted = model(embedding=embedding).fit(views, sample_weight=counts)
    repeated = model(embedding=embedding).fit([view[rows] for view in views])
    np.testing.assert_array_equal(weighted.labels_[rows], repeated.labels_)
    np.testing.assert_array_equal(weighted.outliers_[rows], repeated.outliers_)
    np.testing.assert_allclose(weighted.view_weight_, repeated.view_weight_, rtol=1e-6)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    assert len(weighted.labels_) == 120


@pytest.mark.parametrize("weight", [np.ones(3), -np.ones(150), np.zeros(150), np.full(150, np.nan)])
def test_bad_sample_weight(weight, two_views):
    with pytest.raises(ValueError, match="sample_weight must"):
        model().fit(two_views[0], sample_weight=weight)


@pytest.mark.parametrize("embedding", [None, "spectral"])
def test_order_of_the_rows_does_not_matter(embedding):
    views, _ = blobs(n=200, spread=1.5)
    order = np.random.default_rng(1).permutation(200)
    one, other = (model(embedding=embedding).fit(part) for part in (views, [view[order] for view in views]))
    np.testing.assert_array_equal(one.labels_[order], other.labels_)


def test_scale_of_the_data_does_not_matter():
    views, _ = blobs(spread=1.5)
    for scaling in ("zscore", "none"):
        one = model(view_scaling=scaling).fit(views)
        other = model(view_scaling=scaling).fit([1e-3 * view for view in views])
        assert adjusted_rand_score(one.labels_, other.labels_) == 1, scaling


def test_same_seed_same_result_and_state_survives_pickle(two_views):
    views, _ = two_views
    first, second = model().fit(views), model().fit(views)
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.objective_ == second.objective_
    back = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(back.predict(views), first.labels_)
    assert clone(first).get_params() == first.get_params()


def test_the_restart_of_least_latent_objective_wins():
    digits = make_multiview_digits()
    rows = np.arange(0, 1797, 4)
    views = tuple(np.float32(view[rows] / view[rows].std() / view.shape[1] ** 0.5) for view in digits.views.values())
    # One and the same pace for both runs, or their objectives would not compare.
    pace = Ladder(Span(1.0, 2.2, 4).lams(0.5, Welsch()))
    found = [
        paced.fit_paced(paced.Views(views), 10, plan("welsch", pace, restarts), np.random.default_rng(3))
        for restarts in (1, 20)
    ]
    assert found[1].objective < found[0].objective


def test_many_samples_start_on_a_subset(monkeypatch):
    monkeypatch.setattr(paced, "STAGE_SAMPLES", 100)
    views, y = blobs(n=3000)
    found = model().fit(views)
    assert clustering_accuracy(y, found.labels_) > 0.99
    assert len(found.labels_) == 3000
    np.testing.assert_array_equal(found.predict(views), found.labels_)


def test_no_convergence_is_a_warning_and_a_model():
    views, _ = blobs(spread=3.0, n=300)
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=1"):
        found = model(max_iter=1).fit(views)
    assert "stopped by max_iter = 1" in found.termination_
    assert len(found.labels_) == 300


def test_fewer_distinct_samples_than_clusters_is_a_warning():
    X = np.repeat(np.array([[0.0, 1.0], [5.0, 2.0]]), 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="distinct samples"):
        found = model().fit(X)
    assert found.inertia_ == pytest.approx(0, abs=1e-6)


def test_categories_where_most_samples_coincide():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    X = np.eye(3)[y]
    X[:10] += rng.normal(0, 0.2, (10, 3))
    found = model().fit(X)
    assert clustering_accuracy(y, found.labels_) == 1
    assert found.lam_ > 1e-3


def test_path_and_callback_report_every_stage(two_views):
    seen = []
    found = model(pace=Span(stages=5), callback=lambda stage, solution: seen.append((stage, solution)))
    found.fit(two_views[0])
    assert [stage.lam for stage, _ in seen] == [candidate.lam for candidate in found.path_]
    assert [stage.mean_weight for stage, _ in seen] == pytest.approx([c.mean_weight for c in found.path_])
    assert len(seen) == 5
    weights = [candidate.mean_weight for candidate in found.path_]
    assert weights == sorted(weights)
    assert found.path_[-1].lam == found.lam_
    assert found.termination_.startswith("Welsch stage 5 was chosen")
    assert "converged" in found.termination_


def test_the_callback_may_end_the_path(two_views):
    found = model(callback=lambda stage, solution: stage.lam > 0).fit(two_views[0])
    assert len(found.path_) == 1
    assert clustering_accuracy(two_views[1], found.labels_) == 1


@pytest.mark.parametrize("pace", ["paper", 0.5, Fixed(0.5), Geometric(mu=1.3, stop=Stages(4)), Span(0.5, 3.0, 6)])
def test_every_kind_of_pace(pace, two_views):
    views, y = two_views
    found = model(pace=pace).fit(views)
    assert clustering_accuracy(y, found.labels_) == 1
    assert sum(candidate.chosen for candidate in found.path_) == 1
    np.testing.assert_array_equal(found.predict(views), found.labels_)


@pytest.mark.parametrize("pace", [0.5, Fixed(0.5)])
def test_a_number_is_one_fixed_lam(pace, two_views):
    assert model(pace=pace).fit(two_views[0]).lam_ == 0.5


def interrupt_at(monkeypatch, call):
    """Raise KeyboardInterrupt from the given sweep on."""
    calls, real = [], paced.sweep

    def sweep(*args, **kwargs):
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(paced, "sweep", sweep)


@pytest.mark.parametrize("call", [4, 6, 8, 10])
def test_an_interrupt_keeps_the_last_complete_stage(call, two_views, monkeypatch):
    whole = model().fit(two_views[0])
    interrupt_at(monkeypatch, call)
    found = model()
    with pytest.raises(KeyboardInterrupt, match="kept"):
        found.fit(two_views[0])
    assert len(found.path_) < len(whole.path_) or call == 4
    assert found.termination_.startswith("Interrupted from outside")
    np.testing.assert_array_equal(found.predict(two_views[0]), found.labels_)
    if call > 4:
        assert [c.lam for c in found.path_] == [c.lam for c in whole.path_[: len(found.path_)]]


def test_an_interrupt_before_there_is_a_model_leaves_everything_as_it_was(two_views, monkeypatch):
    unfitted, old = model(), model().fit(two_views[0])
    labels = old.labels_
    interrupt_at(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        unfitted.fit(two_views[0])
    assert not [name for name in vars(unfitted) if name.endswith("_")]
    monkeypatch.undo()
    interrupt_at(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        old.fit([view[:50] for view in two_views[0]])
    monkeypatch.undo()
    assert old.labels_ is labels
    np.testing.assert_array_equal(old.predict(two_views[0]), labels)


def test_the_assessment_of_samples(two_views):
    views, _ = two_views
    far = [view.copy() for view in views]
    for view in far:
        view[7] += 40.0
    found = model().fit(far)
    assessment = found.assessment_
    assert assessment.ranking(1).tolist() == [7]
    assert assessment.wrong[7] > 0.99
    np.testing.assert_array_equal(assessment.weight, found.sample_weight_)
    assert found.assess(far) is assessment
    new = found.assess([view[:20] for view in far])
    np.testing.assert_allclose(new.weight, found.sample_weight_[:20], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(new.diagnosis.given, assessment.diagnosis.given[:20], rtol=1e-5)


def test_a_missing_view_has_no_weight(two_views):
    views = [view.copy() for view in two_views[0]]
    views[1][3] = np.nan
    found = model().fit(views)
    assert found.assessment_.weight[3].tolist() == [found.sample_weight_[3, 0], 0.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer >= 1, .*, got 0"),
        ({"n_init": 1.5}, "n_init must be an integer"),
        ({"view_scaling": "minmax"}, "view_scaling must be .auto.*or .none., got"),
        ({"embedding": "umap"}, "embedding must be None or 'spectral', got 'umap'"),
        ({"pace": -1}, "pace must be 'auto', 'paper', a positive number"),
        ({"pace": "slow"}, "pace must be 'auto', 'paper', a positive number"),
        ({"outlier_threshold": 0}, "outlier_threshold must be a positive number, got 0"),
        ({"tol": -1}, "tol must be a finite number >= 0"),
        ({"regularizer": "welsh"}, "did you mean 'welsch'"),
    ],
)
def test_bad_parameters(settings, message, two_views):
    with pytest.raises(ValueError, match=message):
        model().set_params(**settings).fit(two_views[0])


def test_pandas_output(two_views):
    found = model().set_output(transform="pandas").fit(two_views[0][0])
    frame = found.transform(two_views[0][0])
    assert list(frame.columns) == [f"selfpacedmultiviewkmeans{k}" for k in range(3)]
