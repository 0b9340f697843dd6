"""Reference models of labels: cheap models that predict every row from other rows.

A model that memorises cannot tell which of its labels are wrong. Trees on halves of the rows with leaves of five, and a
ridge logistic regression, cannot memorise single labels, and the rows outside a half cost no further fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.parallel import Parallel, delayed

from ..folds import Split
from ._cases import Array, Cases
from ._routing import take_rows
from ._soft_labels import as_probabilities, fit_soft, output_kind, read_output
from ._wrapper import Task

__all__ = ["ForestReference", "LogisticReference", "ModelReference", "ReferenceModel"]

# a choice, made on development data.
TREES = 50  # of a forest
TREES_AGAIN = 16  # of a forest that is fitted to soft labels, which contain the first forest's predictions
LEAF = 5  # rows in a leaf: fewer follow single labels
PENALTY = 0.1  # C of the logistic regression, on standardised columns

SAMPLED_ROWS = 5_000  # cost: rows of a tree, and of a logistic regression of few columns
MANY_ROWS = 10_000  # cost: rows above which half as many trees are fitted
ROWS_PER_COLUMN = 100  # a choice: rows of a logistic regression for each column, if there are so many
SOLVER_STEPS = 200  # cost: of the logistic regression


class ReferenceModel(Protocol):
    """A model that predicts every case from other cases."""

    @property
    def name(self) -> str:
        """Its name in ``reference_weights_``."""
        ...

    def predict(self, soft: Array) -> Array:
        """Return out-of-fold probabilities of the labels, from models fitted to the probabilities ``soft``."""
        ...


def mean_of_splits(cases: Cases, splits: Sequence[Split], parts: Sequence[Array]) -> Array:
    """Return the mean prediction of every case; a case that is never held out keeps its label."""
    total, count = np.zeros((len(cases.codes), cases.n_classes)), np.zeros(len(cases.codes))
    for (_, test), part in zip(splits, parts, strict=True):
        total[test] += part
        count[test] += 1.0
    return np.asarray(np.where(count[:, None] == 0.0, cases.hard, total / np.maximum(count, 1.0)[:, None]))


def _some(rows: Array, most: int, rng: np.random.Generator) -> Array:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


@dataclass(frozen=True, eq=False)
class ForestReference:
    """Trees, each fitted to one half of the cases and evaluated on the other.

    Attributes
    ----------
    table : ndarray of shape (n_cases, n_features)
        Numbers.
    cases : Cases
        Weights and splits.
    folds : sequence of (train, test) or None
        The user's folds, which replace the halves.
    seed : int
        Seed of halves and trees.
    n_jobs : int or None
        Trees fitted at the same time.
    """

    table: Array
    cases: Cases
    folds: Sequence[Split] | None = None
    seed: int = 0
    n_jobs: int | None = None
    name: str = "forest"

    def predict(self, soft: Array) -> Array:
        """Return the mean leaf of the trees that have not seen a case."""
        # Squared error of probabilities is Gini impurity: a regression tree takes soft labels as they are.
        target = soft[:, 1:] if soft.shape[1] == 2 else soft
        table = np.ascontiguousarray(self.table, dtype=np.float32)
        rng = np.random.default_rng(self.seed)
        splits = self._splits(rng, TREES if np.array_equal(soft, self.cases.hard) else TREES_AGAIN)
        tasks = [(train, test, int(rng.integers(2**31))) for train, test in splits]
        with config_context(skip_parameter_validation=True, assume_finite=True):
            if self.n_jobs in (None, 1):  # dispatching takes about as long as a tree
                found = [self._one(table, target, *task) for task in tasks]
            else:
                found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                    delayed(self._one)(table, target, *task) for task in tasks
                )
        leaves = [np.hstack([1.0 - part, part]) if soft.shape[1] == 2 else part for part in found]
        return mean_of_splits(self.cases, splits, leaves)

    def _one(self, table: Array, target: Array, train: Array, test: Array, seed: int) -> Array:
        model = DecisionTreeRegressor(min_samples_leaf=LEAF, max_features="sqrt", random_state=seed)
        weight = self.cases.weight[train]  # uniform weights would only be checked again by every tree
        weighted = {} if np.all(weight == 1.0) else {"sample_weight": weight}
        model.fit(table[train], target[train], check_input=False, **weighted)
        return np.asarray(model.predict(table[test], check_input=False)).reshape(len(test), -1)

    def _splits(self, rng: np.random.Generator, trees: int) -> list[Split]:
        """Return training and test cases of every tree; two trees share a split."""
        repetitions = range(trees // (2 if self.cases.n_used <= MANY_ROWS else 4))
        if self.folds is None:
            halves = [half for number in repetitions for half in self.cases.halves(self.seed + number)]
            return [(_some(train, SAMPLED_ROWS, rng), test) for train, test in halves]
        used = [(train[train < self.cases.n_used], test) for train, test in self.folds]
        return [(_some(train, max(2, len(train) // 2), rng), test) for train, test in used for _ in repetitions]


@dataclass(frozen=True, eq=False)
class LogisticReference:
    """A ridge logistic regression for every fold.

    Attributes
    ----------
    table : ndarray or sparse matrix of shape (n_cases, n_features)
        Standardised.
    cases : Cases
        Weights.
    folds : sequence of (train, test)
        Of the cases.
    """

    table: Any
    cases: Cases
    folds: Sequence[Split]
    name: str = "logistic regression"

    def predict(self, soft: Array) -> Array:
        """Return probabilities by the regression of the other folds."""
        with config_context(skip_parameter_validation=True, assume_finite=True):
            return mean_of_splits(self.cases, self.folds, [self._outside(soft, *fold) for fold in self.folds])

    def _outside(self, soft: Array, train: Array, test: Array) -> Array:
        used = train[train < self.cases.n_used]
        if not sparse.issparse(self.table):  # a sample of a sparse table would lose rare words
            most = max(SAMPLED_ROWS, ROWS_PER_COLUMN * self.table.shape[1])
            used = _some(used, most, np.random.default_rng(len(test)))
        place, codes = np.nonzero(soft[used])
        rows = used[place]
        if np.unique(codes).size < 2:
            return soft[used[:1]].repeat(len(test), axis=0)
        model = LogisticRegression(C=PENALTY, max_iter=SOLVER_STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # an approximate reference is good enough
            model.fit(self.table[rows], codes, sample_weight=soft[rows, codes] * self.cases.weight[rows])
        return read_output(model, self.table[test], kind="predict_proba", labels=np.arange(soft.shape[1]))


@dataclass(frozen=True, eq=False)
class ModelReference:
    """Any classifier, fitted once for every fold.

    Attributes
    ----------
    name : str
        Its name.
    task : Task
        All rows, and the classifier.
    cases : Cases
        The cases among the rows.
    folds : sequence of (train, test)
        Of the cases; predictions are averaged if they repeat.
    """

    name: str
    task: Task
    cases: Cases
    folds: Sequence[Split]

    def predict(self, soft: Array) -> Array:
        """Return probabilities by models of the other folds."""
        of_row, first = self.cases.of_row, self.cases.first
        parts = Parallel(n_jobs=self.task.n_jobs)(
            delayed(_outside)(self.task, soft[of_row], np.flatnonzero(np.isin(of_row, train)), first[test])
            for train, test in self.folds
        )
        return mean_of_splits(self.cases, self.folds, parts)


def _outside(task: Task, soft: Array, train: Array, rows: Array) -> Array:
    """Return the probabilities of some rows by a model of others."""
    model, labels = fit_soft(task, soft, train)
    kind = output_kind(model)
    return as_probabilities(read_output(model, take_rows(task.X, rows), kind=kind, labels=labels), kind)
