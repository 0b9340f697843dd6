"""Reference models of labels: cheap models that predict every row from other rows.

A model that memorises cannot tell which of its labels are wrong. Trees on halves of the rows with leaves of five, and a
ridge logistic regression, cannot memorise single labels, and the rows outside a half cost no further fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.parallel import Parallel, delayed

from ..fingerprint import N_FOLDS
from ..folds import Split
from ._routing import Array, take_rows, weight_route
from ._soft_labels import fit_soft, output_kind, probabilities, read_output
from ._wrapper import Task, seeded

__all__ = ["LEAF", "TREE_ROWS", "ReferenceModel", "numeric_table", "reference_models", "training_rows"]

ReferenceModel = Callable[[Array], Array]  # soft labels -> out-of-fold probabilities of the labels

# a choice, made on development data.
TREES = 50  # of a forest
LEAF = 5  # rows in a leaf: fewer follow single labels
PENALTY = 0.1  # C of the logistic regression, on standardised columns

TREE_ROWS = 5_000  # cost: rows of a tree, and of a logistic regression of up to 50 columns


def reference_models(task: Task, asked: Any) -> dict[str, ReferenceModel]:
    """Return the reference models by name; the model itself if X is no table of numbers."""
    if not isinstance(asked, str) or asked != "auto":
        several = asked if isinstance(asked, list | tuple) else [asked]
        return dict(_itself(task) if isinstance(one, str) else _other(task, one) for one in several)
    table = numeric_table(task.X, task.n_used)
    if table is None:
        return dict([_itself(task)])
    models: dict[str, ReferenceModel] = {} if sparse.issparse(table) else {"forest": partial(_forest, task, table)}
    return models | {"logistic regression": partial(_logistic, task, table)}


def _itself(task: Task) -> tuple[str, ReferenceModel]:
    """Return the wrapped model on halves of the rows, twice: half-trained models memorise less."""
    repetitions = 1 if isinstance(task.folds, list) else 2
    halves = [half for number in range(repetitions) for half in task.splits(2, number)]
    return "the model itself", partial(_held_out, task, halves)


def _other(task: Task, estimator: Any) -> tuple[str, ReferenceModel]:
    model = seeded(estimator, task.seed)
    other = replace(task, estimator=model, route=weight_route(model), fit_params={})
    return type(estimator).__name__, partial(_held_out, other, task.splits(N_FOLDS))


def _held_out(task: Task, folds: Sequence[Split], soft: Array) -> Array:
    """Return probabilities of labels by the wrapped model, fitted to soft labels of other rows."""
    parts = Parallel(n_jobs=task.n_jobs)(delayed(_outside)(task, soft, *fold) for fold in folds)
    return task.mean(folds, parts)


def _outside(task: Task, soft: Array, train: Array, test: Array) -> Array:
    model, labels = fit_soft(task, soft, train)
    kind = output_kind(model)
    return probabilities(read_output(model, take_rows(task.X, test), kind=kind, labels=labels), kind)


def training_rows(task: Task, train: Array, most: int, seed: int) -> Array:
    """Return training rows that have weight, at most so many."""
    train = train[task.weight[train] > 0.0]
    return train if len(train) <= most else np.sort(np.random.default_rng(seed).choice(train, most, replace=False))


def _forest(task: Task, table: Array, soft: Array) -> Array:
    """Return the mean leaf of trees, each fitted to one half of the rows and evaluated on the other."""
    # Squared error of probabilities is Gini impurity: a regression tree takes soft labels as they are.
    target, weight = soft[:, 1:] if soft.shape[1] == 2 else soft, task.weight
    table = np.ascontiguousarray(table, dtype=np.float32)
    # large tables, and soft labels (which contain the first forest's predictions), need fewer trees
    few = len(table) > 2 * TREE_ROWS or not np.array_equal(soft, task.hard)
    splits = [split for number in range(TREES // (4 if few else 2)) for split in task.splits(2, number)]
    if isinstance(task.folds, list):  # trees differ by the half of the training rows that they are fitted to
        splits = [split for split in task.folds for _ in range(TREES // 4)]

    def leaves(number: int, train: Array, test: Array) -> Array:
        most = len(train) // 2 if isinstance(task.folds, list) else TREE_ROWS
        train = training_rows(task, train, min(max(most, 2), TREE_ROWS), task.seed + number)
        model = DecisionTreeRegressor(min_samples_leaf=LEAF, max_features="sqrt", random_state=task.seed + number)
        weighted = {} if np.all(weight[train] == 1.0) else {"sample_weight": weight[train]}
        model.fit(table[train], target[train], check_input=False, **weighted)
        part = np.asarray(model.predict(table[test], check_input=False)).reshape(len(test), -1)
        return np.hstack([1.0 - part, part]) if soft.shape[1] == 2 else part

    with config_context(skip_parameter_validation=True, assume_finite=True):
        if task.n_jobs in (None, 1):  # dispatching takes about as long as a tree
            parts = [leaves(number, *split) for number, split in enumerate(splits)]
        else:
            calls = (delayed(leaves)(number, *split) for number, split in enumerate(splits))
            parts = Parallel(n_jobs=task.n_jobs, prefer="threads")(calls)
    return task.mean(splits, parts)


def _logistic(task: Task, table: Any, soft: Array) -> Array:
    """Return probabilities by a ridge logistic regression of the other folds."""
    folds, labels = task.splits(N_FOLDS), np.arange(soft.shape[1])

    def outside(train: Array, test: Array) -> Array:
        # a sample of a sparse table would lose rare words; a wide table needs more rows
        most = len(train) if sparse.issparse(table) else max(TREE_ROWS, 100 * table.shape[1])
        used = training_rows(task, train, most, len(test))
        place, codes = np.nonzero(soft[used])
        if np.unique(codes).size < 2:
            return soft[used[:1]].repeat(len(test), axis=0)
        weight = (soft[used] * task.weight[used, None])[place, codes]
        model = LogisticRegression(C=PENALTY, max_iter=200).fit(table[used[place]], codes, sample_weight=weight)
        return read_output(model, table[test], kind="predict_proba", labels=labels)

    with config_context(skip_parameter_validation=True, assume_finite=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an approximate reference is good enough
        return task.mean(folds, [outside(*fold) for fold in folds])


# ------------------------------------------------------------------------------------------------- a table of numbers


def numeric_table(X: Any, n_used: int | None = None) -> Any:
    """Return standardised numbers with missing values flagged and categories as indicators; None if X is no table.

    A sparse matrix of more than 200 columns stays sparse. Medians, spreads and categories are learnt from the first
    ``n_used`` rows.

    >>> numeric_table([[0.0, 1.0], [2.0, np.nan]]).round(1).tolist()
    [[-1.0, 0.0, -1.0], [1.0, 0.0, 1.0]]
    >>> numeric_table(["a text", "another"]) is None
    True
    """
    if sparse.issparse(X) and X.shape[1] > 200:
        X = X.tocsr()
        return StandardScaler(with_mean=False).fit(X[:n_used]).transform(X)
    try:
        table = X.toarray() if sparse.issparse(X) else X if hasattr(X, "columns") else np.asarray(X)
        if len(table.shape) != 2 or table.shape[1] == 0:
            return None
        if _is_numeric(table):
            values = np.asarray(table, dtype=np.float64)
            scaled: Any = StandardScaler()
            if not np.isfinite(values).all():
                values = np.where(np.isfinite(values), values, np.nan)
                filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
                scaled = make_pipeline(filled, scaled)
            return scaled.fit(values[:n_used]).transform(values)
        return _encoded(table, n_used)
    except (ImportError, TypeError, ValueError, OverflowError):  # nothing that is read as a table of numbers
        return None


def _is_numeric(table: Any) -> bool:
    kinds = table.dtypes if hasattr(table, "dtypes") else [table.dtype]
    return all(getattr(kind, "kind", "O") in "biuf" for kind in kinds)


def _encoded(table: Any, n_used: int | None) -> Array | None:
    """Return features of a table with categories; None if it has text, which only the wrapped model can read."""
    import pandas as pd

    from ..tables import TableEncoder

    if not hasattr(table, "iloc"):  # polars: by columns, as there may be no Arrow
        table = {str(name): np.asarray(table[name]) for name in table.columns} if hasattr(table, "columns") else table
        table = pd.DataFrame(table).infer_objects()
        if _is_numeric(table):
            return np.asarray(numeric_table(table, n_used))
    if len({name for name in table.columns if isinstance(name, str)}) < table.shape[1]:
        table = table.set_axis([f"column {place}" for place in range(table.shape[1])], axis=1)
    encoder = TableEncoder(max_levels=20, dtype="float64").fit(table.iloc[:n_used])
    return None if encoder.names_of("text") else np.asarray(encoder.transform(table))
