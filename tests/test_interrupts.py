"""Ctrl-C at any moment of any fit is raised again; the estimator is whole, new or as it was before."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from selfpaced import (
    PRMF,
    SelfPacedClassifier,
    SelfPacedLinearRegression,
    SelfPacedLogisticRegression,
    SelfPacedMF,
    SelfPacedMultiViewKMeans,
    SelfPacedRegressor,
    SuspectFilter,
)
from selfpaced.fitting import raise_interrupted

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
LABELS = np.where(RNG.random(80) < 0.15, X[:, 0] <= 0, X[:, 0] > 0).astype(int)
VALUES = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=80) + 10.0 * (np.arange(80) < 12)
MODELS = {
    "logistic": (SelfPacedLogisticRegression(), LABELS),
    "linear": (SelfPacedLinearRegression(), VALUES),
    "classifier": (SelfPacedClassifier(LogisticRegression()), LABELS),
    "trees": (SelfPacedClassifier(DecisionTreeClassifier(random_state=0)), LABELS),
    "regressor": (SelfPacedRegressor(Ridge()), VALUES),
    "filter": (SuspectFilter(SelfPacedLogisticRegression(), LogisticRegression()), LABELS),
    "k-means": (SelfPacedMultiViewKMeans(3, n_init=4, random_state=0), None),
    "k-means, number unknown": (SelfPacedMultiViewKMeans(range(2, 4), n_init=2, random_state=0), None),
    "mf": (SelfPacedMF(2, backend="numpy", random_state=0, n_jobs=1), None),
    "prmf": (PRMF(2, backend="numpy", random_state=0, n_jobs=1, max_iter=5), None),
}
MOMENTS = 2


class Alarm:
    """Counts calls of this library's own functions in a fit, and raises KeyboardInterrupt at the given one."""

    def __init__(self, at: int | None = None) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call" and "/selfpaced/" in frame.f_code.co_filename:
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt

    def during(self, model: Any, y: Any) -> str | None:
        """What the interrupt says that came out of the fit; None if the fit went through."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sys.setprofile(self)
            try:
                model.fit(X, y)
            except KeyboardInterrupt as stop:
                return str(stop)
            finally:
                sys.setprofile(None)
        return None


def public(model: Any) -> list[str]:
    return sorted(name for name in vars(model) if name.endswith("_") and not name.startswith("_"))


def ways(model: Any) -> list[Any]:
    return [getattr(model, name) for name in ("predict", "transform") if hasattr(model, name)]


@pytest.mark.filterwarnings("ignore:the number of clusters is unsure")  # there are none in X
@pytest.mark.parametrize("name", MODELS)
def test_ctrl_c_is_raised_and_the_estimator_is_whole_or_untouched(name: str) -> None:
    model, y = MODELS[name]
    whole = clone(model)
    Alarm().during(clone(model), y)  # what is worked out once for all is not counted
    counter = Alarm()
    assert counter.during(whole, y) is None
    moments = np.random.default_rng(1).integers(1, counter.count, MOMENTS)
    for moment in [*moments.tolist(), counter.count - 1]:
        fresh, old = clone(model), clone(model).fit(X[:60], None if y is None else y[:60])
        before = dict(vars(old))
        told, again = Alarm(moment).during(fresh, y), Alarm(moment).during(old, y)
        assert told is not None, f"Ctrl-C at call {moment} of {counter.count} was swallowed"
        assert again is not None
        if "is kept" in told:
            assert fresh.termination_ in told
            assert public(fresh) == public(whole)
            assert ways(fresh)[0](X) is not None
        else:
            with pytest.raises(NotFittedError):
                check_is_fitted(fresh)
        if "is kept" in again:
            assert public(old) == public(whole)
        else:
            assert vars(old).keys() == before.keys()
            assert all(vars(old)[key] is before[key] for key in before)


def test_an_interrupt_of_a_model_inside_another_leaves_the_outer_one_as_it_was() -> None:
    class Impatient(SelfPacedLogisticRegression):
        """Complete, and interrupted all the same."""

        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            super().fit(X, y, sample_weight)
            raise_interrupted(self)

    outer = SuspectFilter(Impatient(), LogisticRegression())
    with pytest.raises(KeyboardInterrupt, match="SuspectFilter.*as it was before"):
        outer.fit(X, LABELS)
    with pytest.raises(NotFittedError):
        check_is_fitted(outer)


def test_a_loop_stops_and_the_model_predicts() -> None:
    """A real signal, sent by the system while the fit runs."""
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(2000, 60))
    values = wide @ rng.normal(size=60) + rng.standard_t(2, size=2000)
    model, done, before = SelfPacedLinearRegression(), [], signal.getsignal(signal.SIGALRM)

    def press(*_: Any) -> None:
        raise KeyboardInterrupt

    def loop() -> None:
        for number in range(1000):
            model.fit(wide, values)
            done.append(number)
            if number == 0:
                signal.setitimer(signal.ITIMER_REAL, 0.02)

    signal.signal(signal.SIGALRM, press)
    try:
        with pytest.raises(KeyboardInterrupt):
            loop()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert 1 <= len(done) < 1000
    assert model.predict(wide).shape == values.shape
