"""Ctrl-C in a linear regression is raised again; once there is a complete model, the estimator keeps the best."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from selfpaced import SelfPacedLinearRegression
from selfpaced.linear._least_squares import Squares
from selfpaced.pacing import Geometric, Stages

_spec = importlib.util.spec_from_file_location("interrupts", Path(__file__).with_name("interrupts.py"))
interrupts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(interrupts)

PACES = ["auto", "paper", 2.0, Geometric(mu=1.2, stop=Stages(4))]


@pytest.fixture(scope="module")
def lines():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, 2.0, 3.0] + 5 + rng.normal(size=80)
    return X, np.where(np.arange(80) < 20, y + 20, y)


def interrupt(monkeypatch, k):
    """Ctrl-C when residuals are taken for the k-th time, which every part of the fit does."""
    calls = interrupts.Interrupting(Squares.residuals, k)
    monkeypatch.setattr(Squares, "residuals", lambda squares, b: calls(squares, b))
    return calls


@pytest.mark.parametrize("pace", PACES, ids=str)
def test_before_the_plain_model_it_goes_through(monkeypatch, lines, pace) -> None:
    interrupt(monkeypatch, 1)
    model = SelfPacedLinearRegression(pace=pace)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*lines)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("pace", PACES, ids=str)
def test_after_that_a_whole_model_is_kept_and_said(monkeypatch, lines, pace) -> None:
    X, y = lines
    with monkeypatch.context() as patch:
        calls = interrupt(patch, math.inf)
        SelfPacedLinearRegression(pace=pace).fit(X, y)
    kept = set()
    for k in np.unique(np.linspace(6, calls.calls, 12).astype(int)):
        with monkeypatch.context() as patch:
            interrupt(patch, k)
            model = SelfPacedLinearRegression(pace=pace)
            with pytest.raises(KeyboardInterrupt, match="is kept") as stop:
                model.fit(X, y)
        chosen = next(candidate for candidate in model.path_ if candidate.chosen)
        kept.add(chosen.label)
        assert model.termination_.startswith("Interrupted from outside: ")
        assert chosen.label in model.termination_
        assert model.termination_ in str(stop.value)
        assert chosen.lam == model.lam_
        np.testing.assert_array_equal(model.assess(X, y).weight, model.sample_weight_)
        if math.isinf(model.lam_):
            np.testing.assert_array_equal(model.coef_, model.plain_.coef_)
        else:
            assert model.sample_weight_[:20].max() < 0.5
    assert "plain" in kept
    if pace not in ("paper", 2.0):  # one stage: there is nothing between the plain fit and the end
        assert len(kept) > 1


def test_a_broken_off_refit_leaves_the_old_model_whole(monkeypatch, lines) -> None:
    X, y = lines
    model = SelfPacedLinearRegression().fit(X, y)
    before = dict(vars(model))
    interrupt(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :1], y)
    assert vars(model) == before
    assert model.predict(X).shape == (80,)
