"""Reference models of labels: cheap models, each with a vote on every row by models that have not seen it.

A model that memorises cannot tell which of its labels are wrong. Trees on halves of the rows with leaves of five, and a
ridge logistic regression, cannot memorise single labels; and rows outside a half cost no further fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.utils.parallel import Parallel, delayed

from ..folds import Split
from .cases import Array, Cases
from .outputs import as_votes, output_kind, read_output
from .routing import take_rows
from .soft_labels import SoftFit

__all__ = ["BaggedReference", "ForestReference", "LogisticReference", "ModelReference", "ReferenceModel", "bagged"]

# a choice, made on development data.
TREES = 50  # of a forest
AGAIN = 16  # of a forest that learns from soft labels, which hold the votes of the first already
LEAF = 5  # rows in a leaf: fewer follow single labels
PENALTY = 0.1  # C of the logistic regression, on standardised columns

MOST_ROWS = 5_000  # cost: rows of a tree
MANY = 10_000  # cost: rows above which half as many trees vote; also rows of a regression
FEWEST = 100  # a choice: rows of a regression for each column, where there are so many
STEPS = 200  # cost: of the logistic regression's solver
MEMBERS = 50  # a choice: models of an ensemble from which on every row is left out by enough of them to vote


class ReferenceModel(Protocol):
    """Whoever has a diagnosis on every case without having seen its label."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def votes(self, soft: Array) -> Array:
        """Probabilities of the labels, where models learn from the probabilities ``soft``."""
        ...


@dataclass(frozen=True, eq=False)
class ForestReference:
    """Trees, each fitted to one half of the units and asked about the other.

    Attributes
    ----------
    name : str
        What it is called.
    tree : type
        A tree that splits at the best or at random places.
    table : ndarray of shape (n_cases, n_features)
        Numbers.
    cases : Cases
        Weights, and what is held out together.
    folds : sequence of (train, test) or None
        Given folds, which then take the place of halves.
    seed : int
        Of halves and trees.
    n_jobs : int or None
        Trees fitted at the same time.
    """

    name: str
    tree: type[DecisionTreeRegressor | ExtraTreeRegressor]
    table: Array
    cases: Cases
    folds: Sequence[Split] | None = None
    seed: int = 0
    n_jobs: int | None = None

    def votes(self, soft: Array) -> Array:
        """Mean leaf of the trees that have not seen the case."""
        # The squared error of probabilities is Gini's impurity: a tree of values takes soft labels as they are.
        target = soft[:, 1:] if soft.shape[1] == 2 else soft
        table = np.ascontiguousarray(self.table, dtype=np.float32)
        rng = np.random.default_rng(self.seed)
        trees = TREES if np.array_equal(soft, self.cases.hard) else AGAIN
        tasks = [(train, test, int(rng.integers(2**31))) for train, test in self._bags(rng, trees)]
        with config_context(skip_parameter_validation=True, assume_finite=True):
            if self.n_jobs in (None, 1):  # dealing out the work takes about as long as a tree
                state = np.random.RandomState()  # to make one takes a fourth of a tree's time, to seed it hardly any
                found = [self._one(table, target, train, test, seed, state) for train, test, seed in tasks]
            else:
                found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                    delayed(self._one)(table, target, *task) for task in tasks
                )
        leaves = [np.hstack([1.0 - part, part]) if soft.shape[1] == 2 else part for part in found]
        return _averaged(self.cases, [(train, test) for train, test, _ in tasks], leaves)

    def _one(self, table: Array, target: Array, train: Array, test: Array, seed: int, state: Any = None) -> Array:
        if state is not None:
            state.seed(seed)
        model = self.tree(min_samples_leaf=LEAF, max_features="sqrt", random_state=seed if state is None else state)
        weight = self.cases.weight[train]  # checked anew by every tree: left away where it says nothing
        weighted = {} if np.all(weight == 1.0) else {"sample_weight": weight}
        model.fit(table[train], target[train], check_input=False, **weighted)
        return np.asarray(model.predict(table[test], check_input=False)).reshape(len(test), -1)

    def _bags(self, rng: np.random.Generator, trees: int) -> Iterator[Split]:
        """Cases to learn from and to be asked about; two trees share a deal, so that every case has as many votes."""
        deals = trees // (2 if self.cases.n_used <= MANY else 4)
        if self.folds is not None:
            for train, test in self.folds:
                learnt = train[train < self.cases.n_used]
                for _ in range(deals):
                    yield _some(learnt, max(2, len(learnt) // 2), rng), test
            return
        names, unit = np.unique(self.cases.unit[: self.cases.n_used], return_inverse=True)
        for _ in range(deals):
            left = (rng.permutation(names.size) < names.size // 2)[unit.reshape(-1)]
            for side in (left, ~left):
                outside = np.concatenate([np.flatnonzero(~side), self.cases.unused])
                yield _some(np.flatnonzero(side), MOST_ROWS, rng), outside


def _averaged(cases: Cases, splits: Sequence[Split], parts: Sequence[Array]) -> Array:
    """Mean vote on every case, from those on the test part of each split."""
    total, count = np.zeros((len(cases.codes), cases.n_classes)), np.zeros(len(cases.codes))
    for (_, test), part in zip(splits, parts, strict=True):
        total[test] += part
        count[test] += 1.0
    never = count == 0.0  # in no test part, as the only one of its class: nothing speaks against its label
    return np.asarray(np.where(never[:, None], cases.hard, total / np.maximum(count, 1.0)[:, None]))


def _some(rows: Array, most: int, rng: np.random.Generator) -> Array:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


@dataclass(frozen=True, eq=False)
class LogisticReference:
    """A ridge logistic regression outside every fold.

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

    def votes(self, soft: Array) -> Array:
        """Probabilities by the regression of the other folds."""
        with config_context(skip_parameter_validation=True, assume_finite=True):
            return _averaged(self.cases, self.folds, [self._outside(soft, *fold) for fold in self.folds])

    def _outside(self, soft: Array, train: Array, test: Array) -> Array:
        learnt = train[train < self.cases.n_used]
        if not sparse.issparse(self.table):  # words may be rarer than rows are many
            learnt = _some(learnt, max(MANY, FEWEST * self.table.shape[1]), np.random.default_rng(len(test)))
        place, codes = np.nonzero(soft[learnt])
        rows = learnt[place]
        if np.unique(codes).size < 2:
            return soft[learnt[:1]].repeat(len(test), axis=0)
        model = LogisticRegression(C=PENALTY, max_iter=STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a vote that is nearly there will do
            model.fit(self.table[rows], codes, sample_weight=soft[rows, codes] * self.cases.weight[rows])
        return read_output(model, self.table[test], kind="predict_proba", labels=np.arange(soft.shape[1]))


@dataclass(frozen=True, eq=False)
class ModelReference:
    """Any classifier, outside every fold; its votes are averaged over several deals.

    Attributes
    ----------
    name : str
        What it is called.
    X : array-like
        All rows, as the classifier takes them.
    cases : Cases
        Where the cases stand among the rows.
    fitted : SoftFit
        How it is fitted.
    deals : sequence of folds
        Folds of the cases, once or more.
    n_jobs : int or None
        Folds fitted at the same time.
    """

    name: str
    X: Any
    cases: Cases
    fitted: SoftFit
    deals: Sequence[Sequence[Split]]
    n_jobs: int | None = None

    def votes(self, soft: Array) -> Array:
        """Probabilities by models of the other folds."""
        return _averaged(self.cases, self._splits, self._parts(soft, self._splits))

    def in_turn(self, soft: Array) -> Iterator[tuple[Array, Array]]:
        """Votes of half of the models and on which cases, then those of all: whoever has heard enough asks no more."""
        splits, asked = self._splits, np.zeros(len(self.cases.codes), dtype=bool)
        first, rest = splits[: -(-len(splits) // 2)], splits[-(-len(splits) // 2) :]
        at_once = self.n_jobs not in (None, 1)  # others would have nothing to do meanwhile
        parts = self._parts(soft, splits if at_once else first)
        if rest:
            asked[np.concatenate([test for _, test in first])] = True
            yield asked, _averaged(self.cases, first, parts[: len(first)])
            parts += [] if at_once else self._parts(soft, rest)
        yield np.ones_like(asked), _averaged(self.cases, splits, parts)

    @property
    def _splits(self) -> list[Split]:
        return [split for folds in self.deals for split in folds]

    def _parts(self, soft: Array, splits: Sequence[Split]) -> list[Array]:
        """Votes on the test part of each split."""
        of_row = self.cases.of_row
        return list(
            Parallel(n_jobs=self.n_jobs)(
                delayed(_outside)(self.fitted, self.X, soft[of_row], np.flatnonzero(np.isin(of_row, train)), rows)
                for train, rows in ((train, self.cases.first[test]) for train, test in splits)
            )
        )


def _outside(fitted: SoftFit, X: Any, soft: Array, train: Array, rows: Array) -> Array:
    """Votes on some rows by a model of others."""
    model, labels = fitted.fit(X, soft, train)
    return as_votes(read_output(model, take_rows(X, rows), kind=output_kind(model), labels=labels), output_kind(model))


# ------------------------------------------------------------------------------------------- votes out of the bag


def bagged(estimator: Any) -> Any:
    """A clone that keeps the votes of its members on the rows that each has not seen; None without such members."""
    given = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    if not (given.get("bootstrap") and "oob_score" in given and given.get("n_estimators", 0) >= MEMBERS):
        return None
    return clone(estimator).set_params(oob_score=given["oob_score"] or True)


@dataclass(frozen=True, eq=False)
class BaggedReference:
    """A fitted ensemble: each row is assessed by those of its members that were fitted without it.

    Attributes
    ----------
    model : classifier
        Fitted, with its votes out of the bag.
    cases : Cases
        Every row is a case of its own, and has weight.
    halves : ReferenceModel
        Who votes where labels are soft: copies of a row would vouch for each other.
    """

    model: Any
    cases: Cases
    halves: ReferenceModel

    @property
    def name(self) -> str:
        """What it is called."""
        return self.halves.name

    def votes(self, soft: Array) -> Array:
        """Mean of the members outside of whose bag a case was."""
        if not np.array_equal(soft, self.cases.hard):
            return self.halves.votes(soft)
        seen = np.asarray(self.model.oob_decision_function_)
        out = np.tile(np.average(self.cases.hard, axis=0, weights=self.cases.weight), (len(self.cases.codes), 1))
        known = np.isfinite(seen).all(axis=1)
        out[self.cases.of_row[known]] = seen[known]
        return out

    def in_turn(self, soft: Array) -> Iterator[tuple[Array, Array]]:
        """All votes at once: they cost nothing."""
        yield np.ones(len(self.cases.codes), dtype=bool), self.votes(soft)
