"""Ctrl-C at any moment of any fit: the estimator is whole, new with a warning, or as it was before."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
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
    "mf": (SelfPacedMF(2, backend="numpy", random_state=0, n_jobs=1), None),
    "prmf": (PRMF(2, backend="numpy", random_state=0, n_jobs=1, max_iter=5), None),
}
MOMENTS = 4


class Alarm:
    """Counts calls of this library's own functions in a fit, and raises KeyboardInterrupt at the given one."""

    def __init__(self, at: int | None = None) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call" and "/selfpaced/" in frame.f_code.co_filename:
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt

    def during(self, model: Any, y: Any) -> str:
        """How the fit ended."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            sys.setprofile(self)
            try:
                model.fit(X, y)
            except KeyboardInterrupt:
                return "interrupted"
            finally:
                sys.setprofile(None)
        return "warned" if any(w.category is ConvergenceWarning for w in told) else "done"


def public(model: Any) -> list[str]:
    return sorted(name for name in vars(model) if name.endswith("_") and not name.startswith("_"))


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_is_whole_or_has_not_been(name: str) -> None:
    model, y = MODELS[name]
    whole = clone(model)
    counter = Alarm()
    counter.during(whole, y)
    moments = np.random.default_rng(1).integers(1, counter.count, MOMENTS)
    for moment in [*moments.tolist(), counter.count - 1]:
        fresh, old = clone(model), clone(model).fit(X[:60], None if y is None else y[:60])
        before = dict(vars(old))
        if Alarm(moment).during(fresh, y) == "interrupted":
            with pytest.raises(NotFittedError):
                check_is_fitted(fresh)
        else:
            assert public(fresh) == public(whole)
            assert isinstance(fresh.__dict__.get("termination_", ""), str)
        if Alarm(moment).during(old, y) == "interrupted":
            assert vars(old).keys() == before.keys()
            assert all(vars(old)[key] is before[key] for key in before)
        else:
            assert public(old) == public(whole)
