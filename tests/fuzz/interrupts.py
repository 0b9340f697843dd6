"""Ctrl-C at any moment of a fit, and rows of unusual features: no interrupt and no absurd prediction is kept quiet."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

import selfpaced

from .draws import Draw
from .outcomes import Unacceptable, finite

KINDS = (
    (lambda: selfpaced.SelfPacedLinearRegression(), "values"),
    (lambda: selfpaced.SelfPacedLinearRegression(pace=2.0), "values"),
    (lambda: selfpaced.SelfPacedLogisticRegression(), "labels"),
    (lambda: selfpaced.SelfPacedRegressor(Ridge()), "values"),
    (lambda: selfpaced.SelfPacedClassifier(LogisticRegression(), keep_plain=True), "labels"),
    (lambda: selfpaced.SelfPacedClassifier(DecisionTreeClassifier(max_depth=3), "hard"), "labels"),
    (lambda: selfpaced.SelfPacedMultiViewKMeans(range(2, 4), n_init=2, random_state=0), None),
    (lambda: selfpaced.SelfPacedMF(1, backend="numpy", random_state=0, n_jobs=1), None),
)


class Alarm:
    """Raises KeyboardInterrupt at a call of one of the library's own functions."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call" and "/selfpaced/" in frame.f_code.co_filename:
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt


def interrupts(draw: Draw) -> None:
    """A fit that is interrupted raises, and its estimator has a whole model or none."""
    make, kind = draw.one(KINDS)
    X = draw.rng.normal(size=(60, 3))
    y = None if kind is None else X @ [1.0, -1.0, 0.5] + 5.0 * (draw.rng.random(60) < 0.1)
    y = (y > 0).astype(int) if kind == "labels" else y
    model, alarm = make(), Alarm(int(10 ** draw.rng.uniform(0, 4.5)))
    raised = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setprofile(alarm)
        try:
            model.fit(X, y)
        except KeyboardInterrupt:
            raised = True
        finally:
            sys.setprofile(None)
    if raised != (alarm.count >= alarm.at):
        raise Unacceptable(f"Ctrl-C at call {alarm.at} of {type(model).__name__}.fit was swallowed")
    try:
        check_is_fitted(model)
    except NotFittedError:
        return
    finite("predictions", (model.predict if hasattr(model, "predict") else model.transform)(X))


def leverage(draw: Draw) -> None:
    """A linear fit beside rows of unusual features: what it predicts absurdly, it says."""
    n = draw.one([40, 80, 200])
    level = draw.rng.integers(0, 4, n)
    X = np.c_[draw.rng.normal(size=(n, 2)), (level[:, None] == np.arange(1, 4)).astype(float)]
    y = X @ [1.0, 2.0, 1.0, 2.0, 3.0] + draw.rng.normal(size=n)
    bad = draw.rng.choice(n, max(n // 20, 1), replace=False)
    if draw.chance(0.3):
        X[:, 1] = 1 + 10 ** draw.rng.uniform(-9, 0) * X[:, 1]
    if draw.chance(0.3):
        X[level == 0, 2] = 1.0
        X[0, 2:] = 0.0  # the only row of the level without a column
    X[bad] *= 10 ** draw.rng.uniform(0, 6)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = selfpaced.SelfPacedLinearRegression().fit(X.astype(draw.one([np.float64, np.float32])), y)
    off, plain = (np.abs(y - one.predict(X)) for one in (model, model.plain_))
    right = model.assessment_.wrong <= 0.5
    if (
        right.any()
        and off[right].max() > 10.1 * plain.max()
        and not any("unstable" in str(one.message) for one in told)
    ):
        raise Unacceptable(
            f"a row is predicted {off[right].max() / plain.max():.3g} times as far off as by the plain fit"
        )
    finite("coef_", model.coef_)
