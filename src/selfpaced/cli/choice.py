"""``--model auto`` for classes: logistic regression or boosting, by how well each foretells the labels as given."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ModelChoice", "choose"]

FOLDS = 3  # cost: each holds a third out, so every row speaks once
ROWS = 3_000  # cost: rows that are asked, which tell a difference of a few hundredths of a nat
DOUBT = 2.0  # a choice: standard errors by which boosting must be ahead of a line
LINEAR, FLEXIBLE = "logistic", "hist-gradient-boosting"


@dataclass(frozen=True)
class ModelChoice:
    """The model that was chosen, and the sentence that says why.

    Attributes
    ----------
    model : str
    gain, error : float
        Nats per row by which boosting is ahead of logistic regression on held-out rows, and its standard error.
    rows : int
        Rows that were asked.
    """

    model: str
    gain: float
    error: float
    rows: int

    @property
    def sentence(self) -> str:
        """What was compared, and what came out."""
        if not self.rows:
            return "Logistic regression was taken: too few rows to compare it with boosting."
        name = "Boosting" if self.model == FLEXIBLE else "Logistic regression"
        ahead = "boosting is ahead" if self.gain > 0 else "logistic regression is ahead"
        doubt = "" if self.model == FLEXIBLE or self.gain <= 0 else f", within {DOUBT:g} standard errors"
        return (
            f"{name} was taken: on {self.rows:,} held-out rows {ahead} by {abs(self.gain):.3f} +- {self.error:.3f} "
            f"nats a row{doubt}, wrong labels allowed for."
        )


def choose(frame: pd.DataFrame, labels: np.ndarray, args: Any, exclude: list[str], decimal: str = "") -> ModelChoice:
    """Compare the plain models on held-out rows.

    What counts is the likelihood of the given labels, seen through a channel with one noise rate: a wrong label costs
    any good model about the same, so that the two differ by what they know of the right ones.

    Parameters
    ----------
    frame : pandas.DataFrame
        The raw table, rows with a label only.
    labels : ndarray
        Their labels.
    args : argparse.Namespace
        With ``categorical`` and ``seed``.
    exclude : list of str
        Columns that are no features.
    decimal : {"", ".", ","}
        See `preprocessor`.

    Returns
    -------
    ModelChoice
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    from selfpaced.tables import preprocessor

    rows = _asked(labels, args.seed)
    if rows.size < max(1, frame.shape[1]):
        return ModelChoice(LINEAR, 0.0, math.nan, 0)
    codes = np.unique(labels[rows], return_inverse=True)[1]
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=args.seed).split(rows, codes))
    likelihood = {}
    for kind in ("linear", "tree"):
        prepare = preprocessor(kind, categorical=args.categorical, exclude=exclude, decimal=decimal)
        features = prepare.fit_transform(frame.iloc[rows])
        if kind == "linear":
            model = LogisticRegression(max_iter=1000)
        else:
            coded = prepare.named_steps["types"].schema_.names("categorical")
            places = [features.columns.get_loc(name) for name in coded]
            model = HistGradientBoostingClassifier(random_state=args.seed, categorical_features=places or None)
        likelihood[kind] = _held_out(model, features.to_numpy(), codes, folds)
    gap = likelihood["tree"] - likelihood["linear"]
    gain, error = float(gap.mean()), float(gap.std(ddof=1) / math.sqrt(gap.size))
    return ModelChoice(FLEXIBLE if gain > DOUBT * error else LINEAR, gain, error, int(gap.size))


def _asked(labels: np.ndarray, seed: int) -> np.ndarray:
    """A sample of the rows whose class has one in every fold; none where that leaves one class."""
    rows = np.arange(labels.size)
    if labels.size > ROWS:
        rows = np.sort(np.random.default_rng(seed).permutation(labels.size)[:ROWS])
    _, codes, counts = np.unique(labels[rows], return_inverse=True, return_counts=True)
    return rows[counts[codes] >= FOLDS] if np.count_nonzero(counts >= FOLDS) >= 2 else rows[:0]


def _held_out(model: Any, X: np.ndarray, codes: np.ndarray, folds: list[Any]) -> np.ndarray:
    """Log-likelihood of each given label, by a model that has not seen it and a channel with one rate."""
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning

    from selfpaced.fitting import few_threads
    from selfpaced.label_noise import fit_channel, logits_from_proba

    proba = np.empty((codes.size, int(codes.max()) + 1))
    with few_threads(codes.size), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fit that is nearly done tells enough
        for train, test in folds:
            proba[test] = clone(model).fit(X[train], codes[train]).predict_proba(X[test])
    logits = logits_from_proba(proba)
    channel = fit_channel(logits, codes, class_conditional=False, shift=False)
    given = channel.given_proba(logits)[np.arange(codes.size), codes]
    return np.asarray(np.log(np.maximum(given, np.finfo(float).tiny)))
