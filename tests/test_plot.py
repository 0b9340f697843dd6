"""Displays hold plain data and draw it."""

import math

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

matplotlib = pytest.importorskip("matplotlib", reason="plots need Matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from selfpaced import (  # noqa: E402
    SelfPacedLinearRegression,
    SelfPacedLogisticRegression,
    SelfPacedMF,
    SelfPacedMultiViewKMeans,
    plot,
)
from selfpaced.regularizers import REGISTRY, GroupRegularizer  # noqa: E402
from selfpaced.selection import Candidate  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def classified():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) + 2 * np.repeat([[1], [-1]], 100, axis=0)
    y = np.repeat(["a", "b"], 100)
    wrong = np.r_[0:15, 100:115]
    y[wrong] = np.where(y[wrong] == "a", "b", "a")
    return SelfPacedLogisticRegression().fit(X, y), X, y


def test_path(classified):
    model = classified[0]
    display = plot.path(model)
    assert display.figure_ is display.ax_.figure
    score = display.ax_.lines[0].get_ydata()
    assert sorted(score) == pytest.approx(sorted(candidate.score for candidate in model.path_))
    labels = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert labels[-1] == "plain"
    weights = display.weight_ax_.lines[0].get_ydata()
    assert weights[-1] == 1.0
    display.figure_.canvas.draw()


def test_path_into_given_axes_and_through_a_pipeline(classified):
    _, X, y = classified
    model = make_pipeline(StandardScaler(), SelfPacedLogisticRegression()).fit(X, y)
    _, ax = plt.subplots()
    assert plot.PathDisplay.from_estimator(model, ax=ax, color="k").ax_ is ax
    assert ax.lines[0].get_color() == "k"


def test_path_without_scores_shows_weights_alone():
    path = [Candidate(lam=k + 1.0, mean_weight=k / 30, chosen=k == 29) for k in range(30)]
    display = plot.PathDisplay(path).plot()
    assert display.ax_ is None
    assert len(display.weight_ax_.lines[0].get_ydata()) == 30
    assert len(display.weight_ax_.get_xticks()) <= 11


def test_path_must_hold_something():
    with pytest.raises(ValueError, match="at least one candidate"):
        plot.PathDisplay([])


def test_weights_are_all_counted(classified):
    model, _, y = classified
    display = plot.weights(model)
    assert sum(bar.get_height() for bar in display.ax_.patches) == 200
    stacked = plot.weights(model, y)
    assert [text.get_text() for text in stacked.ax_.get_legend().get_texts()] == ["b", "a"]
    assert sum(bar.get_height() for bar in stacked.ax_.patches) == 200


def test_weights_per_view_and_of_a_matrix():
    rng = np.random.default_rng(1)
    views = [rng.normal(size=(30, 2)), rng.normal(size=(30, 3))]
    clusters = SelfPacedMultiViewKMeans(2, n_init=2, random_state=0).fit(views)
    assert sum(bar.get_height() for bar in plot.weights(clusters).ax_.patches) == 60
    Y = np.outer(rng.normal(size=20), rng.normal(size=15)) + 0.01 * rng.normal(size=(20, 15))
    Y[0, :3] = np.nan
    factors = SelfPacedMF(rank=1, backend="numpy", random_state=0).fit(Y)
    assert sum(bar.get_height() for bar in plot.weights(factors).ax_.patches) == 297


def test_groups_must_match():
    with pytest.raises(ValueError, match=r"one entry per weight \(3\), got 2"):
        plot.WeightsDisplay([0, 1, 1], ["a", "b"])


def test_suspects_of_classes(classified):
    model, X, y = classified
    display = plot.suspects(model, X, y, n=7)
    assert len(display.names) == len(display.ax_.patches) == 7
    assert all(" → " in name for name in display.names)
    assert display.ax_.yaxis_inverted()  # the worst on top


def test_suspects_of_values_and_entries():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 1))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    y[7] += 50
    model = SelfPacedLinearRegression().fit(X, y)
    assert plot.suspects(model, X, y, n=3).names[0].startswith("7: ")
    assert plot.suspects(model, n=3).names == plot.suspects(model, X, y, n=3).names
    Y = np.outer(rng.normal(size=20), rng.normal(size=15)) + 0.01 * rng.normal(size=(20, 15))
    Y[3, 4] = 99.0
    factors = SelfPacedMF(rank=1, backend="numpy", random_state=0).fit(Y)
    display = plot.suspects(factors)
    assert display.names[0].startswith("3, 4: 99 → ")
    assert display.label == "absolute residual"


def test_an_unfitted_estimator_is_refused():
    for draw in (plot.path, plot.weights):
        with pytest.raises(NotFittedError, match="SelfPacedLogisticRegression instance is not fitted yet"):
            draw(SelfPacedLogisticRegression())
        with pytest.raises(TypeError, match="must be a fitted estimator of selfpaced, got LogisticRegression"):
            draw(LogisticRegression())


@pytest.mark.parametrize("quantity", ["weight", "latent", "dual"])
def test_regularizers(quantity):
    display = plot.regularizers(["welsch", "huber", "l1l2"], quantity=quantity)
    assert [line.get_label() for line in display.ax_.lines] == ["welsch", "huber", "l1l2"]
    if quantity == "weight":  # one pace for all: half the weight at loss 1
        at_one = [np.interp(1.0, display.x, curve) for curve in display.curves.values()]
        assert at_one == pytest.approx([0.5] * 3)


def test_all_rules_by_default():
    drawn = set(plot.RegularizersDisplay.from_regularizers().curves)
    elementwise = {name for name, rule in REGISTRY.items() if not issubclass(rule, GroupRegularizer)}
    assert {"welsch", "huber", "cauchy", "l1l2", "hard", "tukey"} <= drawn <= elementwise


def test_regularizers_at_a_given_pace():
    display = plot.RegularizersDisplay.from_regularizers(["welsch"], lam=2.0, x=[0.0, 4.0])
    assert display.curves["welsch"] == pytest.approx([1.0, math.exp(-1)])
    with pytest.raises(ValueError, match="quantity must be one of"):
        plot.regularizers(["welsch"], quantity="nothing")
    with pytest.raises(ValueError, match="lam"):
        plot.regularizers(["logarithmic"], lam=2.0)
