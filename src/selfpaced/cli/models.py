"""The models that can be asked for by name, and ``--model auto``: which one fits a table, by held-out rows."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from selfpaced.formatting import number, percent

from .console import UsageError
from .data import log_scale

LINEAR, RIDGE, FLEXIBLE = "logistic", "ridge", "boosting"
_TASK = {LINEAR: "classification", RIDGE: "regression"}
_NAMES = {LINEAR: "logistic regression", FLEXIBLE: "boosting", RIDGE: "ridge regression"}

MODEL_FOLDS = 3  # cost: each holds a third out
HELD_OUT_ONCE = 1_000  # cost: rows above which a third of them is held out once, and not every row
ROWS = 3_000  # cost: rows that are compared, which tell a difference of a few hundredths of a nat
FAR_AHEAD = 1.2  # a choice, weighed by benchmarks/tables.py: times the information that boosting must have, too
RIDGE_AHEAD = 0.95  # a choice, weighed by benchmarks/tables.py: of the error of boosting, below which ridge is taken
# cost: half of the trees of boosting decide as all do (benchmarks/tables.py), and small classes need a penalty
QUICK = {"max_iter": 50, "l2_regularization": 1.0}
# gross errors move a median less than a mean; after 100 trees it has not reached rare kinds of rows, whose values are
# then far from the model (benchmarks/tables.py: held-out error of turbines 22.7, with 300 trees 9.3; others as before)
ROBUST = {"loss": "absolute_error", "max_iter": 300}

Encode = Callable[[str, np.ndarray], tuple[Any, list[int]]]
Folds = list[tuple[np.ndarray, np.ndarray]]


# ------------------------------------------------------------------------------------------------- by its name


def model_of(args: argparse.Namespace, task: str) -> str:
    """Return the model's name ("auto" if the data decide), or raise an error if it cannot do the task."""
    name: str = args.model
    if _TASK.get(name, task) != task:
        target = "classes" if task == "classification" else "values"
        raise UsageError(f"--model {name} is for {_TASK[name]}, but the target holds {target}; see --task and --model")
    return name


def kind_of(name: str) -> str:
    """Return which features a model wants."""
    return "linear" if name in _TASK else "tree"


def build(name: str, task: str, args: argparse.Namespace, categorical: list[int], logged: Any = None) -> Any:
    """Return an unfitted self-paced model.

    ``categorical`` are the positions of features that are ranks of categories; ``logged`` are the values, if a model
    of their logarithm is asked for.
    """
    from sklearn.compose import TransformedTargetRegressor

    import selfpaced

    if name == LINEAR:
        return selfpaced.SelfPacedLogisticRegression(random_state=args.seed)
    if name == RIDGE:
        model: Any = selfpaced.SelfPacedLinearRegression(alpha=1.0, random_state=args.seed)
    else:
        wrapper = selfpaced.SelfPacedClassifier if task == "classification" else selfpaced.SelfPacedRegressor
        model = wrapper(_boosting(task, args.seed, categorical), random_state=args.seed)
    if logged is None:
        return model
    to_log, from_log = log_scale(logged)
    return TransformedTargetRegressor(model, func=to_log, inverse_func=from_log, check_inverse=False)


def paced(model: Any) -> Any:
    """Return the self-paced model itself, without a change of scale around it."""
    return getattr(model, "regressor_", model)


def _boosting(task: str, seed: int, categorical: list[int], **rest: Any) -> Any:
    from sklearn import ensemble

    known: dict[str, Any] = {"random_state": seed, "categorical_features": categorical or None, **rest}
    if task == "classification":
        return ensemble.HistGradientBoostingClassifier(**known)
    return ensemble.HistGradientBoostingRegressor(**ROBUST, **known)


# ------------------------------------------------------------------------------------------------ by held-out rows


@dataclass(frozen=True)
class Contender:
    """A model that was compared.

    ``figure`` is the mean log-likelihood of held-out labels, or the typical error in the unit of the target.
    ``likelihood`` is that of held-out values, by which scales of one model are compared.
    """

    model: str
    log_scale: bool
    figure: float
    likelihood: float = math.nan

    def __str__(self) -> str:
        return f"{number(self.figure)} with {_NAMES[self.model]}{' on a log scale' * self.log_scale}"


@dataclass(frozen=True)
class ModelChoice:
    """The model that was chosen, what was compared (nothing if there were too few rows), and on how many rows."""

    model: str
    log: bool = False
    contenders: tuple[Contender, ...] = ()
    rows: int = 0

    def sentence(self, target: str) -> str:
        """Return what was compared, and what came out."""
        name = _NAMES[self.model].capitalize()
        if not self.contenders:
            return f"{name} is used: there are too few rows to compare it with boosting."
        chosen = next(c for c in self.contenders if (c.model, c.log_scale) == (self.model, self.log))
        others = [c for c in self.contenders if c.model != self.model]
        if LINEAR in (self.model, others[0].model):
            why = "; boosting is used only if it is far ahead" * (chosen.figure < others[0].figure)
            what = f"mean log-likelihood of {self.rows:,} held-out labels"
            return f"{name} is used: the {what} is {chosen}, {others[0]}{why}."
        second = min(others, key=lambda one: one.figure)
        needed = f"; boosting is used unless ridge regression is better by {percent(1 - RIDGE_AHEAD, 0)}"
        return f"Typical error in {target}: {chosen}, {second}{needed if chosen.figure > second.figure else ''}."

    @property
    def data(self) -> dict[str, Any]:
        """The same for machines."""
        compared = [asdict(one) for one in self.contenders]
        return {"model": self.model, "log_scale": self.log, "rows": self.rows, "compared": compared}


def choose(encode: Encode, target: np.ndarray, task: str, seed: int, least: int = 1) -> ModelChoice:
    """Compare models on held-out rows.

    Labels: logistic regression and boosting, by the likelihood of the given labels under a noise model with one rate.
    A wrong label costs any good model about the same, so that the two differ by what they know of the right ones.
    Logistic regression lists errors better and is preferred unless boosting is far ahead: by two standard errors, and
    by a fifth of what logistic regression knows beyond the frequencies of the classes.

    Values: ridge regression and boosting, each on the plain and on the log scale. Boosting takes the scale on which
    held-out values are likelier, under errors with heavy tails. It is robust and lists errors better; ridge regression
    is taken if its error in the unit of the target is smaller by 5 %. That error is the mean size over held-out
    rows, without the tenth of the rows with the largest.

    ``encode(kind, rows)`` gives features of these rows for a model of this kind ("linear", "tree"), and which of them
    are categories. With fewer than ``least`` rows nothing is compared.
    """
    from selfpaced.fitting import few_threads

    rows = np.sort(np.random.default_rng(seed).permutation(target.size)[:ROWS])
    if task == "classification":  # every class has a row in every fold
        _, codes, counts = np.unique(target[rows], return_inverse=True, return_counts=True)
        rows = rows[counts[codes] >= MODEL_FOLDS] if np.count_nonzero(counts >= MODEL_FOLDS) >= 2 else rows[:0]
    if rows.size < max(least, 2 * MODEL_FOLDS):
        return ModelChoice(LINEAR if task == "classification" else RIDGE)
    compare = _classes if task == "classification" else _values
    with few_threads(rows.size), np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a fit that is nearly done, or penalised, tells enough
        return compare(encode, target[rows], rows, seed)


def _classes(encode: Encode, labels: np.ndarray, rows: np.ndarray, seed: int) -> ModelChoice:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    codes = np.unique(labels, return_inverse=True)[1]
    folds = list(StratifiedKFold(MODEL_FOLDS, shuffle=True, random_state=seed).split(rows, codes))
    folds = folds[: 1 if rows.size > HELD_OUT_ONCE else MODEL_FOLDS]
    tree, places = encode("tree", rows)
    boosting = _boosting("classification", seed, places, **QUICK)
    plain = _likelihood(LogisticRegression(max_iter=1000), encode("linear", rows)[0], codes, folds)
    flexible = _likelihood(boosting, tree, codes, folds)
    gap = flexible - plain
    gain, error = float(gap.mean()), float(gap.std(ddof=1) / math.sqrt(gap.size))
    frequency = np.bincount(codes) / codes.size
    unknown = float(-frequency @ np.log(frequency))  # nats per row that the frequencies of the classes leave open
    informed = unknown + flexible.mean() > FAR_AHEAD * max(unknown + plain.mean(), 0.0)
    contenders = (Contender(LINEAR, False, float(plain.mean())), Contender(FLEXIBLE, False, float(flexible.mean())))
    ahead = informed and gain > 2.0 * error
    return ModelChoice(FLEXIBLE if ahead else LINEAR, False, contenders, int(gap.size))


def _likelihood(model: Any, X: Any, codes: np.ndarray, folds: Folds) -> np.ndarray:
    """Return the log-likelihood of each held-out label under a noise model with one rate."""
    from sklearn.base import clone

    from selfpaced.label_noise import fit_channel, logits_from_proba

    proba = [clone(model).fit(X[train], codes[train]).predict_proba(X[test]) for train, test in folds]
    logits, codes = logits_from_proba(np.concatenate(proba)), codes[np.concatenate([test for _, test in folds])]
    channel = fit_channel(logits, codes, shift=False)
    given = channel.given_proba(logits)[np.arange(codes.size), codes]
    return np.asarray(np.log(np.maximum(given, np.finfo(float).tiny)))


def _values(encode: Encode, values: np.ndarray, rows: np.ndarray, seed: int) -> ModelChoice:
    from sklearn.model_selection import KFold

    from selfpaced import SelfPacedLinearRegression

    folds = list(KFold(MODEL_FOLDS, shuffle=True, random_state=seed).split(rows))[
        : 1 if rows.size > HELD_OUT_ONCE else MODEL_FOLDS
    ]
    tree, places = encode("tree", rows)
    boosting = _boosting("regression", seed, places)
    models = {RIDGE: (SelfPacedLinearRegression(alpha=1.0), encode("linear", rows)[0]), FLEXIBLE: (boosting, tree)}
    tried = {
        name: [_tried(name, model, X, values, log, folds) for log in (False, True)]
        for name, (model, X) in models.items()
    }
    ridge = min(tried[RIDGE], key=lambda one: one.figure)
    flexible = max(tried[FLEXIBLE], key=lambda one: one.likelihood)
    best = ridge if ridge.figure < RIDGE_AHEAD * flexible.figure else flexible
    return ModelChoice(best.model, best.log_scale, (*tried[RIDGE], *tried[FLEXIBLE]), rows=rows.size)


def _tried(name: str, model: Any, X: Any, values: np.ndarray, log: bool, folds: Folds) -> Contender:
    """Return the held-out errors of a model on one scale."""
    from scipy.stats import t
    from sklearn.base import clone

    to_log, from_log = log_scale(values)
    scaled = to_log(values) if log else values
    tests = np.concatenate([test for _, test in folds])
    fits = [clone(model).fit(X[train], scaled[train]).predict(X[test]) for train, test in folds]
    predicted, given = np.concatenate(fits), values[tests]
    errors = np.sort(np.abs(given - (from_log(predicted) if log else predicted)))
    typical = float(errors[: max(int(0.9 * errors.size), 1)].mean())
    residuals = scaled[tests] - predicted
    middle = max(float(np.median(np.abs(residuals))), np.finfo(float).tiny)
    # heavy tails (Student t with 2 degrees) at the best scale around the one that fits the middle half
    likelihoods = [
        float(np.mean(t.logpdf(residuals / scale, 2)) - np.log(scale)) for scale in middle * np.geomspace(0.5, 2.0, 5)
    ]
    slope = given if to_log is np.log else np.hypot(1.0, given)
    change = float(np.log(slope).mean()) if log else 0.0
    return Contender(name, log, typical, max(likelihoods) - change)
