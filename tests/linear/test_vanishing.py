"""A class that a given pace leaves without weight is reported."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from selfpaced import SelfPacedLogisticRegression
from selfpaced.pacing import Geometric, Ladder, Span, Stages

X, Y = make_blobs(300, random_state=0)
X = (X - X.mean(axis=0)) / X.std(axis=0)


def mean_weights(model):
    return np.array([model.sample_weight_[y == Y].mean() for y in np.unique(Y)])


SPAN = Span(1.0, 8.0, 3)


@pytest.mark.parametrize(
    ("rule", "pace"), [("welsch", SPAN), ("hard", SPAN), ("tukey", SPAN), ("welsch", Ladder((3.0, 0.05)))], ids=str
)
def test_a_class_without_weight_is_a_warning_and_the_model_of_the_pace_is_kept(rule, pace):
    model = SelfPacedLogisticRegression(rule, pace=pace, C=1.0)
    with pytest.warns(ConvergenceWarning, match="without weight"):
        model.fit(X, Y)
    assert np.isfinite(model.lam_)
    assert model.path_[-1].chosen
    assert model.path_[-1].lam == model.lam_
    assert mean_weights(model).min() < 1e-3 * mean_weights(model).max()


def test_classes_that_come_back_are_no_warning():
    """The first half of the rows is of few classes; later stages have all of them."""
    first = SelfPacedLogisticRegression("welsch", pace=Geometric(stop=Stages(1)), C=1.0)
    with pytest.warns(ConvergenceWarning, match="without weight"):
        first.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SelfPacedLogisticRegression("welsch", pace=Geometric(mu=1.5, stop=Stages(12)), C=1.0).fit(X, Y)
    assert len(model.path_) == 13
    assert model.score(X, Y) > 0.9
    assert mean_weights(model).min() > 0.5
