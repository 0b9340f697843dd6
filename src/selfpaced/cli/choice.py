"""``--model auto``: which model fits a table, by its predictions of held-out rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Contender", "ModelChoice", "choose", "log_scale"]

FOLDS = 3  # cost: each holds a third out
MANY = 1_000  # cost: rows above which a third of them is held out once, and not every row
ROWS = 3_000  # cost: rows that are compared, which tell a difference of a few hundredths of a nat
STANDARD_ERRORS = 2.0  # a choice: standard errors by which boosting must be ahead of logistic regression
FAR_AHEAD = 1.2  # a choice, weighed by benchmarks/tables.py: times the information that boosting must have, too
# cost: boosting is compared by a third of its trees with three times the learning rate
QUICK = {"max_iter": 33, "learning_rate": 0.3}
BETTER = 0.95  # a choice, weighed by benchmarks/tables.py: of the error of boosting, below which ridge is taken
USUAL = 0.9  # a choice: share of the rows, those with the smallest errors, over which an error is typical
LINEAR, FLEXIBLE = "logistic", "hist-gradient-boosting"

Encode = Callable[[str, np.ndarray], tuple[Any, list[int]]]


@dataclass(frozen=True)
class Contender:
    """A model that was compared.

    Attributes
    ----------
    model : str
    log : bool
        Whether it predicts the logarithm of the values.
    figure : float
        On held-out rows: the mean log-likelihood of the labels, or the typical error in the unit of the target.
    likelihood : float
        Mean log-likelihood of the held-out values, by which scales of one model are compared.
    """

    model: str
    log: bool
    figure: float
    likelihood: float = math.nan


@dataclass(frozen=True)
class ModelChoice:
    """The model that was chosen, and what it was compared with.

    Attributes
    ----------
    model : str
    log : bool
        Whether the logarithm of the values is fitted.
    contenders : tuple of Contender
        All that were compared; none if there were too few rows.
    gain, error : float
        For labels: nats per row by which boosting is ahead of logistic regression on held-out rows, and its standard
        error.
    rows : int
        Rows that were compared.
    """

    model: str
    log: bool = False
    contenders: tuple[Contender, ...] = ()
    gain: float = math.nan
    error: float = math.nan
    rows: int = 0

    def sentence(self, target: str) -> str:
        """What was compared, and what came out."""
        if self.model not in (LINEAR, FLEXIBLE) or not math.isfinite(self.gain):
            return self._of_values(target)
        name = "Boosting" if self.model == FLEXIBLE else "Logistic regression"
        better = "boosting" if self.gain > 0 else "logistic regression"
        why = "" if self.model == FLEXIBLE or self.gain <= 0 else "; boosting is used only if it is far ahead"
        return (
            f"{name} is used: on {self.rows:,} held-out rows {better} predicts the given labels better by "
            f"{abs(self.gain):.3f} nats per row (standard error {self.error:.3f}){why}."
        )

    def _of_values(self, target: str) -> str:
        if not self.contenders:
            name = _NAMES[self.model].capitalize()
            return f"{name} is used: there are too few rows to compare it with boosting."
        chosen = next(c for c in self.contenders if (c.model, c.log) == (self.model, self.log))
        others = [c for c in self.contenders if c.model != self.model]
        second = min(others, key=lambda one: one.figure)
        return f"Typical error in {target}: {_in_words(chosen)}, {_in_words(second)}."

    @property
    def data(self) -> dict[str, Any]:
        """The same for machines."""
        compared = [{"model": c.model, "log_scale": c.log, "figure": c.figure} for c in self.contenders]
        return {"model": self.model, "log_scale": self.log, "rows": self.rows, "compared": compared}


_NAMES = {LINEAR: "logistic regression", FLEXIBLE: "boosting", "ridge": "ridge regression"}


def _in_words(one: Contender) -> str:
    scale = " on a log scale" if one.log else ""
    figure = f"{one.figure:,.0f}" if one.figure >= 100 else f"{one.figure:.3g}"
    return f"{figure} with {_NAMES[one.model]}{scale}"


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

    Parameters
    ----------
    encode : callable
        ``encode(kind, rows)`` gives features of these rows for a model of this kind ("linear", "tree"), and which of
        them are categories.
    target : ndarray
        Labels or values of all rows.
    task : {"classification", "regression"}
    seed : int
        Of the sample of rows and of the folds.
    least : int
        Rows that are needed for a comparison.

    Returns
    -------
    ModelChoice
    """
    rows = _compared(target, task, seed)
    if rows.size < max(least, 2 * FOLDS):
        return ModelChoice(LINEAR if task == "classification" else "ridge")
    return _classes(encode, target, rows, seed) if task == "classification" else _values(encode, target, rows, seed)


def _compared(target: np.ndarray, task: str, seed: int) -> np.ndarray:
    """A sample of the rows whose class has one in every fold; none where that leaves one class."""
    rows = np.arange(target.size)
    if target.size > ROWS:
        rows = np.sort(np.random.default_rng(seed).permutation(target.size)[:ROWS])
    if task == "regression":
        return rows
    _, codes, counts = np.unique(target[rows], return_inverse=True, return_counts=True)
    return rows[counts[codes] >= FOLDS] if np.count_nonzero(counts >= FOLDS) >= 2 else rows[:0]


def log_scale(values: np.ndarray) -> tuple[np.ufunc, np.ufunc]:
    """The logarithm and its inverse; if values are not all positive, the asinh, which is like it for large ones."""
    return (np.log, np.exp) if values.min() > 0 else (np.arcsinh, np.sinh)


# ------------------------------------------------------------------------------------------------------ classes


def _classes(encode: Encode, labels: np.ndarray, rows: np.ndarray, seed: int) -> ModelChoice:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    codes = np.unique(labels[rows], return_inverse=True)[1]
    folds = _some(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(rows, codes), rows)
    linear, _ = encode("linear", rows)
    tree, places = encode("tree", rows)
    boosting = HistGradientBoostingClassifier(random_state=seed, categorical_features=places or None, **QUICK)
    plain = _likelihood(LogisticRegression(max_iter=1000), linear, codes, folds)
    flexible = _likelihood(boosting, tree, codes, folds)
    gap = flexible - plain
    gain, error = float(gap.mean()), float(gap.std(ddof=1) / math.sqrt(gap.size))
    frequency = np.bincount(codes) / codes.size
    unknown = float(-frequency @ np.log(frequency))  # nats per row that the frequencies of the classes leave open
    informed = unknown + flexible.mean() > FAR_AHEAD * max(unknown + plain.mean(), 0.0)
    ahead = informed and gain > STANDARD_ERRORS * error
    contenders = (Contender(LINEAR, False, float(plain.mean())), Contender(FLEXIBLE, False, float(flexible.mean())))
    return ModelChoice(FLEXIBLE if ahead else LINEAR, False, contenders, gain, error, int(gap.size))


def _some(folds: Any, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The folds that are predicted: all, or one of many rows."""
    return list(folds)[: 1 if rows.size > MANY else FOLDS]


def _likelihood(model: Any, X: Any, codes: np.ndarray, folds: list[Any]) -> np.ndarray:
    """Log-likelihood of each given label, by a model that has not seen it and a noise model with one rate."""
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning

    from selfpaced.fitting import few_threads
    from selfpaced.label_noise import fit_channel, logits_from_proba

    with few_threads(codes.size), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fit that is nearly done tells enough
        proba = [clone(model).fit(X[train], codes[train]).predict_proba(X[test]) for train, test in folds]
    logits, codes = logits_from_proba(np.concatenate(proba)), codes[np.concatenate([test for _, test in folds])]
    channel = fit_channel(logits, codes, class_conditional=False, shift=False)
    given = channel.given_proba(logits)[np.arange(codes.size), codes]
    return np.asarray(np.log(np.maximum(given, np.finfo(float).tiny)))


# ------------------------------------------------------------------------------------------------------- values


def _values(encode: Encode, values: np.ndarray, rows: np.ndarray, seed: int) -> ModelChoice:
    from sklearn.ensemble import HistGradientBoostingRegressor

    from selfpaced import SelfPacedLinearRegression

    tree, places = encode("tree", rows)
    boosting = HistGradientBoostingRegressor(
        loss="absolute_error", random_state=seed, categorical_features=places or None, **QUICK
    )
    models = {"ridge": (SelfPacedLinearRegression(alpha=1.0), encode("linear", rows)[0]), FLEXIBLE: (boosting, tree)}
    tried = {
        name: [_tried(name, model, X, values[rows], log, seed) for log in (False, True)]
        for name, (model, X) in models.items()
    }
    ridge = min(tried["ridge"], key=lambda one: one.figure)
    flexible = max(tried[FLEXIBLE], key=lambda one: one.likelihood)
    best = ridge if ridge.figure < BETTER * flexible.figure else flexible
    contenders = tuple(one for pair in tried.values() for one in pair)
    return ModelChoice(best.model, best.log, contenders, rows=rows.size)


def _tried(name: str, model: Any, X: Any, values: np.ndarray, log: bool, seed: int) -> Contender:
    """Held-out errors of a model on one scale."""
    from sklearn.base import clone
    from sklearn.model_selection import KFold

    from selfpaced.fitting import few_threads

    to_log, from_log = log_scale(values)
    scaled, errors, residuals, slopes = to_log(values) if log else values, [], [], []
    with few_threads(values.size), np.errstate(over="ignore"):
        for train, test in _some(KFold(FOLDS, shuffle=True, random_state=seed).split(values), values):
            predicted = clone(model).fit(X[train], scaled[train]).predict(X[test])
            errors.append(np.abs(values[test] - (from_log(predicted) if log else predicted)))
            residuals.append(scaled[test] - predicted)
            slopes.append(values[test] if to_log is np.log else np.hypot(1.0, values[test]))
    found = np.sort(np.concatenate(errors))
    figure = float(found[: max(int(USUAL * found.size), 1)].mean())
    change = float(np.log(np.concatenate(slopes)).mean()) if log else 0.0
    return Contender(name, log, figure, _t_likelihood(np.concatenate(residuals)) - change)


def _t_likelihood(residuals: np.ndarray) -> float:
    """Mean log-density of errors under a heavy-tailed distribution (Student t with 2 degrees), at its best scale."""
    from scipy.stats import t

    middle = max(float(np.median(np.abs(residuals))), np.finfo(float).tiny)
    scales = middle * np.array([0.5, 0.7, 1.0, 1.4, 2.0])  # around the one that fits the middle half
    return max(float(np.mean(t.logpdf(residuals / scale, 2)) - np.log(scale)) for scale in scales)
