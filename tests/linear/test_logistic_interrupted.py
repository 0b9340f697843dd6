"""Ctrl-C in a logistic fit: it always reaches the caller, and the best complete model so far is kept."""

import logging
import math
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from selfpaced import SelfPacedLogisticRegression
from selfpaced.fitting import FitInterrupted
from selfpaced.pacing import Geometric, Stages

PACES = ["auto", "paper", 1.0, Geometric(mu=1.2, lam=2.0, stop=Stages(3))]


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(200, centers=[[-1, 0], [1, 0]], random_state=0)
    flipped = np.random.default_rng(0).random(200) < 0.25
    return X, np.where(flipped, 1 - y, y)


class Interrupt(logging.Handler):
    """Raises Ctrl-C when the k-th stage of a fit is logged; counts stages."""

    def __init__(self, k):
        super().__init__()
        self.k, self.names = k, []

    def emit(self, record):
        self.names.append(record.getMessage())
        if len(self.names) == self.k:
            raise KeyboardInterrupt


@contextmanager
def interrupted_at(k):
    logger, handler = logging.getLogger("selfpaced"), Interrupt(k)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def stages(pace, blobs):
    with interrupted_at(math.inf) as handler:
        SelfPacedLogisticRegression(pace=pace).fit(*blobs)
    return handler.names


@pytest.mark.parametrize("pace", PACES, ids=str)
def test_before_the_plain_model_nothing_is_kept(blobs, pace):
    model = SelfPacedLogisticRegression(pace=pace)
    with interrupted_at(1), pytest.raises(KeyboardInterrupt, match="before it had a complete model"):
        model.fit(*blobs)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("pace", PACES, ids=str)
def test_after_that_a_whole_model_is_kept(blobs, pace):
    X, y = blobs
    total = len(stages(pace, blobs))
    assert total >= 3
    for k in np.unique(np.linspace(2, total, 6).astype(int)):  # the first two stages, the last, and some between
        model = SelfPacedLogisticRegression(pace=pace)
        with interrupted_at(k), pytest.raises(FitInterrupted, match="model is kept") as stop:
            model.fit(X, y)
        assert model.termination_ in str(stop.value)
        assert model.predict_proba(X).shape == (200, 2)
        assert len(model.path_) >= 1
        np.testing.assert_array_equal(model.assess(X, y).weight, model.sample_weight_)
        if "plain model" in model.termination_:
            np.testing.assert_array_equal(model.coef_, model.plain_.coef_)
            np.testing.assert_array_equal(model.sample_weight_, 1.0)
            assert math.isinf(model.lam_)


def test_an_interrupted_noise_model_leaves_the_chosen_model(blobs):
    reference = SelfPacedLogisticRegression().fit(*blobs)
    assert not np.array_equal(reference.coef_, reference.plain_.coef_)
    names = stages("auto", blobs)
    assert "noise model" in names[-1]
    model = SelfPacedLogisticRegression()
    with interrupted_at(len(names)), pytest.raises(FitInterrupted, match="model is kept"):
        model.fit(*blobs)
    assert model.lam_ == reference.lam_
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    assert model.noise_rate_interval_ == (0.0, 1.0)  # nothing is known about the noise
    assert math.isnan(model.noise_rate_)
    assert not (model.assessment_.levels() == 2).any()
    assert sum(candidate.chosen for candidate in model.path_) == 1


def test_an_interrupted_refit_leaves_the_old_model_whole(blobs):
    X, y = blobs
    model = SelfPacedLogisticRegression().fit(X, y)
    before = dict(vars(model))
    with interrupted_at(1), pytest.raises(KeyboardInterrupt):
        model.fit(np.column_stack([X, X]), np.where(y == 1, "a", "b"))
    assert vars(model) == before
    assert model.predict(X).shape == (200,)
