"""Paces that leave too little to learn from: the model before is kept, and says why."""

import re

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor

from selfpaced import SelfPacedClassifier, SelfPacedRegressor
from selfpaced.pacing import Geometric, Ladder, Stages

X, LABELS = make_blobs(300, random_state=0)
VALUES = X @ [1.0, -2.0] + np.random.default_rng(0).normal(size=300)


def test_rows_that_lose_their_weight_do_not_leave_a_model_of_a_few():
    model = SelfPacedClassifier(GaussianNB(), pace=Geometric(stop=Stages(3)))
    with pytest.warns(ConvergenceWarning, match="the plain model is used: at lam = .* every weight is zero"):
        model.fit(X, LABELS)
    assert "The plain model is used: at lam = " in model.termination_
    assert (model.lam_, len(model.path_)) == (np.inf, 2)
    assert (model.sample_weight_ == 1).all()
    np.testing.assert_array_equal(model.predict(X), GaussianNB().fit(X, LABELS).predict(X))


def test_the_last_stage_that_rows_were_left_for_is_kept():
    model = SelfPacedRegressor(Ridge(), regularizer="hard", pace=Ladder((4.0, 1e-30)), cross_fit=False)
    model.fit(X, VALUES)
    assert model.lam_ == 4.0
    assert model.sample_weight_.any()
    assert re.search(r"at lam = 1e-30 every weight is zero", model.termination_)


def test_rows_that_are_too_few_to_predict_from_are_told():
    base = KNeighborsRegressor(100)
    model = SelfPacedRegressor(base, regularizer="hard", pace=Ladder((1e-2,))).fit(X, VALUES)
    assert "the model cannot be fitted to the rows that keep weight (Expected n_neighbors" in model.termination_
    np.testing.assert_array_equal(model.predict(X), base.fit(X, VALUES).predict(X))
