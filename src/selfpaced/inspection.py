"""Which rows are wrong: a ranked table of suspects for every self-paced classifier and regressor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from .judgement import JudgedByAnother, Judgement, Judging
from .regularizers import get
from .residuals import outlier_probability

__all__ = ["Records", "label_issues", "look_through", "suspects"]


class Records(dict[str, np.ndarray]):
    """A light table, column by column, where pandas is not installed.

    Being a dict of columns it is what ``pandas.DataFrame`` and ``polars.DataFrame`` take.

    >>> table = Records(row=np.array([3, 1]), weight=np.array([0.0, 0.5]))
    >>> table
    row  weight
      3       0
      1     0.5
    >>> table.head(1).to_dict("records")
    [{'row': 3, 'weight': 0.0}]
    """

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows one by one, with Python values."""
        for values in zip(*self.values(), strict=True):
            yield {
                key: value.item() if hasattr(value, "item") else value for key, value in zip(self, values, strict=True)
            }

    def head(self, n: int = 5) -> Records:
        """The first rows."""
        return Records({key: value[:n] for key, value in self.items()})

    def to_dict(self, orient: str = "list") -> Any:
        """Columns as lists, or with "records" the rows as dicts."""
        return list(self.rows()) if orient == "records" else {key: value.tolist() for key, value in self.items()}

    def __repr__(self) -> str:
        shown = [[_cell(value) for value in row.values()] for row in self.head(20).rows()]
        cells = [list(self), *shown]
        widths = [max(len(line[j]) for line in cells) for j in range(len(self))]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in cells)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a model says about the given labels or values of some rows."""

    given: np.ndarray
    expected: np.ndarray
    support: np.ndarray
    weight: np.ndarray
    noise: np.ndarray
    loss: np.ndarray
    measure: str


def suspects(fitted: Any, X: Any, y: Any, n: int | None = None) -> Any:
    """Rows whose given label or value is probably wrong, most suspicious first.

    For the rows a `SelfPacedClassifier` or `SelfPacedRegressor` was fitted on, the judgement is that of models that
    had not seen the row; other rows are judged by the fitted model.

    Parameters
    ----------
    fitted : estimator
        A fitted self-paced classifier or regressor, alone, as the last step of a Pipeline, or inside a search.
    X : array-like of shape (n_samples, n_features)
        Rows, usually the training data.
    y : array-like of shape (n_samples,)
        Their given labels or values.
    n : int, optional
        How many rows; all by default.

    Returns
    -------
    pandas.DataFrame, or Records where pandas is not installed
        Columns ``row`` (position in `X`), ``given``, ``expected``, ``probability`` of the given label being the clean
        one (regression: ``residual``), ``weight``, ``noise_probability``, ``label_quality``. The last is
        ``1 - noise_probability`` and follows cleanlab's convention: between 0 and 1, low is suspicious.

    See Also
    --------
    label_issues : the same judgement in the form cleanlab takes.

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced import SelfPacedLogisticRegression, suspects
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> worst = int(np.argmax(X[:, 0]))
    >>> y[worst] = "no"
    >>> table = suspects(SelfPacedLogisticRegression().fit(X, y), X, y, n=3)
    >>> bool(table["row"][0] == worst), str(table["given"][0]), str(table["expected"][0])
    (True, 'no', 'yes')
    """
    evidence = _evidence(fitted, X, y)
    if n is not None and (int(n) != n or n < 0):
        raise ValueError(f"n must be an integer >= 0 or None; got {n!r}.")
    order = np.lexsort((-evidence.loss, -evidence.noise))[: None if n is None else int(n)]
    columns = {
        "row": order,
        "given": evidence.given[order],
        "expected": evidence.expected[order],
        evidence.measure: evidence.support[order],
        "weight": evidence.weight[order],
        "noise_probability": evidence.noise[order],
        "label_quality": 1.0 - evidence.noise[order],
    }
    return _table(columns)


def label_issues(fitted: Any, X: Any, y: Any, threshold: float = 0.5) -> Any:
    """The judgement of every row in row order, with cleanlab's column names.

    ``CleanLearning(model).fit(X, y, label_issues=label_issues(fitted, X, y))`` then trains without them.

    Parameters
    ----------
    fitted, X, y
        See `suspects`.
    threshold : float, default=0.5
        Rows whose probability of being wrong is above it are issues.

    Returns
    -------
    pandas.DataFrame, or Records where pandas is not installed
        ``is_label_issue``, ``label_quality``, ``given_label``, ``predicted_label``.
    """
    evidence = _evidence(fitted, X, y)
    columns = {
        "is_label_issue": evidence.noise > threshold,
        "label_quality": 1.0 - evidence.noise,
        "given_label": evidence.given,
        "predicted_label": evidence.expected,
    }
    return _table(columns)


def _table(columns: dict[str, np.ndarray]) -> Any:
    if find_spec("pandas") is None:
        return Records(columns)
    import pandas as pd

    return pd.DataFrame(columns)


def _evidence(fitted: Any, X: Any, y: Any) -> Evidence:
    fitted, X = look_through(fitted, X)
    if isinstance(fitted, Judging):
        return _of_judgement(fitted.judge(X, y))
    check_is_fitted(fitted)
    given = column_or_1d(y)
    if is_classifier(fitted) and hasattr(fitted, "channel_"):
        return _of_labels(fitted, X, given)
    if is_regressor(fitted) and hasattr(fitted, "sample_loss_"):
        return _of_values(fitted, X, given)
    raise TypeError(
        "fitted must be a fitted self-paced classifier or regressor of this library (or a Pipeline or search that ends "
        f"in one); got {type(fitted).__name__}. Wrap it: SelfPacedClassifier({type(fitted).__name__}())."
    )


def look_through(fitted: Any, X: Any) -> tuple[Any, Any]:
    """The estimator inside searches, Pipelines and filters that judges rows, and the rows as it sees them."""
    while True:
        if isinstance(fitted, Pipeline):
            X = fitted[:-1].transform(X) if len(fitted.steps) > 1 else X
            fitted = fitted.steps[-1][1]
        elif isinstance(fitted, JudgedByAnother):
            check_is_fitted(fitted, "judge_")
            fitted = fitted.judge_
        elif hasattr(fitted, "best_estimator_"):
            fitted = fitted.best_estimator_
        else:
            return fitted, X


def _of_judgement(judgement: Judgement) -> Evidence:
    opinion = judgement.opinion
    return Evidence(
        given=opinion.given,
        expected=opinion.expected,
        support=opinion.support,
        weight=judgement.weight,
        noise=judgement.wrong,
        loss=judgement.losses,
        measure=opinion.measure,
    )


def _weight_of(fitted: Any, loss: np.ndarray, training: bool) -> np.ndarray:
    if training:
        return np.asarray(fitted.sample_weight_)
    if not math.isfinite(fitted.lam_):
        return np.ones(len(loss))
    # an estimator may have ended with another rule than it was given, and may measure losses in its own unit
    rule = get(getattr(fitted, "regularizer_", fitted.regularizer))
    return np.asarray(rule.relative_weight(loss / getattr(fitted, "loss_unit_", 1.0), fitted.lam_))


def _same(a: Any, b: np.ndarray) -> bool:
    """Whether `b` are the losses kept from training, up to a shift of the intercept after them."""
    kept = np.asarray(a, dtype=float)
    if len(kept) != len(b):
        return False
    if np.allclose(kept, b, rtol=1e-4, atol=1e-8):
        return True
    return bool(kept.std() > 0.0 and np.std(b) > 0.0 and np.corrcoef(kept, b)[0, 1] > 0.99)


# ------------------------------------------------------------------------------------------------- labels


def _of_labels(fitted: Any, X: Any, given: np.ndarray) -> Evidence:
    classes = fitted.classes_
    codes = np.searchsorted(classes, given)
    known = codes < classes.size
    known[known] = classes[codes[known]] == given[known]
    if not known.all():
        raise ValueError(f"y must hold labels seen in fit {classes.tolist()!r}; got {given[~known][0]!r}.")
    rows = np.arange(len(codes))
    training = hasattr(fitted, "sample_noise_") and np.array_equal(fitted.training_codes_, codes)
    if training:
        proba, noise, loss = fitted.sample_proba_, fitted.sample_noise_, fitted.sample_loss_
    else:
        logits = fitted.clean_logits(X) if hasattr(fitted, "clean_logits") else fitted.decision_function(X)
        proba = fitted.channel_.proba(logits)
        noise = fitted.channel_.noise_probability(logits, codes)
        loss = -np.log(np.maximum(proba[rows, codes], 1e-300))
        if not hasattr(fitted, "clean_logits"):
            raw = _log_loss(logits, codes)
            training, loss = _same(fitted.sample_loss_, raw), raw
    return Evidence(
        given=given,
        expected=classes[proba.argmax(axis=1)],
        support=proba[rows, codes],
        weight=_weight_of(fitted, loss, training),
        noise=np.clip(noise, 0.0, 1.0),
        loss=loss,
        measure="probability",
    )


def _log_loss(logits: np.ndarray, codes: np.ndarray) -> np.ndarray:
    z = np.stack([np.zeros(len(logits)), logits], axis=1) if np.ndim(logits) == 1 else np.asarray(logits)
    return np.logaddexp.reduce(z, axis=1) - z[np.arange(len(codes)), codes]


# ------------------------------------------------------------------------------------------------- values


def _of_values(fitted: Any, X: Any, given: np.ndarray) -> Evidence:
    if given.dtype.kind not in "fiub":
        raise ValueError(f"y must be numeric for a regressor; got dtype {given.dtype}.")
    values = given.astype(float)
    predicted = np.asarray(fitted.predict(X), dtype=float)
    residual = values - predicted
    held_out = getattr(fitted, "sample_residual_", None)
    if held_out is not None:
        training = np.array_equal(fitted.training_values_, values)
        if training:
            residual = np.asarray(held_out, dtype=float)
            predicted = values - residual
    else:
        training = _same(fitted.sample_loss_, residual**2)
    return Evidence(
        given=given,
        expected=predicted,
        support=residual,
        weight=_weight_of(fitted, residual**2, training),
        noise=outlier_probability(residual, float(fitted.scale_), float(fitted.noise_rate_)),
        loss=np.abs(residual),
        measure="residual",
    )
