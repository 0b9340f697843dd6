"""Ctrl-C in a logistic fit is raised again; once there is a complete model, the estimator keeps the best."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from selfpaced import SelfPacedLogisticRegression
from selfpaced.linear import calibration, descent, minimize, training
from selfpaced.pacing import Geometric, Stages

_spec = importlib.util.spec_from_file_location("interrupts", Path(__file__).with_name("interrupts.py"))
interrupts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(interrupts)

PACES = ["auto", "paper", 1.0, Geometric(mu=1.2, lam=2.0, stop=Stages(3))]


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(200, centers=[[-1, 0], [1, 0]], random_state=0)
    flipped = np.random.default_rng(0).random(200) < 0.25
    return X, np.where(flipped, 1 - y, y)


def interrupt(monkeypatch, k):
    """Ctrl-C in the k-th minimisation, wherever in the fit that is."""
    calls = interrupts.Interrupting(minimize.minimize_all, k)
    for module in (minimize, descent):
        monkeypatch.setattr(module, "minimize_all", calls)
    return calls


def minimisations(monkeypatch, pace, blobs):
    with monkeypatch.context() as patch:
        calls = interrupt(patch, math.inf)
        SelfPacedLogisticRegression(pace=pace).fit(*blobs)
    return calls.calls


@pytest.mark.parametrize("pace", PACES, ids=str)
def test_before_the_plain_model_it_goes_through(monkeypatch, blobs, pace):
    interrupt(monkeypatch, 1)
    model = SelfPacedLogisticRegression(pace=pace)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*blobs)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("pace", PACES, ids=str)
def test_after_that_a_whole_model_is_kept_and_said(monkeypatch, blobs, pace):
    X, y = blobs
    total = minimisations(monkeypatch, pace, blobs)
    assert total > 3
    for k in np.unique(np.linspace(2, total, 6).astype(int)):
        with monkeypatch.context() as patch:
            interrupt(patch, k)
            model = SelfPacedLogisticRegression(pace=pace)
            with pytest.raises(KeyboardInterrupt, match="model is kept"):
                model.fit(X, y)
        assert model.termination_.startswith("Interrupted from outside: the ")
        assert model.predict_proba(X).shape == (200, 2)
        assert len(model.path_) >= 1
        np.testing.assert_array_equal(model.judge(X, y).weight, model.sample_weight_)
        if model.path_[0].chosen:
            np.testing.assert_array_equal(model.coef_, model.plain_.coef_)
            np.testing.assert_array_equal(model.sample_weight_, 1.0)
            assert math.isinf(model.lam_)


def test_a_path_is_kept_as_far_as_it_came(monkeypatch, blobs):
    pace = Geometric(mu=1.2, lam=2.0, stop=Stages(3))
    for k in range(2, 25):  # first within the first stage, then within the second
        with monkeypatch.context() as patch:
            interrupt(patch, k)
            model = SelfPacedLogisticRegression(pace=pace, C=1.0)
            with pytest.raises(KeyboardInterrupt, match="kept"):
                model.fit(*blobs)
        if np.isfinite(model.lam_):
            break
    assert model.lam_ == 2.0
    assert model.termination_ == "Interrupted from outside: the last complete model is kept."
    assert [candidate.lam for candidate in model.path_] == [np.inf, 2.0]
    assert model.path_[-1].chosen


@pytest.mark.parametrize("channels", [1, 3])
def test_a_calibration_that_is_broken_off_leaves_the_chosen_model(channels, monkeypatch, blobs):
    with monkeypatch.context() as once:
        once.setattr(training, "WORTH_IT", np.inf)  # rows are not dealt again, although suspects hang on it
        reference = SelfPacedLogisticRegression().fit(*blobs)
    assert not np.array_equal(reference.coef_, reference.plain_.coef_)
    assert not np.array_equal(reference.coef_, SelfPacedLogisticRegression().fit(*blobs).coef_)
    # One of the model and one of the second witness, in every deal.
    broken = interrupts.Interrupting(calibration.ChannelModels.of, channels)
    monkeypatch.setattr(calibration.ChannelModels, "of", broken)
    model = SelfPacedLogisticRegression()
    with pytest.raises(KeyboardInterrupt, match="last complete model"):
        model.fit(*blobs)
    assert model.lam_ == reference.lam_
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    assert (model.noise_rate_ == reference.noise_rate_) == (channels == 3)
    assert sum(candidate.chosen for candidate in model.path_) == 1


def test_a_broken_off_refit_leaves_the_old_model_whole(monkeypatch, blobs):
    X, y = blobs
    model = SelfPacedLogisticRegression().fit(X, y)
    before = dict(vars(model))
    interrupt(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(np.column_stack([X, X]), np.where(y == 1, "a", "b"))
    assert vars(model) == before
    assert model.predict(X).shape == (200,)
