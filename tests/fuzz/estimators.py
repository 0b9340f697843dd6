"""Every estimator: fitted to odd tables, and asked about odd rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import HuberRegressor, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import selfpaced

from .draws import Draw, features, rows_of, table, target, weight
from .outcomes import attempt, finite
from .parameters import names_of, options

CLASSIFIERS = [
    LogisticRegression(max_iter=50), DecisionTreeClassifier(max_depth=3, random_state=0), GaussianNB(),
    KNeighborsClassifier(3), SVC(), RidgeClassifier(), DummyClassifier(), make_pipeline(StandardScaler(), GaussianNB()),
    HistGradientBoostingClassifier(max_iter=5), RandomForestClassifier(5, random_state=0),
    CalibratedClassifierCV(GaussianNB(), cv=2),
]  # fmt: skip
REGRESSORS = [
    Ridge(), DecisionTreeRegressor(max_depth=3, random_state=0), KNeighborsRegressor(3), DummyRegressor(), SVR(),
    make_pipeline(StandardScaler(), Ridge()), RandomForestRegressor(5, random_state=0), HuberRegressor(max_iter=30),
]  # fmt: skip


def _supervised(kind: type, draw: Draw, labels: bool, base: Any = None) -> None:
    given = {} if base is None else {"estimator": clone(base)}
    model = kind(**{**given, **options(kind, draw)})
    X = features(draw)
    y = target(rows_of(X), draw, "labels" if labels else "values")
    sample_weight = weight(rows_of(X), draw)
    extra = {} if sample_weight is None else {"sample_weight": sample_weight}
    names, ours = names_of(kind), base is None

    def call(function: Callable[[], Any]) -> Any:
        try:
            return attempt(function, names, ours=ours)
        except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError):
            if ours or not _base_fails(base, X, y, extra):
                raise
            return None

    if call(lambda: model.fit(X, y, **extra)) is None:
        return
    n = len(model.sample_weight_)
    finite("sample_weight_", model.sample_weight_, (n,))
    if not (labels and np.isnan(model.noise_rate_)):  # nothing predicts the labels
        finite("noise_rate_", model.noise_rate_)
    low, high = model.noise_rate_interval_
    if not 0 <= low <= high <= 1:
        raise AssertionError(f"noise_rate_interval_ must be within [0, 1], got {(low, high)!r}")
    again = [X, table(draw), features(draw)]
    for fresh in again if draw.chance(0.5) else again[:1]:
        for method in ("predict", "predict_proba", "decision_function"):
            if not hasattr(model, method):
                continue
            if not ours and _refuses(model.estimator_, fresh):
                continue
            found = call(lambda fresh=fresh, method=method: getattr(model, method)(fresh))
            if found is not None:
                finite(method, found)
                if len(found) != rows_of(fresh):
                    raise AssertionError(f"{method} gives {len(found)} rows for {rows_of(fresh)}")
    assessed = call(lambda: model.assess(X, y))
    if assessed is not None:
        finite("weight", assessed.weight, (n,))
    call(lambda: selfpaced.suspects(model, X, y, n=draw.one([None, 3, 0, -1, "a", 2.5])))
    if labels:
        call(lambda: selfpaced.label_issues(model, X, y, threshold=draw.one([None, 0.5, 2.0, "a"])))


def _refuses(model: Any, X: Any) -> bool:
    """Whether a wrapped model refuses these rows itself."""
    try:
        finite("predict", model.predict(X))
    except (ValueError, TypeError, AssertionError):
        return True
    return False


def _base_fails(base: Any, X: Any, y: Any, extra: dict[str, Any]) -> bool:
    """Whether the wrapped model alone cannot do it either; rows held out may lack what it needs."""
    for rows in (slice(None), slice(None, None, 2), slice(None, rows_of(X) // 2 + 1), slice(1, None, 3)):
        try:
            part = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
            model = clone(base).fit(part, np.asarray(y)[rows])
            finite("predict", model.predict(part))
        except Exception:
            return True
    return False


def logistic(draw: Draw) -> None:
    _supervised(selfpaced.SelfPacedLogisticRegression, draw, labels=True)


def linear(draw: Draw) -> None:
    _supervised(selfpaced.SelfPacedLinearRegression, draw, labels=False)


def classifier(draw: Draw) -> None:
    _supervised(selfpaced.SelfPacedClassifier, draw, True, draw.one(CLASSIFIERS))


def regressor(draw: Draw) -> None:
    _supervised(selfpaced.SelfPacedRegressor, draw, False, draw.one(REGRESSORS))


def suspect_filter(draw: Draw) -> None:
    labels = draw.chance(0.5)
    detector = selfpaced.SelfPacedLogisticRegression() if labels else selfpaced.SelfPacedLinearRegression()
    base = draw.one(CLASSIFIERS[:4] if labels else REGRESSORS[:3])
    kind = selfpaced.SuspectFilter
    model = kind(**{"detector": detector, "estimator": clone(base), **options(kind, draw)})
    X = features(draw)
    y = target(rows_of(X), draw, "labels" if labels else "values")
    try:
        fitted = attempt(lambda: model.fit(X, y), names_of(kind), ours=False)
    except (ValueError, TypeError):
        if _base_fails(base, X, y, {}):
            return
        raise
    if fitted is not None and not _base_fails(base, X, y, {}):
        finite("predict", model.predict(X))


def _matrix(kind: type, draw: Draw) -> None:
    model = kind(**{"random_state": 0, **options(kind, draw)})
    X = features(draw)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.size and X.dtype.kind == "f" and draw.chance(0.4):
        X = np.where(draw.rng.random(X.shape) < 0.3, np.nan, X)
    names = [*names_of(kind), "entry", "entries", "matrix"]
    sample_weight = weight(rows_of(X), draw)
    extra = {} if sample_weight is None else {"sample_weight": sample_weight}
    if attempt(lambda: model.fit(X, **extra), names) is None:
        return
    whole = attempt(lambda: model.reconstruct(), names)
    finite("reconstruct", whole)
    fresh = draw.one([X, table(draw), features(draw)])
    found = attempt(lambda: model.transform(fresh), names)
    if found is not None:
        finite("transform", found)
        finite("inverse_transform", attempt(lambda: model.inverse_transform(found), names))
    entries = draw.one([([0], [0]), ([0, 1], 0), ([99], [0]), ("a", "b"), ([-1], [0]), ([0.5], [0]), (None, [1])])
    found = attempt(lambda: model.predict(*entries), names)
    if found is not None:
        finite("predict", found)
    attempt(lambda: selfpaced.suspects(model, n=draw.one([None, 3])), names)


def factorization(draw: Draw) -> None:
    _matrix(selfpaced.SelfPacedMF, draw)


def prmf(draw: Draw) -> None:
    _matrix(selfpaced.PRMF, draw)


def clustering(draw: Draw) -> None:
    kind = selfpaced.SelfPacedMultiViewKMeans
    model = kind(**{"n_clusters": draw.one([2, 2, 3, 1]), "random_state": 0, "n_init": 3, **options(kind, draw)})
    X = features(draw)
    if draw.chance(0.3):
        X = draw.one([[X, X], {"a": X, "b": table(draw)}, [X, None], {"a": X}, [], (X, table(draw), X)])
    n = rows_of(X) if not isinstance(X, list | dict | tuple) else 5
    sample_weight = weight(n, draw)
    names = names_of(kind)
    if attempt(lambda: model.fit(X, sample_weight=sample_weight), names) is None:
        return
    finite("labels_", model.labels_)
    finite("sample_weight_", model.sample_weight_)
    for fresh in (X, features(draw)):
        for method in ("predict", "transform", "score"):
            found = attempt(lambda method=method, fresh=fresh: getattr(model, method)(fresh), names)
            if found is not None:
                finite(method, found)
