import numpy as np
import pytest
from scipy.optimize import minimize

from selfpaced.pacing import Fixed, Geometric, Graduated, Quantile, Stages
from selfpaced.regularizers import REGISTRY, Diversity, GroupRegularizer, GroupSqrt, from_loss, get, relative
from selfpaced.solver import Alternation, Solution, alternate

ELEMENTWISE = [name for name, rule in REGISTRY.items() if not issubclass(rule, GroupRegularizer)]


class Ridge:
    """A convex problem with an exact weighted fit: losses (y - Xw)^2, penalty alpha ||w||^2."""

    def __init__(self, X, y, alpha=1e-3):
        self.X, self.y, self.alpha, self.fits = X, y, alpha, 0

    def fit(self, weights, previous):
        self.fits += 1
        W = np.ones(len(self.y)) if weights is None else weights
        gram = (self.X.T * W) @ self.X + self.alpha * np.eye(self.X.shape[1])
        return np.linalg.solve(gram, (self.X.T * W) @ self.y)

    def losses(self, model):
        return (self.y - self.X @ model) ** 2

    def penalty(self, model):
        return self.alpha * float(model @ model)


def problem(n=80, outliers=16, seed=0, scale=0.3):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=n)
    y[:outliers] += 10
    return Ridge(scale * X, scale * y)


def path_for(name):
    if name == "channel":
        return Geometric(mu=1.1, lam=0.2, stop=Stages(6))
    if name == "logarithmic":
        return Geometric(mu=1.1, lam=0.3, stop=Stages(6))
    if name == "logistic":
        return Geometric(mu=1.1, lam=0.5, stop=Stages(6))
    return Geometric(mu=1.1, fraction=0.6, floor=1e-3, stop=Stages(6))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_the_latent_objective_never_rises_within_a_stage(name):
    """Majorisation at work: asserted fit by fit, not only as reported."""
    task, rule = problem(), get(name)
    pacing = path_for(name)
    model = task.fit(None, None)
    lam = pacing.first(task.losses(model), rule)
    for number in range(1, 6):
        before = Alternation(task, rule).objective(lam, model, task.losses(model))
        for _ in range(5):
            weights = rule.weight(task.losses(model), lam)
            if weights.sum() == 0:
                break
            model = task.fit(weights, model)
            after = Alternation(task, rule).objective(lam, model, task.losses(model))
            assert after <= before * (1 + 1e-12) + 1e-12
            before = after
        lam = pacing.advance(number, lam, task.losses(model), rule) or lam
    solution = alternate(task, name, path_for(name))
    assert all(stage.rise == 0 for stage in solution.stages)


@pytest.mark.parametrize("name", ["huber", "cauchy", "l1l2", "welsch", "geman-mcclure", "barron", "tls", "logistic"])
def test_minimising_phi_directly_and_alternating_reach_the_same_point(name):
    """The latent-loss theorem: at a fixed lam the alternation is a minimiser of sum phi + penalty."""
    task, rule, lam = problem(), get(name), 0.5
    start = np.zeros(3)
    mine = alternate(task, name, Fixed(lam), initial=start, inner=5000, tolerance=1e-15)

    def objective(w):
        residual = task.y - task.X @ w
        weight = rule.weight(residual**2, lam)
        gradient = -2 * task.X.T @ (weight * residual) + 2 * task.alpha * w
        return float(rule.latent(residual**2, lam).sum()) + task.penalty(w), gradient

    direct = minimize(objective, mine.model + 1e-3, jac=True, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(direct.x, mine.model, atol=1e-6)
    assert np.abs(objective(mine.model)[1]).max() < 1e-6


def test_outliers_are_left_out_and_named():
    task = problem()
    plain = task.fit(None, None)
    solution = alternate(task, "welsch", Geometric(mu=1.1, stop=Stages(8)))
    truth = np.array([1.0, -2.0, 0.5])
    assert np.abs(solution.model - truth).max() < 0.1 < np.abs(plain - truth).max()
    assert solution.weights[:16].max() < 0.1 < 0.5 < solution.weights[16:].min()
    assert solution.losses.shape == solution.weights.shape == (80,)


def test_every_stage_is_told():
    seen = []
    solution = alternate(
        problem(),
        "cauchy",
        Geometric(mu=1.2, stop=Stages(4)),
        callback=lambda stage, so_far: seen.append((stage, so_far)),
    )
    assert [stage for stage, _ in seen] == list(solution.stages)
    assert len(solution.stages) == 4
    lams = [stage.lam for stage in solution.stages]
    np.testing.assert_allclose(np.diff(np.log(lams)), np.log(1.2))
    assert all(stage.inner >= 1 and 0 < stage.mean_weight < 1 for stage in solution.stages)
    assert solution.status == f"Stopped after 4 stages at lam = {lams[-1]:.4g}: all 4 stages are done."
    assert solution.lam == lams[-1]


def test_a_callback_may_end_the_path():
    solution = alternate(problem(), "cauchy", Geometric(), callback=lambda stage, so_far: len(so_far.stages) == 2)
    assert len(solution.stages) == 2
    assert "the callback ended the path" in solution.status


@pytest.mark.parametrize("pacing", [Geometric(mu=1.1, stop=Stages(9)), Quantile(0.5, 0.9, 9), Graduated(0.05, 1.3)])
def test_resume_continues_to_the_identical_result(pacing):
    whole = alternate(problem(), "welsch", pacing)
    part = alternate(problem(), "welsch", pacing, callback=lambda stage, so_far: len(so_far.stages) == 3)
    rest = alternate(problem(), "welsch", pacing, resume=part)
    assert len(part.stages) == 3 < len(whole.stages)
    assert rest.stages == whole.stages
    np.testing.assert_array_equal(rest.model, whole.model)
    np.testing.assert_array_equal(rest.weights, whole.weights)
    assert rest.status == whole.status


class Interrupted(Ridge):
    """Ctrl-C in the middle of the fit number ``at``."""

    at = 10

    def fit(self, weights, previous):
        if self.fits == self.at:
            self.at = -1
            raise KeyboardInterrupt
        return super().fit(weights, previous)


def test_an_interrupt_returns_the_last_complete_stage():
    source = problem()
    task = Interrupted(source.X, source.y)
    pacing = Geometric(mu=1.1, stop=Stages(9))
    solution = alternate(task, "welsch", pacing, inner=3, tolerance=0)
    assert solution.interrupted
    assert "interrupted" in solution.status
    assert 0 < len(solution.stages) < 9
    whole = alternate(source, "welsch", pacing, inner=3, tolerance=0)
    assert solution.stages == whole.stages[: len(solution.stages)]
    resumed = alternate(task, "welsch", pacing, inner=3, tolerance=0, resume=solution)
    np.testing.assert_array_equal(resumed.model, whole.model)
    assert not resumed.interrupted


def test_an_interrupt_before_the_first_stage_keeps_the_plain_model():
    task = Interrupted(problem().X, problem().y)
    task.at = 1
    solution = alternate(task, "welsch", Geometric())
    assert solution.interrupted
    assert solution.stages == ()
    np.testing.assert_allclose(solution.model, problem().fit(None, None))
    assert solution.lam == np.inf
    task.at, task.fits = 0, 0
    with pytest.raises(KeyboardInterrupt):
        alternate(task, "welsch", Geometric())


def test_repeating_a_sample_equals_weighting_it():
    source = problem()
    counts = np.random.default_rng(5).integers(0, 3, 80)
    weighted = alternate(source, "welsch", Geometric(stop=Stages(5)), sample_weight=counts)
    repeated = Ridge(np.repeat(source.X, counts, axis=0), np.repeat(source.y, counts))
    other = alternate(repeated, "welsch", Geometric(stop=Stages(5)))
    np.testing.assert_allclose(weighted.model, other.model, rtol=1e-8)
    np.testing.assert_allclose([s.objective for s in weighted.stages], [s.objective for s in other.stages], rtol=1e-8)


def test_group_rules_need_and_use_groups():
    groups = np.arange(80) % 4
    for rule in (Diversity(gamma=0.01), GroupSqrt(gamma=0.01)):
        with pytest.raises(ValueError, match="needs groups"):
            alternate(problem(), rule, Geometric())
        solution = alternate(problem(), rule, Geometric(mu=1.1, stop=Stages(5)), groups=groups)
        assert all(stage.rise == 0 for stage in solution.stages)
        assert all(solution.weights[groups == group].sum() > 0 for group in range(4))
    with pytest.raises(ValueError, match="takes no groups"):
        alternate(problem(), "hard", Geometric(), groups=groups)


def test_zero_weights_everywhere_keep_the_last_model():
    solution = alternate(problem(), "hard", Fixed(1e-12))
    assert "every weight is zero" in solution.status
    assert "the initial model is kept" in solution.status
    np.testing.assert_allclose(solution.model, problem().fit(None, None))


class Sloppy(Ridge):
    """Weighted fits that go astray: reported, not crashed on."""

    def fit(self, weights, previous):
        return super().fit(weights, previous) + (0.3 if previous is not None else 0.0)


def test_a_rising_objective_is_reported():
    source = problem()
    solution = alternate(Sloppy(source.X, source.y), "cauchy", Geometric(stop=Stages(2)))
    assert max(stage.rise for stage in solution.stages) > 0
    assert "rose by" in solution.status


def test_user_losses_and_relative_rules_run():
    rule = from_loss(lambda loss, lam: lam * loss / (lam + loss))
    assert alternate(problem(), rule, Geometric(stop=Stages(3))).weights[:16].max() < 0.3
    down = alternate(problem(), "l1l2", Geometric(stop=Stages(3)))
    up = alternate(problem(), relative(get("l1l2")), Geometric(stop=Stages(3)))
    assert down.stages[-1].lam < down.stages[0].lam
    assert up.stages[-1].lam > up.stages[0].lam


def test_half_quadratic_and_graduated_paces():
    fixed = alternate(problem(), "welsch", Fixed(0.3))
    assert len(fixed.stages) == 1
    closing = alternate(problem(), "tls", Graduated(bound=0.02, factor=1.2))
    assert closing.stages[0].mean_weight > 0.95
    assert closing.weights[:16].max() == 0


class NeedsWeights(Ridge):
    def fit(self, weights, previous):
        return super().fit(weights * 1.0, previous)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="inner must be an integer >= 1, got 0"):
        alternate(problem(), "hard", Geometric(), inner=0)
    with pytest.raises(ValueError, match="shape of the losses"):
        alternate(problem(), "hard", Geometric(), initial=np.zeros(3), sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="must not be zero everywhere"):
        alternate(problem(), "hard", Geometric(), initial=np.zeros(3), sample_weight=np.zeros(80))
    with pytest.raises(TypeError, match=r"NeedsWeights.fit\(None, None\) failed .* pass initial="):
        alternate(NeedsWeights(problem().X, problem().y), "hard", Geometric())
    source = problem()
    ones = alternate(NeedsWeights(source.X, source.y), "hard", Fixed(1.0), sample_weight=np.ones(80))
    assert isinstance(ones, Solution)
