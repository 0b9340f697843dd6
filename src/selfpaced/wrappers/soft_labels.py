"""One fit to labels that are probabilities, for estimators that know nothing of such labels."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from ..fingerprint import mixed
from .cases import Array
from .outputs import output_kind, read_output
from .routing import WeightRoute, fit_rows, groups_keyword, last_step

__all__ = ["Fitted", "MeanOfModels", "SoftFit"]

DROPPED = 0.02  # cost: probabilities below this are no row of their own: a choice
DIGITS = 6  # numerical safety: of probabilities; a tree decides ties by the last bit, which every processor has its own
COPIES = 5  # cost: models of drawn labels, for estimators that take no weights
LARGE = 10_000  # theory: rows above which scikit-learn's boosting holds some back to stop early


class Fitted(NamedTuple):
    """A fitted model, and the labels by which it knows the classes."""

    model: Any
    labels: Array


@dataclass(frozen=True, eq=False)
class SoftFit:
    """How an estimator is fitted to probabilities of labels.

    Each row comes once for every class that it may belong to, weighted by that probability. Where the estimator holds
    rows out by itself, copies of a row would vouch for each other: there every row comes once, with its given label and
    the probability of that as its weight. An estimator without weights is fitted a few times, to labels that are drawn.

    Attributes
    ----------
    estimator : classifier
        Cloned for every fit.
    route : WeightRoute
        How weights reach it.
    labels : ndarray
        The distinct labels. An estimator that does not take them is given their places instead.
    codes : ndarray of int
        Given labels, by their places.
    keys : ndarray of uint64
        What the rows hold: equal rows draw equal labels.
    prior : ndarray or None
        The user's weights.
    fit_params : mapping
        Further keywords of ``fit``.
    groups : ndarray or None
        The user's groups.
    trusted : ndarray of bool or None
        Rows that a person has confirmed.
    """

    estimator: Any
    route: WeightRoute
    labels: Array
    codes: Array
    keys: Array
    prior: Array | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    groups: Array | None = None
    trusted: Array | None = None

    @cached_property  # to ask some estimators for their parameters takes milliseconds
    def way(self) -> str:
        """How rows are laid out: "repeated", "weighted" or "drawn"."""
        if not self.route.takes_weights:
            return "drawn"
        return "weighted" if self._holds_out and groups_keyword(self.estimator) is None else "repeated"

    @property
    def words(self) -> str:
        """The same, for ``termination_``."""
        name = type(last_step(self.estimator)).__name__
        if self.way == "drawn":
            return f"{COPIES} models of drawn labels, because {self.route.reason}"
        if self.way == "weighted":
            return f"given labels are weighted, because {name} holds rows out by itself"
        return "each row once for every class it may belong to"

    @property
    def _holds_out(self) -> bool:
        """Whether the estimator assesses itself on rows that it holds out."""
        return any(_assesss_itself(value, 2 * len(self.codes)) for value in _nested(self.estimator))

    def confirmed(self, soft: Array) -> Array:
        """Probabilities of labels, without any doubt about those that a person has confirmed."""
        return (
            soft
            if self.trusted is None
            else np.where(self.trusted[:, None], np.eye(self.labels.size)[self.codes], soft)
        )

    def fit(self, X: Any, soft: Array, rows: Array | None = None) -> Fitted:
        """The estimator fitted to some rows, or all.

        Parameters
        ----------
        X : array-like
            All rows.
        soft : ndarray of shape (n_rows, n_classes)
            Probabilities of the labels.
        rows : ndarray of int, optional
            Those to fit to.

        Returns
        -------
        Fitted
        """
        try:
            return Fitted(self._fit(X, soft, rows), self.labels)
        except ValueError:
            # some libraries only take the labels 0 .. n_classes - 1: encode for them, else keep the first error
            places = np.arange(self.labels.size)
            if not np.array_equal(self.labels, places):
                with suppress(Exception):
                    return Fitted(replace(self, labels=places)._fit(X, soft, rows), places)
            raise

    def _fit(self, X: Any, soft: Array, rows: Array | None) -> Any:
        index = np.arange(len(self.codes)) if rows is None else np.asarray(rows)
        prior = np.ones(len(self.codes)) if self.prior is None else self.prior
        index = index[prior[index] > 0.0]
        certain = bool(np.all(soft[index, self.codes[index]] == 1.0))
        if not certain and self.way != "weighted":  # rows are laid out anew: in an order that is always the same
            index = index[np.lexsort((self.codes[index], self.keys[index]))]
        if self.way == "drawn":
            index = np.repeat(index, np.rint(prior[index]).astype(np.intp))
            if certain:
                return self._entries(X, index, self.codes[index], None)
            draws = [self._drawn(soft, (draw + 0.5) / COPIES)[index] for draw in range(COPIES)]
            models = [self._entries(X, index, codes, None) for codes in draws]
            return MeanOfModels.of(models, self.labels[np.unique(draws)])
        if certain or self.way == "weighted":
            codes = self.codes[index]
            return self._entries(X, index, codes, soft[index, codes] * prior[index])
        kept = np.round(soft[index], DIGITS)
        likeliest = np.arange(len(kept)), soft[index].argmax(axis=1)
        kept[likeliest] = np.maximum(kept[likeliest], DROPPED)  # of very many classes none may be that probable
        kept[kept < DROPPED] = 0.0
        kept /= kept.sum(axis=1, keepdims=True)
        place, codes = np.nonzero(kept)
        return self._entries(X, index[place], codes, kept[place, codes] * prior[index[place]])

    def _drawn(self, soft: Array, part: float) -> Array:
        """A label for every row. Over all parts each label is drawn as often as its probability says."""
        start = mixed(self.keys + self.codes.astype(np.uint64), 0) / 2.0**64
        level = (start + part) % 1.0
        passed = (level[:, None] > np.cumsum(soft, axis=1)).sum(axis=1)
        return np.asarray(np.minimum(passed, soft.shape[1] - 1))

    def _entries(self, X: Any, index: Array, codes: Array, weight: Array | None) -> Any:
        keyword = groups_keyword(self.estimator)
        groups = None if keyword is None else {keyword: index if self.groups is None else self.groups[index]}
        return fit_rows(
            self._balanced(index, codes, weight), X, self.labels[codes], index, weight, self.route,
            groups=groups, fit_params=self.fit_params,
        )  # fmt: skip

    def _balanced(self, index: Array, codes: Array, weight: Array | None) -> Any:
        """A clone; balanced class weights are those of the probabilities, where rows come more than once."""
        model = clone(self.estimator)
        if self.way != "repeated" or np.unique(index).size == index.size:
            return model
        asked = [k for k, v in model.get_params(deep=True).items() if k.endswith("class_weight") and _is_balanced(v)]
        if not asked:
            return model
        total = np.bincount(codes, weight, minlength=self.labels.size)
        known = np.flatnonzero(total > 0.0)
        factor = total.sum() / (known.size * total[known])
        weights = dict(zip(self.labels[known].tolist(), factor.tolist(), strict=True))
        return model.set_params(**dict.fromkeys(asked, weights))


def _is_balanced(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("balanced")


def _nested(estimator: Any) -> list[Any]:
    """The estimator and those inside it."""
    inside = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return [estimator, *(value for value in inside if isinstance(value, BaseEstimator))]


def _assesss_itself(estimator: Any, n_rows: int) -> bool:
    """Whether an estimator holds rows out: folds, a validation part, probabilities from folds."""
    given = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    if ("cv" in given and not isinstance(given["cv"], str)) or given.get("probability") is True:
        return True
    # GradientBoosting has no switch: a number of rounds without progress is what turns it on.
    early = given.get("early_stopping", "validation_fraction" in given and given.get("n_iter_no_change") is not None)
    return early is True or (early == "auto" and n_rows > LARGE)


class MeanOfModels(ClassifierMixin, BaseEstimator):
    """The mean of fitted models: of their probabilities, or of their predictions where they have none.

    Attributes
    ----------
    models_ : list of classifiers
    classes_ : ndarray
    """

    @classmethod
    def of(cls, models: list[Any], classes: Array) -> MeanOfModels:
        """The mean of these; the classes are given because a model need not name its own."""
        mean = cls()
        mean.models_, mean.classes_ = models, classes
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(models[0], name):
                setattr(mean, name, getattr(models[0], name))
        return mean

    def fit(self, X: Any, y: Any) -> MeanOfModels:
        """It is made of fitted models, and has nothing to fit.

        Parameters
        ----------
        X, y
            Not used.
        """
        raise NotImplementedError("a mean of fitted models is not fitted again; fit the wrapper")

    def predict_proba(self, X: Any) -> Array:
        """Mean probabilities, one column per class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        kind = "predict_proba" if output_kind(self.models_[0]) == "predict_proba" else "predict"
        votes = [read_output(model, X, kind=kind, labels=self.classes_) for model in self.models_]
        return np.asarray(np.mean(votes, axis=0))

    def predict(self, X: Any) -> Array:
        """The class of the largest mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
