import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from selfpaced.regularizers import Diversity, check, from_loss, get

LOSS = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 50)])


def welsch_phi(loss, lam):
    return lam**2 * (1 - np.exp(-loss / lam**2))


def huber_phi2(t, lam):
    return np.where(t <= lam, t**2 / 2, lam * t - lam**2 / 2)


def l1l2_phi(loss, lam):
    return np.sqrt(lam + loss) - np.sqrt(lam)


def geman_phi2(t, lam):
    return lam**2 * t**2 / (lam**2 + t**2)


@pytest.mark.parametrize(
    ("phi", "form", "name"),
    [
        (welsch_phi, "loss", "welsch"),
        (huber_phi2, "quadratic", "huber"),
        (l1l2_phi, "loss", "l1l2"),
        (geman_phi2, "quadratic", "geman-mcclure"),
    ],
)
def test_a_written_phi_gives_the_built_in_rule(phi, form, name):
    mine, theirs = from_loss(phi, form=form), get(name)
    assert mine.derivative == "complex step"
    assert (mine.opens, mine.relative_opens) == (theirs.opens, theirs.relative_opens)
    for lam in (0.3, 1.0, 5.0):
        np.testing.assert_allclose(mine.weight(LOSS, lam), theirs.weight(LOSS, lam), rtol=1e-10, atol=1e-15)
        np.testing.assert_allclose(mine.latent(LOSS, lam), theirs.latent(LOSS, lam), rtol=1e-6, atol=1e-9)
        weights = np.linspace(0.05, 1, 20) * theirs.max_weight(lam)
        np.testing.assert_allclose(mine.dual(weights, lam), theirs.dual(weights, lam), rtol=1e-6, atol=1e-8)


def test_float32_is_kept_and_exact():
    weight = from_loss(welsch_phi).weight(LOSS.astype(np.float32), 1.0)
    assert weight.dtype == np.float32
    np.testing.assert_allclose(weight, np.exp(-LOSS), rtol=1e-5, atol=1e-30)


def test_finite_differences_are_a_last_resort_and_say_so():
    with pytest.warns(UserWarning, match="finite differences"):
        rule = from_loss(lambda loss, lam: np.log1p(np.abs(loss) / lam))
    assert rule.derivative == "finite differences"
    np.testing.assert_allclose(rule.weight([0.5, 2.0], 1.0), [1 / 1.5, 1 / 3], rtol=1e-5)


def test_it_pickles_by_its_function():
    rule = from_loss(welsch_phi)
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert rule.name == "welsch_phi"


def test_bad_arguments():
    with pytest.raises(ValueError, match="form must be 'loss' or 'quadratic', got 'cubic'"):
        from_loss(welsch_phi, form="cubic")
    with pytest.raises(TypeError, match="phi must be callable"):
        from_loss(3.0)


@pytest.mark.parametrize("name", ["huber", "cauchy", "l1l2", "welsch", "geman-mcclure", "tukey", "barron", "tls"])
@pytest.mark.parametrize("form", ["loss", "quadratic"])
def test_check_passes_the_implicit_rules(name, form):
    report = check(name, form=form)
    assert report, str(report)
    assert len(report.conditions) == 11


@pytest.mark.parametrize(
    "name", ["linear", "mixture-jiang", "mixture-zhao", "logistic", "channel", "diversity", "group-sqrt"]
)
def test_check_passes_the_smooth_explicit_rules(name):
    report = check(name)
    assert report, str(report)


def test_check_finds_the_jump_of_hard_selection():
    report = check("hard")
    assert [condition.name for condition in report.failures] == ["H2 smooth"]
    assert report["H2 smooth"].loss == pytest.approx(report["H2 smooth"].lam, rel=1e-6)


def test_check_finds_that_logarithmic_turns_round():
    """Above lam = 1 - 1/e the weight of a small loss falls again: the rule breaks condition 5 there."""
    failure = check("logarithmic")["5 monotone"]
    assert not failure
    assert failure.lam > 1 - 1 / np.e
    rule = get("logarithmic")
    assert rule.weight(0.1, 0.97) < rule.weight(0.1, 0.9)


def test_check_finds_the_misprint_of_table_1():
    report = check(from_loss(lambda loss, lam: np.sqrt(lam + loss) - 1))
    assert not report["H1 zero"]
    assert report["H1 zero"].loss == 0
    assert report["H1 zero"].lam != 1  # at lam = 1 alone the printed form would pass
    assert report["H2 concave"]
    assert "FAILS" in str(report)


@dataclass(frozen=True)
class PrintedDiversity(Diversity):
    """The threshold as the paper prints it, with the square roots subtracted."""

    def threshold(self, rank, lam):
        return lam + self.gamma / (np.sqrt(rank) - np.sqrt(rank - 1))


def test_check_finds_the_misprint_of_the_diversity_rule():
    report = check(PrintedDiversity(gamma=1.0))
    assert not report["2 minimizer"]
    assert report["2 minimizer"].lam > 0
    assert check(Diversity(gamma=1.0))


def test_check_fails_a_convex_loss():
    report = check(lambda loss, lam: loss**2 / lam)
    failed = {condition.name for condition in report.failures}
    assert {"H2 concave", "H3 limit", "4 decreasing"} <= failed
    assert report["H2 concave"].loss > 0


def test_check_fails_the_plain_loss():
    """The identity is concave, but it does not saturate: H3."""
    assert not check(lambda loss, lam: loss + 0 * lam)["H3 limit"]


def test_report_prints_as_a_table_and_is_indexed_by_name():
    report = check("cauchy")
    lines = str(report).splitlines()
    assert lines[0] == "cauchy in the loss form: all conditions hold"
    assert len(lines) == 2 + len(report.conditions)
    with pytest.raises(KeyError, match="no condition 'H9'"):
        report["H9"]
    with pytest.raises(ValueError, match="form must be"):
        check("cauchy", form="cubic")
