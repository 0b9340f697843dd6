"""The fits whose results are pinned, and what is read off each of them; `test_pins` compares, and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from selfpaced import (
    PRMF,
    SelfPacedClassifier,
    SelfPacedLinearRegression,
    SelfPacedLogisticRegression,
    SelfPacedMF,
    SelfPacedMultiViewKMeans,
    SelfPacedRegressor,
    SuspectFilter,
    label_issues,
    suspects,
)
from selfpaced.datasets import make_low_rank
from selfpaced.pacing import Fixed, Geometric, Graduated, Quantile, Span, Stages
from selfpaced.robust import Opening
from selfpaced.selection import Candidate

# --------------------------------------------------------------------------------------------------- data


class Data(NamedTuple):
    """What a model is fitted on, and rows that it has not seen."""

    X: Any
    y: Any
    weight: Any
    new: Any


def _product(X: Any, coef: Any) -> Any:
    """X @ coef with the same rounding on every machine."""
    return (X[:, :, None] * coef).sum(axis=1)


@cache
def labels(
    n: int = 300, classes: int = 2, noise: float = 0.2, shift: float = 0.0, form: Any = None, names: str = ""
) -> Data:
    """Linear classes with flipped labels; ``shift`` makes the first one rare."""
    rng = np.random.default_rng([1, n, classes])
    X = rng.standard_normal((n + 20, 5))
    score = _product(X, rng.standard_normal((5, classes))) * 3.0 + rng.gumbel(size=(n + 20, classes)) * 0.3
    score[:, 0] -= shift
    y = score.argmax(axis=1)[:n]
    wrong = rng.random(n) < noise
    y = np.where(wrong, (y + rng.integers(1, classes, n)) % classes, y)
    if names:
        y = np.array(names.split())[y]
    weight = rng.integers(0, 4, n).astype(float)
    X = X.astype(np.float32) if form is np.float32 else X
    rows, new = X[:n], X[n:]
    if form is sparse:
        rows, new = (sparse.csr_array(np.where(np.abs(part) > 0.6, part, 0.0)) for part in (rows, new))
    return Data(rows, y, weight, new)


@cache
def values(n: int = 250, outliers: float = 0.3, form: Any = None) -> Data:
    """A linear target (with a bend, so that trees have something to do) of which a share is far off."""
    rng = np.random.default_rng([11, n])
    X = rng.standard_normal((n + 20, 4))
    y = (
        _product(X, np.array([[1.0], [-2.0], [0.5], [0.0]]))[:, 0]
        + 3.0
        + 0.2 * np.sin(3.0 * X[:, 0])
        + 0.3 * rng.standard_normal(n + 20)
    )
    wrong = rng.random(n + 20) < outliers
    y = y + wrong * rng.normal(8.0, 3.0, n + 20)
    weight = rng.integers(0, 4, n).astype(float)
    X = X.astype(np.float32) if form is np.float32 else X
    rows, new = X[:n], X[n:]
    if form is sparse:
        rows, new = (sparse.csr_array(np.where(np.abs(part) > 0.6, part, 0.0)) for part in (rows, new))
    return Data(rows, y[:n].astype(X.dtype), weight, new)


@cache
def matrix(form: Any = None) -> Data:
    """A matrix of rank 3 with gaps and gross errors."""
    made = make_low_rank(44, 36, 3, missing=0.3, outliers=0.15, random_state=5)
    X, weight = made.data[:40], np.random.default_rng(6).integers(1, 4, (40, 36)).astype(float)
    if form is sparse:
        known = np.nonzero(np.isfinite(X))
        X = sparse.csr_array((X[known], known), shape=X.shape)
    return Data(X.astype(np.float32) if form is np.float32 else X, None, weight, made.data[40:])


@cache
def views(n: int = 150, missing: bool = False, single: bool = False) -> Data:
    """Three clusters in two views, a tenth of the samples far off in one of them."""
    rng = np.random.default_rng(13)
    member = np.arange(n + 20) % 3
    parts = [rng.normal(0, 2, (3, d))[member] + 0.8 * rng.standard_normal((n + 20, d)) for d in (5, 4)]
    far = rng.random(n + 20) < 0.1
    parts[0][far] += rng.normal(0, 8, (int(far.sum()), 5))
    if missing:
        parts[1][rng.random(n + 20) < 0.15] = np.nan
    weight = rng.integers(0, 4, n).astype(float)
    seen, new = [part[:n] for part in parts], [part[n:] for part in parts]
    return Data(seen[0], None, weight, new[0]) if single else Data(seen, None, weight, new)


# -------------------------------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """One fit, and how closely its results must be met again.

    ``tolerance`` is relative, for the machine that wrote the pins; ``loose`` for others (see `test_pins`).
    """

    model: Any
    data: Callable[[], Data]
    weighted: bool = False
    tolerance: float = 1e-10
    loose: float = 1e-4


Logistic, Linear = SelfPacedLogisticRegression, SelfPacedLinearRegression
Views = partial(SelfPacedMultiViewKMeans, 3, random_state=0)
three, rare = partial(labels, classes=3), partial(labels, 400, shift=4.0)
STAGES = Geometric(mu=1.3, stop=Stages(6))
Single = partial(Case, tolerance=1e-5, loose=1e-3)  # 32-bit arithmetic, somewhere
tree = partial(DecisionTreeClassifier, min_samples_leaf=3, random_state=0)
leafy = partial(DecisionTreeRegressor, min_samples_leaf=5, random_state=0)
forest = partial(RandomForestClassifier, 10, random_state=0)
woods = partial(RandomForestRegressor, 10, random_state=0)

LOGISTIC = {
    "auto": Case(Logistic(), labels),
    "auto, three classes": Case(Logistic(), three),
    "auto, rare class": Case(Logistic(), rare),
    "auto, weighted": Case(Logistic(), labels, weighted=True),
    "auto, three classes, weighted": Case(Logistic(), three, weighted=True),
    "auto, sparse": Case(Logistic(), partial(labels, form=sparse)),
    "auto, sparse, three classes": Case(Logistic(), partial(three, form=sparse)),
    "auto, float32": Single(Logistic(), partial(labels, form=np.float32)),
    "auto, clean": Case(Logistic(), partial(labels, noise=0.0)),
    "auto, strings": Case(Logistic(), partial(labels, names="no yes")),
    "auto, seed": Case(Logistic(random_state=3), labels),
    "auto, balanced": Case(Logistic(class_weight="balanced"), rare),
    "auto, no intercept": Case(Logistic(fit_intercept=False), labels),
    "auto, no penalty": Single(Logistic(penalty=None), labels),
    "auto, 20,500 rows": Case(Logistic(), partial(labels, 20_500)),
    "auto, 12,000 rows": Single(Logistic(), partial(labels, 12_000)),
    **{f"auto, {rule}": Case(Logistic(rule), labels) for rule in ("cauchy", "logistic", "channel", "tukey")},
    "auto, hard": Case(Logistic("hard"), labels, loose=1e-2),  # a row at the threshold may be in or out
    "paper": Case(Logistic(pace="paper"), labels),
    "paper, three classes": Case(Logistic(pace="paper"), three),
    "paper, weighted, hard": Case(Logistic("hard", pace="paper"), labels, weighted=True),
    "lam": Case(Logistic(pace=1.5), labels),
    "lam, three classes": Case(Logistic(pace=1.5), three),
    "lam, weighted, cauchy": Case(Logistic("cauchy", pace=1.5), labels, weighted=True),
    "Geometric": Case(Logistic(pace=STAGES), labels),
    "Quantile, weighted": Case(Logistic(pace=Quantile(0.5, 0.8, 4)), labels, weighted=True),
}
LINEAR = {
    "auto": Case(Linear(), values),
    "auto, clean": Case(Linear(), partial(values, outliers=0.0)),
    "auto, weighted": Case(Linear(), values, weighted=True),
    "auto, sparse": Case(Linear(), partial(values, form=sparse)),
    "auto, float32": Single(Linear(), partial(values, form=np.float32)),
    "auto, ridge": Case(Linear(alpha=5.0), values),
    "auto, ridge, sparse, weighted": Case(Linear(alpha=5.0), partial(values, form=sparse), weighted=True),
    "auto, no intercept": Case(Linear(fit_intercept=False), values),
    **{f"auto, {rule}": Case(Linear(regularizer=rule), values) for rule in ("huber", "cauchy", "hard", "logistic")},
    "auto, 3,000 rows": Case(Linear(), partial(values, 3_000)),
    "paper": Case(Linear(regularizer="tukey", pace="paper"), values),
    "paper, clean": Case(Linear(regularizer="tukey", pace="paper"), partial(values, outliers=0.0)),
    "paper, weighted, cauchy": Case(Linear(regularizer="cauchy", pace="paper"), values, weighted=True),
    "lam": Case(Linear(regularizer="tukey", pace=2.0), values),
    "lam, robust start, hard": Case(Linear(regularizer="hard", pace=2.0, start="robust"), values),
    "lam, weighted": Case(Linear(regularizer="tukey", pace=2.0), values, weighted=True, loose=1e-3),
    "Geometric": Case(Linear(regularizer="tukey", pace=STAGES), values),
    "Graduated, clean": Case(Linear(regularizer="tukey", pace=Graduated(2.0)), partial(values, outliers=0.0)),
}
CLASSIFIER = {
    "logistic regression": Case(SelfPacedClassifier(LogisticRegression()), labels),
    "logistic regression, three classes": Case(SelfPacedClassifier(LogisticRegression()), three),
    "logistic regression, clean": Case(SelfPacedClassifier(LogisticRegression()), partial(labels, noise=0.0)),
    "logistic regression, weighted": Case(SelfPacedClassifier(LogisticRegression()), labels, weighted=True),
    "logistic regression, cross-fit": Case(SelfPacedClassifier(LogisticRegression(), cross_fit=True), labels),
    "logistic regression, welsch": Case(SelfPacedClassifier(LogisticRegression(), "welsch"), labels),
    "tree": Case(SelfPacedClassifier(tree()), labels),
    "tree, three names": Case(SelfPacedClassifier(tree()), partial(three, names="ash elm oak")),
    "tree, rare class": Case(SelfPacedClassifier(tree(max_depth=3)), rare),
    "tree, weighted": Case(SelfPacedClassifier(tree(max_depth=4)), labels, weighted=True),
    "tree, in-sample": Case(SelfPacedClassifier(tree(max_depth=3), cross_fit=False), labels),
    "tree, 5 folds": Case(SelfPacedClassifier(tree(max_depth=4), cv=5, random_state=1), labels),
    "neighbours": Case(SelfPacedClassifier(KNeighborsClassifier()), labels),
    "neighbours, weighted": Case(SelfPacedClassifier(KNeighborsClassifier()), labels, weighted=True),
    "forest": Case(SelfPacedClassifier(forest()), three),
    "forest, clean": Case(SelfPacedClassifier(forest()), partial(labels, noise=0.0)),
    "paper, logistic regression": Case(SelfPacedClassifier(LogisticRegression(), pace="paper"), labels),
    "paper, tree": Case(SelfPacedClassifier(tree(max_depth=4), pace="paper"), three),
    "lam, tree": Case(SelfPacedClassifier(tree(max_depth=4), pace=0.7), labels),
    "lam, logistic regression, cauchy": Case(SelfPacedClassifier(LogisticRegression(), "cauchy", pace=0.7), three),
    "Geometric, tree": Case(SelfPacedClassifier(tree(max_depth=4), pace=STAGES), labels),
    "Geometric, in-sample": Case(SelfPacedClassifier(LogisticRegression(), pace=STAGES, cross_fit=False), labels),
}
REGRESSOR = {
    "ridge": Case(SelfPacedRegressor(Ridge()), values),
    "ridge, clean": Case(SelfPacedRegressor(Ridge()), partial(values, outliers=0.0)),
    "ridge, weighted": Case(SelfPacedRegressor(Ridge()), values, weighted=True),
    "ridge, cross-fit, tukey": Case(SelfPacedRegressor(Ridge(), "tukey", cross_fit=True), values),
    "ridge, logistic": Case(SelfPacedRegressor(Ridge(), "logistic"), values),
    "tree": Case(SelfPacedRegressor(leafy()), values),
    "tree, weighted": Case(SelfPacedRegressor(leafy()), values, weighted=True),
    "tree, in-sample, seed": Case(SelfPacedRegressor(leafy(), cross_fit=False, random_state=2), values),
    "tree, clean": Case(SelfPacedRegressor(leafy()), partial(values, outliers=0.0)),
    "forest": Case(SelfPacedRegressor(woods()), values),
    "paper, ridge": Case(SelfPacedRegressor(Ridge(), pace="paper"), values),
    "paper, tree": Case(SelfPacedRegressor(leafy(), pace="paper"), values),
    "lam, tree": Case(SelfPacedRegressor(leafy(), pace=4.0), values),
    "lam, ridge, weighted, cauchy": Case(SelfPacedRegressor(Ridge(), "cauchy", pace=4.0), values, weighted=True),
    "Geometric, ridge": Case(SelfPacedRegressor(Ridge(), pace=STAGES), values),
}
FILTER = {
    "drop": Case(SuspectFilter(Logistic(), tree()), labels),
    "weight, three classes, weighted": Case(SuspectFilter(Logistic(), tree(), how="weight"), three, weighted=True),
    "drop, values": Case(SuspectFilter(Linear(), Ridge()), values),
    "drop, wrapped detector": Case(SuspectFilter(SelfPacedClassifier(forest()), KNeighborsClassifier()), labels),
}
MF = partial(SelfPacedMF, random_state=0)
FACTORIZATION = {
    "auto": Case(MF(), matrix),
    "auto, numpy": Case(MF(backend="numpy"), matrix),
    "auto, sparse": Case(MF(), partial(matrix, form=sparse)),
    "auto, float32": Single(MF(), partial(matrix, form=np.float32)),
    "auto, weighted": Case(MF(), matrix, weighted=True),
    "rank 3": Case(MF(3), matrix),
    "rank 3, no rescue, no polish": Case(MF(3, rescue=False, polish=0), matrix),
    "rank 3, random start": Case(MF(3, init="random"), matrix),
    **{
        f"rank 3, {rule}": Case(MF(3, rule), matrix)
        for rule in ("hard", "welsch", "huber", "linear", "barron", "logistic", "diversity")
    },
    "rank 3, welsch, numpy": Case(MF(3, "welsch", backend="numpy"), matrix),
    "rank 3, Fixed": Case(MF(3, "welsch", pace=Fixed(1.0)), matrix),
    "rank 3, Geometric": Case(MF(3, pace=STAGES), matrix),
    "rank 3, Opening": Case(MF(3, "cauchy", pace=Opening(growth=1.6)), matrix),
    "rank 3, Graduated, weighted": Case(MF(3, "geman-mcclure", pace=Graduated(1.0)), matrix, weighted=True),
    "PRMF": Case(PRMF(random_state=0), matrix),
    "PRMF, rank 3, rescue, polish": Case(PRMF(3, rescue=True, polish=4, random_state=0), matrix),
    "PRMF, rank 3, numpy, weighted": Case(PRMF(3, backend="numpy", random_state=0), matrix, weighted=True),
}
CLUSTERING = {
    "auto": Case(Views(), views),
    "auto, weighted": Case(Views(), views, weighted=True),
    "one view": Case(Views(), partial(views, single=True)),
    "missing views": Case(Views(), partial(views, missing=True)),
    "missing views, weighted, hard": Case(Views(regularizer="hard"), partial(views, missing=True), weighted=True),
    **{
        f"{rule or 'plain'}": Case(Views(regularizer=rule), views)
        for rule in ("hard", "mspl", None, "cauchy", "tukey", "mixture", "logarithmic", "barron")
    },
    "unit rows": Case(Views(view_scaling="unit-row"), views),
    "variance": Case(Views(view_scaling="variance"), views),
    "spectral": Single(Views(embedding="spectral"), views),
    "start, end, stages": Case(Views(pace=Span(0.7, 3.0, 5), n_init=6, n_keep=2), views),
    "end, hard": Case(Views(regularizer="hard", pace=Span(1.0, 4.0, 16)), views),
}
GROUPS = {
    "SelfPacedLogisticRegression": LOGISTIC,
    "SelfPacedLinearRegression": LINEAR,
    "SelfPacedClassifier": CLASSIFIER,
    "SelfPacedRegressor": REGRESSOR,
    "SuspectFilter": FILTER,
    "SelfPacedMF": FACTORIZATION,
    "SelfPacedMultiViewKMeans": CLUSTERING,
}
CASES = {f"{group}: {name}": case for group, cases in GROUPS.items() for name, case in cases.items()}

# ----------------------------------------------------------------------------------------------- figures

_FITTED = [
    *["coef_", "intercept_", "raw_intercept_", "lam_", "lam_by_class_"],
    *["noise_rate_", "noise_rate_interval_", "noise_rate_if_any_"],
    *["scale_", "loss_unit_", "sample_weight_", "sample_loss_", "sample_proba_", "sample_noise_", "sample_residual_"],
    *["noise_probability_", "kept_", "rank_", "objective_", "inertia_", "view_weight_", "n_rescued_"],
]


def measure(case: Case) -> dict[str, Any]:
    """Fit, and read every figure that is pinned: name -> array, number or text."""
    data = case.data()
    given = {"sample_weight": data.weight} if case.weighted else {}
    model = clone(case.model).fit(*([data.X] if data.y is None else [data.X, data.y]), **given)
    found = {name: getattr(model, name) for name in _FITTED if hasattr(model, name)}
    if hasattr(model, "path_"):
        path = {name: [getattr(one, name) for one in model.path_] for name in Candidate.__dataclass_fields__}
        found |= {f"path_ {name}": path[name] for name in ("lam", "score", "spread", "mean_weight", "label")}
        found["path_ chosen"] = np.flatnonzero(path["chosen"])
    if hasattr(model, "reconstruct"):
        return found | _of_matrix(model, data)
    if hasattr(model, "labels_"):
        return found | _of_clusters(model, data)
    found["predict"] = model.predict(data.new)
    if hasattr(model, "predict_proba"):
        found["predict_proba"] = model.predict_proba(data.new)
    return found if isinstance(model, SuspectFilter) else found | _of_tables(model, data)


def _of_matrix(model: Any, data: Data) -> dict[str, Any]:
    """Free of the factors' signs."""
    worst = model.outliers_[:10]
    return {
        "reconstruct": model.reconstruct(),
        "transform": model.inverse_transform(model.transform(data.new)),
        "outliers_": len(model.outliers_),
        "outliers_ places": worst["row"] * 1000 + worst["column"],
        "outliers_ expected": worst["expected"],
    }


def _of_clusters(model: Any, data: Data) -> dict[str, Any]:
    """Clusters in the order of their first members: restarts that end alike differ in their names alone."""
    order = list(dict.fromkeys(model.labels_.tolist()))
    place = np.argsort(order)
    centers = model.cluster_centers_ if isinstance(model.cluster_centers_, list) else [model.cluster_centers_]
    return {
        "labels_": place[model.labels_],
        "predict": place[model.predict(data.new)],
        "cluster_centers_": np.concatenate([center[order].ravel() for center in centers]),
        "transform": model.transform(data.new)[:, order],
        "outliers_": np.flatnonzero(model.outliers_),
    }


def _of_tables(model: Any, data: Data) -> dict[str, Any]:
    """The assessment of the training rows."""
    ranked, issues = suspects(model, data.X, data.y, all_rows=True), label_issues(model, data.X, data.y, threshold=0.5)
    rows = ranked.sort_values("row")
    quality = 1.0 - rows["noise_probability"].to_numpy()
    # what follows from other columns is compared with them, and not pinned
    np.testing.assert_array_equal(rows["label_quality"], quality)
    np.testing.assert_array_equal(issues["label_quality"], quality)
    np.testing.assert_array_equal(issues["is_label_issue"], rows["level"] == "likely error")
    np.testing.assert_array_equal(issues["level"], rows["level"])
    np.testing.assert_array_equal(issues["predicted_label"], rows["expected"])
    np.testing.assert_array_equal(issues["given_label"], data.y)
    np.testing.assert_array_equal(rows["given"], data.y)
    names = ("expected", "probability_if_noisy") if is_classifier(model) else ("residual",)
    found = {f"suspects {name}": rows[name].to_numpy() for name in ("level", *names, "weight", "noise_probability")}
    return found | {"suspects row": ranked["row"].to_numpy()[:10]}
