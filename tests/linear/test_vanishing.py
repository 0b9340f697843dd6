"""A class that is lost along a given pace is not lost in silence."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from selfpaced import SelfPacedLogisticRegression
from selfpaced.pacing import Geometric, Ladder, Span, Stages

X, Y = make_blobs(300, random_state=0)
X = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("rule", ["welsch", "hard", "tukey"])
def test_where_no_stage_keeps_every_class_the_plain_model_is_kept(rule):
    model = SelfPacedLogisticRegression(rule, pace=Span(1.0, 8.0, 3), C=1.0)
    with pytest.warns(ConvergenceWarning, match="the plain model was kept: at lam = .* a class is left without weight"):
        model.fit(X, Y)
    assert model.termination_.startswith("The plain model was kept: at lam = ")
    assert [candidate.chosen for candidate in model.path_] == [True, False, False, False]
    np.testing.assert_array_equal(model.coef_, model.plain_.coef_)
    assert model.score(X, Y) > 0.9


def test_else_the_last_stage_that_does():
    model = SelfPacedLogisticRegression("welsch", pace=Ladder((3.0, 0.05)), C=1.0).fit(X, Y)
    assert model.lam_ == 3.0
    assert "Stage 1 was kept: at lam = 0.05 a class is left without weight" in model.termination_
    assert model.score(X, Y) > 0.9


def test_classes_that_come_back_are_waited_for():
    """Half of the rows are of few classes; with them begins what the paper calls learning from easy to hard."""
    first = SelfPacedLogisticRegression("welsch", pace=Geometric(stop=Stages(1)), C=1.0)
    with pytest.warns(ConvergenceWarning, match="a class is left without weight"):
        first.fit(X, Y)
    model = SelfPacedLogisticRegression("welsch", pace=Geometric(mu=1.5, stop=Stages(12)), C=1.0).fit(X, Y)
    assert model.termination_.startswith("Stopped after 12 stages")
    assert model.score(X, Y) > 0.9
