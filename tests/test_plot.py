"""Figures show what the fitted model holds."""

import copy
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
    ax = plot.path(model)
    score = ax.lines[0].get_ydata()
    assert sorted(score) == pytest.approx(sorted(candidate.score for candidate in model.path_))
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels[-1] == "plain"
    weight_ax = ax.figure.axes[1]
    assert weight_ax.lines[0].get_ydata()[-1] == 1.0
    ax.figure.canvas.draw()


def test_path_into_given_axes_and_through_a_pipeline(classified):
    _, X, y = classified
    model = make_pipeline(StandardScaler(), SelfPacedLogisticRegression()).fit(X, y)
    _, ax = plt.subplots()
    assert plot.path(model, ax=ax, color="k") is ax
    assert ax.lines[0].get_color() == "k"


def test_path_without_scores_shows_weights_alone(classified):
    model = copy.copy(classified[0])
    model.path_ = tuple(Candidate(lam=k + 1.0, mean_weight=k / 30, chosen=k == 29) for k in range(30))
    ax = plot.path(model)
    assert ax.figure.axes == [ax]
    assert ax.get_ylabel() == "mean weight"
    assert len(ax.lines[0].get_ydata()) == 30
    assert len(ax.get_xticks()) <= 11


def test_weights_are_all_counted(classified):
    model, _, y = classified
    assert sum(bar.get_height() for bar in plot.weights(model).patches) == 200
    stacked = plot.weights(model, y)
    assert [text.get_text() for text in stacked.get_legend().get_texts()] == ["b", "a"]
    assert sum(bar.get_height() for bar in stacked.patches) == 200


def test_weights_per_view_and_of_a_matrix():
    rng = np.random.default_rng(1)
    views = [rng.normal(size=(30, 2)), rng.normal(size=(30, 3))]
    clusters = SelfPacedMultiViewKMeans(2, n_init=2, random_state=0).fit(views)
    assert sum(bar.get_height() for bar in plot.weights(clusters).patches) == 60
    Y = np.outer(rng.normal(size=20), rng.normal(size=15)) + 0.01 * rng.normal(size=(20, 15))
    Y[0, :3] = np.nan
    factors = SelfPacedMF(rank=1, backend="numpy", random_state=0).fit(Y)
    assert sum(bar.get_height() for bar in plot.weights(factors).patches) == 297


def test_labels_must_match(classified):
    with pytest.raises(ValueError, match=r"one label per weight \(200\), got 2"):
        plot.weights(classified[0], ["a", "b"])


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_suspects_of_classes(classified):
    model, X, y = classified
    ax = plot.suspects(model, X, y, n=7)
    assert len(names(ax)) == len(ax.patches) == 7
    assert all(" → " in name for name in names(ax))
    assert ax.yaxis_inverted()  # the worst on top


def test_suspects_of_values_and_entries():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 1))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    y[7] += 50
    model = SelfPacedLinearRegression().fit(X, y)
    assert names(plot.suspects(model, X, y, n=3))[0].startswith("7: ")
    assert names(plot.suspects(model, n=3)) == names(plot.suspects(model, X, y, n=3))
    Y = np.outer(rng.normal(size=20), rng.normal(size=15)) + 0.01 * rng.normal(size=(20, 15))
    Y[3, 4] = 99.0
    factors = SelfPacedMF(rank=1, backend="numpy", random_state=0).fit(Y)
    ax = plot.suspects(factors)
    assert names(ax)[0].startswith("3, 4: 99 → ")
    assert ax.get_xlabel() == "absolute residual"


def test_an_unfitted_estimator_is_refused():
    for draw in (plot.path, plot.weights):
        with pytest.raises(NotFittedError, match="SelfPacedLogisticRegression instance is not fitted yet"):
            draw(SelfPacedLogisticRegression())
        with pytest.raises(TypeError, match="must be a fitted estimator of selfpaced, got LogisticRegression"):
            draw(LogisticRegression())


@pytest.mark.parametrize("quantity", ["weight", "latent", "dual"])
def test_regularizers(quantity):
    lines = plot.regularizers(["welsch", "huber", "l1l2"], quantity=quantity).lines
    assert [line.get_label() for line in lines] == ["welsch", "huber", "l1l2"]
    if quantity == "weight":  # one pace for all: half the weight at loss 1
        at_one = [np.interp(1.0, *line.get_data()) for line in lines]
        assert at_one == pytest.approx([0.5] * 3)


def test_all_rules_by_default():
    drawn = {line.get_label() for line in plot.regularizers().lines}
    elementwise = {name for name, rule in REGISTRY.items() if not issubclass(rule, GroupRegularizer)}
    assert {"welsch", "huber", "cauchy", "l1l2", "hard", "tukey"} <= drawn <= elementwise


def test_regularizers_at_a_given_pace():
    (line,) = plot.regularizers(["welsch"], lam=2.0, x=[0.0, 4.0]).lines
    assert line.get_ydata() == pytest.approx([1.0, math.exp(-1)])
    with pytest.raises(ValueError, match="quantity must be one of"):
        plot.regularizers(["welsch"], quantity="nothing")
    with pytest.raises(ValueError, match="lam"):
        plot.regularizers(["logarithmic"], lam=2.0)
