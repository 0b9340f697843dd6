"""One fit to labels that are probabilities, for estimators that take only plain labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.class_weight import compute_class_weight

from ..fingerprint import mixed
from ..label_noise import NoiseModel, logits_from_proba
from ._routing import Array, fit_entries, last_step, n_rows, take_rows
from ._wrapper import Task

__all__ = [
    "Fitted",
    "Reading",
    "as_logits",
    "confirmed",
    "fit_soft",
    "fitted_scale",
    "layout_words",
    "output_kind",
    "probabilities",
    "read_output",
    "rival_loss",
    "soft_label_rows",
]

NEGLIGIBLE_LABEL = 0.02  # cost: labels less probable than this get no row of their own: a choice
DRAWN_MODELS = 5  # cost: models with drawn labels, for estimators that take no weights


def soft_label_rows(X: Any, probs: Any, classes: Any = None) -> tuple[Any, Array, Array]:
    """Return rows, labels and weights that stand for labels given as probabilities.

    Most classifiers take one label per row. Repeating each row once for every label that it may have, weighted by the
    probability of that label, gives the same expected loss. Labels less probable than 2 % are left out, and the rest of
    the row is scaled to a total weight of 1.

    Parameters
    ----------
    X : array, sparse matrix, data frame or sequence of n_samples rows
        Rows.
    probs : array-like of shape (n_samples, n_classes)
        Probability of each label; every row sums to 1.
    classes : array-like of shape (n_classes,), optional
        The labels; by default 0 .. n_classes - 1.

    Returns
    -------
    X : same type as ``X``
        Rows, repeated.
    y : ndarray of shape (n_entries,)
        A label of each.
    sample_weight : ndarray of shape (n_entries,)
        The probability of that label.

    Examples
    --------
    >>> X, y, weight = soft_label_rows([[1.0], [2.0]], [[1.0, 0.0], [0.25, 0.75]], classes=["no", "yes"])
    >>> X, y.tolist(), weight.tolist()
    ([[1.0], [2.0], [2.0]], ['no', 'no', 'yes'], [1.0, 0.25, 0.75])
    """
    soft = np.asarray(probs, dtype=float)
    if soft.ndim != 2 or len(soft) != n_rows(X):
        raise ValueError(f"probs must have shape ({n_rows(X)}, n_classes), got {soft.shape}")
    if not np.all(soft >= 0.0) or not np.allclose(soft.sum(axis=1), 1.0):
        raise ValueError("probs must be >= 0 and sum to 1 in every row")
    labels = np.arange(soft.shape[1]) if classes is None else np.asarray(classes)
    if labels.shape != (soft.shape[1],):
        raise ValueError(f"classes must have shape ({soft.shape[1]},), got {labels.shape}")
    rows, codes, weight = _entries(soft)
    return take_rows(X, rows), labels[codes], weight


def _entries(soft: Array) -> tuple[Array, Array, Array]:
    """Return row, class and weight of every label that is not negligible."""
    kept = np.round(soft, 6)  # a tree decides ties by the last bit, which differs between processors
    likeliest = np.arange(len(kept)), soft.argmax(axis=1)
    kept[likeliest] = np.maximum(kept[likeliest], NEGLIGIBLE_LABEL)  # with very many classes, none may be probable
    kept[kept < NEGLIGIBLE_LABEL] = 0.0
    kept /= kept.sum(axis=1, keepdims=True)
    rows, codes = np.nonzero(kept)
    return rows, codes, kept[rows, codes]


# ------------------------------------------------------------------------------------------------------------- fitting


class Fitted(NamedTuple):
    """A fitted model, and the labels by which it knows the classes."""

    model: Any
    labels: Array


def _layout(task: Task) -> str:
    """Return how rows are passed to the estimator: "repeated", "weighted" or "drawn".

    Each row is repeated for every label that it may have. If the estimator holds rows out by itself, duplicates would
    leak across its internal folds: then each row keeps its given label, weighted by the probability of that label. An
    estimator without weights is fitted several times, to drawn labels.
    """
    if not task.route.takes_weights:
        return "drawn"
    nested = [task.estimator, *task.estimator.get_params(deep=True).values()]
    holds_out = any(_holds_out(one, 2 * len(task.codes)) for one in nested if isinstance(one, BaseEstimator))
    return "weighted" if holds_out else "repeated"


def layout_words(task: Task) -> str:
    """Return the layout as part of a sentence."""
    name, how = type(last_step(task.estimator)).__name__, _layout(task)
    if how == "drawn":
        return f"mean of {DRAWN_MODELS} models with drawn labels, because {task.route.reason}"
    if how == "weighted":
        return f"rows keep their given labels and are weighted, because {name} holds rows out by itself"
    return "each row is repeated for every label that it may have"


def _holds_out(estimator: BaseEstimator, n: int) -> bool:
    """Return whether an estimator holds rows out: folds, a validation part, probabilities from folds."""
    given = estimator.get_params(deep=False)
    if ("cv" in given and not isinstance(given["cv"], str)) or given.get("probability") is True:
        return True
    # GradientBoosting has no switch: a number of rounds without progress turns early stopping on
    early = given.get("early_stopping", "validation_fraction" in given and given.get("n_iter_no_change") is not None)
    return early is True or (early == "auto" and n > 10_000)  # as scikit-learn's boosting does


def confirmed(task: Task, soft: Array) -> Array:
    """Return probabilities of labels that are 1 for labels confirmed by a person."""
    return soft if task.trusted is None else np.where(task.trusted[:, None], task.hard, soft)


def fit_soft(task: Task, soft: Array, rows: Array | None = None) -> Fitted:
    """Fit the estimator to probabilities of labels, on all rows or some."""
    labels = np.asarray(task.classes)
    try:
        return Fitted(_fit(task, soft, rows), labels)
    except ValueError:
        # some libraries only take the labels 0 .. n_classes - 1: encode for them, else keep the first error
        places = np.arange(labels.size)
        if not np.array_equal(labels, places):
            with suppress(Exception):
                return Fitted(_fit(replace(task, classes=places), soft, rows), places)
        raise


def _fit(task: Task, soft: Array, rows: Array | None) -> Any:
    given, prior, how = task.codes, task.weight, _layout(task)
    index = np.arange(len(given)) if rows is None else np.asarray(rows)
    index = index[prior[index] > 0.0]
    certain = bool(np.all(soft[index, given[index]] == 1.0))
    if not certain and how != "weighted":  # the order of the entries follows from their content
        index = index[np.lexsort((given[index], task.keys[index]))]
    if how == "drawn":
        index = np.repeat(index, np.rint(prior[index]).astype(np.intp))
        if certain:
            return _fit_entries(task, index, given[index], None)
        draws = [_drawn(task, soft, (draw + 0.5) / DRAWN_MODELS)[index] for draw in range(DRAWN_MODELS)]
        models = [_fit_entries(task, index, codes, None) for codes in draws]
        return MeanOfModels.of(models, np.asarray(task.classes)[np.unique(draws)])
    if certain or how == "weighted":
        return _fit_entries(task, index, given[index], soft[index, given[index]] * prior[index])
    place, codes, weight = _entries(soft[index])
    weight = weight * prior[index[place]]
    return _fit_entries(_balanced(task, codes, weight), index[place], codes, weight)


def _drawn(task: Task, soft: Array, part: float) -> Array:
    """Draw a label for every row; over all parts, each label is drawn as often as its probability says."""
    start = mixed(task.keys + task.codes.astype(np.uint64), 0) / 2.0**64
    passed = ((start + part)[:, None] % 1.0 > np.cumsum(soft, axis=1)).sum(axis=1)
    return np.asarray(np.minimum(passed, soft.shape[1] - 1))


def _fit_entries(task: Task, index: Array, codes: Array, weight: Array | None) -> Any:
    labels = np.asarray(task.classes)[codes]
    return fit_entries(clone(task.estimator), task.X, labels, index, weight, task.route, task.fit_params)


def _balanced(task: Task, codes: Array, weight: Array) -> Task:
    """Return the task with balanced class weights of the probabilities, as repeated rows would count too often."""
    asked = [
        key
        for key, value in task.estimator.get_params(deep=True).items()
        if key.endswith("class_weight") and isinstance(value, str) and value.startswith("balanced")
    ]
    if not asked:
        return task
    y = np.asarray(task.classes)[codes]
    known = np.unique(y)
    factors = compute_class_weight("balanced", classes=known, y=y, sample_weight=weight)
    weights = dict(zip(known.tolist(), factors.tolist(), strict=True))
    return task.with_params(dict.fromkeys(asked, weights))


class MeanOfModels(ClassifierMixin, BaseEstimator):
    """The mean of fitted models: of their probabilities, or of their predictions if they have none."""

    @classmethod
    def of(cls, models: Sequence[Any], classes: Array) -> MeanOfModels:
        """Return the mean of these models; the classes are given because a model need not name its own."""
        mean, first = cls(), models[0]
        mean.models_, mean.classes_ = list(models), classes
        if hasattr(first, "n_features_in_"):
            mean.n_features_in_ = first.n_features_in_
        if hasattr(first, "feature_names_in_"):
            mean.feature_names_in_ = first.feature_names_in_
        return mean

    def fit(self, X: Any, y: Any) -> MeanOfModels:
        """Refuse to fit: the mean is made of fitted models."""
        raise NotImplementedError("a mean of fitted models is not fitted again; fit the wrapper")

    def predict_proba(self, X: Any) -> Array:
        """Return mean probabilities, one column per class."""
        kind = "predict_proba" if output_kind(self.models_[0]) == "predict_proba" else "predict"
        parts = [read_output(model, X, kind=kind, labels=self.classes_) for model in self.models_]
        return np.asarray(np.mean(parts, axis=0))

    def predict(self, X: Any) -> Array:
        """Return the class of the largest mean."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


# ------------------------------------------------------------------------------------------------------------- outputs


def output_kind(model: Any) -> str:
    """Return the richest output of a fitted classifier: "predict_proba", "decision_function" or "predict"."""
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            return name
    return "predict"


def read_output(model: Any, X: Any, *, kind: str, labels: Array) -> Array:
    """Return the output of `model` with one column per entry of `labels`.

    Classes the model has not seen in its training rows get probability 0 or the smallest decision of the row.
    """
    raw = np.asarray(getattr(model, kind)(X))
    if kind == "predict_proba" and raw.ndim == 2 and np.isnan(raw).any():
        # GaussianNB divides 0 by 0 far from every class: no information
        raw = np.where(np.isnan(raw).any(axis=1, keepdims=True), 1.0 / raw.shape[1], raw)
    if kind == "predict":
        return np.asarray(raw[:, None] == labels[None, :], dtype=float)
    if raw.ndim == 1 or raw.shape[1] == 1:
        raw = raw.reshape(-1)
        raw = np.stack([1.0 - raw, raw], axis=1) if kind == "predict_proba" else np.stack([-raw / 2, raw / 2], axis=1)
    known = np.asarray(model.classes_)
    if known.size == labels.size:
        return raw
    if known.size == 1:  # one class left in the training rows: some models then answer with one column
        raw = raw[:, -1:]
    least = 0.0 if kind == "predict_proba" else raw.min(axis=1, keepdims=True) - 1.0
    out = np.broadcast_to(least, (raw.shape[0], labels.size)).copy()
    out[:, np.searchsorted(labels, known)] = raw
    return out


def as_logits(output: Array, kind: str) -> Array:
    """Return logits of an output matrix, possibly averaged over several models, in float64."""
    if kind == "decision_function":
        return np.asarray(np.nan_to_num(np.asarray(output, dtype=float), posinf=1e6, neginf=-1e6))
    return logits_from_proba(output)


def probabilities(output: Array, kind: str) -> Array:
    """Return probabilities of an output matrix; decisions are taken for logits."""
    return softmax(as_logits(output, kind), axis=1) if kind == "decision_function" else np.asarray(output, dtype=float)


def rival_loss(proba: Array, codes: Array) -> Array:
    """Return the logistic loss of the given label against its strongest rival, log(1 + p_rival / p_given).

    With two classes this is the log-loss. With more it stays at or below log 2 exactly for the most probable label,
    however many classes share the rest.

    >>> rival_loss(np.array([[0.5, 0.25, 0.25]]), np.array([0])).round(3)
    array([0.405])
    """
    rows = np.arange(len(codes))
    given = np.maximum(proba[rows, codes], 1e-12)
    others = proba.copy()
    others[rows, codes] = 0.0
    return np.asarray(np.log1p(others.max(axis=1) / given))


@dataclass(frozen=True, eq=False)
class Reading:
    """What models say about the training rows."""

    clean: Array  # calibrated logits of the clean label
    losses: Array  # of the given labels
    channel: NoiseModel
    output: Any = None  # of the models, with a pace


def fitted_scale(logits: Array, weight: Array, cost: Callable[[Array], Array]) -> float:
    """Return the factor on centred logits at which the sum of their costs is smallest, with a prior near 2."""
    centred = logits - logits.mean(axis=1, keepdims=True)
    spread = float(np.average(np.abs(centred).mean(axis=1), weights=weight))
    if spread == 0.0:
        return 1.0

    def total(log_scale: float) -> float:
        return float(weight @ cost(np.exp(log_scale) / spread * centred)) + 0.5 * (log_scale - math.log(2.0)) ** 2

    best = minimize_scalar(total, bounds=(-4.0, 5.0), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(best.x)) / spread
