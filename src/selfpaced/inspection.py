"""Which rows are wrong: a ranked table of suspects for every self-paced classifier and regressor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .arguments import integer, number
from .judgement import JudgedByAnother, Judgement, Judging, Labels

__all__ = ["SUSPECT", "Records", "as_table", "judgement_of", "label_issues", "look_through", "suspected", "suspects"]

SUSPECT = 0.5  # theory: even odds, from which on a row is more probably wrong than right


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


def suspects(fitted: Any, X: Any = None, y: Any = None, n: int | None = None, *, order: str = "probability") -> Any:
    """Rows (of a factorization: entries) whose given label or value is probably wrong, most suspicious first.

    For the rows a `SelfPacedClassifier` or `SelfPacedRegressor` was fitted on, the judgement is that of models that
    had not seen the row; other rows are judged by the fitted model.

    Parameters
    ----------
    fitted : estimator
        A fitted self-paced classifier, regressor or factorization, alone, as the last step of a Pipeline, or inside a
        search.
    X : array-like of shape (n_samples, n_features), optional
        Rows; without them the judgement is that of the training data.
    y : array-like of shape (n_samples,), optional
        Their given labels or values; not for a factorization.
    n : int, optional
        How many rows; all by default.
    order : {"probability", "impact"}, default="probability"
        What comes first: rows that are most probably wrong, or rows whose correction would change a model most: how
        probably they are wrong times their leverage (how far out they are among the rows of `X`, between 0 and 1).

    Returns
    -------
    pandas.DataFrame, or Records where pandas is not installed
        The index is that of `X` where it is a data frame. Columns ``row`` (position in `X`), ``given``, ``expected``,
        ``probability`` of the given label being the clean
        one (regression, factorization: ``residual``), ``weight``, ``noise_probability``, ``label_quality``. The last is
        ``1 - noise_probability`` and follows cleanlab's convention: between 0 and 1, low is suspicious. Entries of a
        matrix have ``row`` and ``column``, by label where it has labels. Where several fits to parts of the rows are
        known (the training rows of a logistic regression in memory, of moderate width), ``stability`` is the share of
        them by which the row is more probably wrong than right: 1 is a suspect whichever rows take part, .5 a matter of
        chance.

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
    if order not in ("probability", "impact"):
        raise ValueError(f"order must be 'probability' or 'impact', got {order!r}")
    judged = judgement_of(fitted, X, y, kinds=("labels", "values", "entries"))
    if order == "probability":
        return _indexed(suspect_table(judged, n), X)
    if X is None or judged.kind == "entries":
        raise ValueError("order='impact' needs the rows X, whose leverage it takes into account")
    impact = judged.wrong * leverage(_numbers(*look_through(fitted, X)))
    ranked = judged.ranking()
    n = None if n is None else integer("n", n, 0, "an integer >= 0 or None")
    ranked = ranked[np.argsort(-impact[ranked], kind="stable")][:n]
    return _indexed(as_table(judged.table(ranked)), X)


def _numbers(model: Any, X: Any) -> Any:
    """Rows as numbers: as they are, as a wrapped Pipeline turns them into numbers, or categories as indicators."""
    if not _is_numeric(X) and isinstance(getattr(model, "estimator_", None), Pipeline):
        X = look_through(model.estimator_, X)[1]
    if not _is_numeric(X) and hasattr(X, "columns"):
        import pandas as pd

        frame = pd.DataFrame({place: np.asarray(X[name]) for place, name in enumerate(X.columns)})
        X = pd.get_dummies(frame, columns=[name for name in frame if frame[name].dtype.kind not in "biuf"])
    if not _is_numeric(X):
        raise ValueError("order='impact' needs rows X of numbers or categories, whose leverage it takes into account")
    return X


def _is_numeric(X: Any) -> bool:
    if hasattr(X, "columns"):
        return all(getattr(kind, "kind", "O") in "biuf" for kind in getattr(X, "dtypes", ["O"]))
    try:
        return hasattr(X, "tocsr") or (np.ndim(X) == 2 and np.asarray(X).dtype.kind in "biuf")
    except ValueError:  # rows of several lengths
        return False


def leverage(X: Any) -> np.ndarray:
    """The leverage of every row: the diagonal of the hat matrix of the columns and of a constant.

    >>> leverage(np.array([[0.0], [1.0], [2.0], [9.0]])).round(2).tolist()
    [0.43, 0.33, 0.27, 0.97]
    """
    table = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    table = np.where(np.isfinite(table), table, np.nan)
    # in a unit in which squares are numbers; powers of two round nothing
    table = np.ldexp(table, -np.frexp(np.fmax.reduce(np.abs(table), axis=0, initial=0.0))[1])
    centred = np.nan_to_num(table - np.nanmean(table, axis=0))
    spread = centred.std(axis=0)
    left, sizes, _ = np.linalg.svd(centred[:, spread > 0] / spread[spread > 0], full_matrices=False)
    left = left[:, sizes > 1e-9 * sizes.max(initial=1e-300)]  # columns that follow from others have no say of their own
    return np.asarray(np.minimum(np.square(left).sum(axis=1) + 1 / len(table), 1.0))


def _indexed(table: Any, X: Any) -> Any:
    """The table with the index of X, where both are data frames and it is about their rows."""
    if hasattr(table, "set_axis") and hasattr(X, "iloc") and hasattr(X, "index") and "column" not in table:
        return table.set_axis(X.index[table["row"].to_numpy()])
    return table


def suspect_table(judged: Judgement, n: int | None = None, only: np.ndarray | None = None) -> Any:
    """The rows of a judgement (of ``only`` some), most suspicious first: the table that `suspects` returns."""
    n = None if n is None else integer("n", n, 0, "an integer >= 0 or None")
    return as_table(judged.table(judged.ranking(n, only)))


def suspected(judged: Judgement, threshold: float = SUSPECT) -> np.ndarray:
    """Which rows are suspects: more probably wrong than right and, of labels, another one is expected.

    The report shows these rows, the command line writes them, ``selfpaced review`` asks about them: there is no other
    idea of a suspect.
    """
    opinion: Any = judged.opinion
    wrong = np.asarray(judged.wrong >= threshold)
    if judged.kind == "labels":
        rows = np.flatnonzero(wrong)
        opinion, asked = (opinion.some(rows), slice(None)) if isinstance(opinion, Labels) else (opinion, rows)
        wrong[rows] = opinion.given[asked] != opinion.expected[asked]
    return wrong


def label_issues(fitted: Any, X: Any, y: Any, threshold: float | None = None, *, precision: float = 0.5) -> Any:
    """The judgement of every row in row order, with cleanlab's column names.

    ``CleanLearning(model).fit(X, y, label_issues=label_issues(fitted, X, y))`` then trains without them.

    Parameters
    ----------
    fitted, X, y
        See `suspects`.
    threshold : float, optional
        Rows whose probability of being wrong is above it are issues. By default `precision` decides about labels, and
        0.5 is the threshold of values.
    precision : float, default=0.5
        The most suspicious labels are issues: as many as find most of the wrong ones for what is flagged (the largest
        expected F1), but no more than keep the expected share of wrong ones among them at this or above. More flags
        fewer labels that are right.

    Returns
    -------
    pandas.DataFrame, or Records where pandas is not installed
        ``is_label_issue``, ``label_quality``, ``given_label``, ``predicted_label``, and ``stability`` as in `suspects`.
    """
    number("precision", precision, math.ulp(0), 1, "in (0, 1]")
    cut = 0.5 if threshold is None else number("threshold", threshold, 0, 1, "None or in [0, 1]")
    judged = judgement_of(fitted, X, y)
    opinion, by_precision = judged.opinion, threshold is None and judged.kind == "labels"
    columns = {
        "is_label_issue": most_suspicious(judged.wrong, precision) if by_precision else judged.wrong > cut,
        "label_quality": 1.0 - judged.wrong,
        "given_label": opinion.given,
        "predicted_label": opinion.expected,
    }
    if judged.stability is not None:
        columns["stability"] = judged.stability
    return as_table(columns)


def most_suspicious(wrong: Any, precision: float) -> np.ndarray:
    """The rows to flag: of the most suspicious, so many that the expected F1 is largest, at this precision or above.

    Without the F1, rows that are surely wrong would lend their precision to as many that are surely right.

    >>> most_suspicious(np.array([0.1, 0.9, 0.4, 0.5]), 0.5).tolist()
    [False, True, True, True]
    >>> most_suspicious(np.array([0.1, 1.0, 1.0, 0.1]), 0.5).tolist()
    [False, True, True, False]
    """
    order = np.argsort(-wrong, kind="stable")
    found, flagged = np.cumsum(wrong[order]), np.arange(1, len(order) + 1)
    # Equal rows are flagged together or not at all; 1e-12 forgives the rounding of the sum.
    last = np.r_[wrong[order][1:] != wrong[order][:-1], True]
    allowed = last & (found >= (precision - 1e-12) * flagged)
    score = np.where(allowed, 2 * found / (flagged + found[-1:]), 0.0)
    issues = np.zeros(len(order), dtype=bool)
    if score.max(initial=0.0) > 0:
        issues[order[: int(np.argmax(score)) + 1]] = True
    return issues


def as_table(columns: dict[str, np.ndarray]) -> Any:
    if find_spec("pandas") is None:
        return Records(columns)
    import pandas as pd

    return pd.DataFrame(columns)


def judgement_of(fitted: Any, X: Any, y: Any, kinds: tuple[str, ...] = ("labels", "values")) -> Judgement:
    """What a fitted estimator, or the one inside it that judges rows, says; of its training rows if X is None."""
    model, rows = look_through(fitted, X)
    if not isinstance(model, Judging):
        raise TypeError(
            "fitted must be a fitted self-paced classifier or regressor of this library (or a Pipeline or search that "
            f"ends in one), got {type(model).__name__}; {_advice(model)}"
        )
    if X is None:
        check_is_fitted(model, "judgement_")
    judgement = model.judgement_ if X is None else model.judge(rows, y)
    if judgement.kind not in kinds:
        raise TypeError(
            f"fitted must judge labels or values, got {type(model).__name__}, which judges {judgement.kind}: see its "
            "outliers_, or model.judge(X)"
        )
    return judgement


def _advice(model: Any) -> str:
    """What to do with a model that does not judge rows itself."""
    if isinstance(model, TransformedTargetRegressor):
        inner = type(getattr(model, "regressor_", model.regressor)).__name__
        return (
            f"its regressor, {inner}, sees another target: ask it, by suspects(model.regressor_, X, "
            "model.transformer_.transform(y.reshape(-1, 1)).ravel())"
        )
    wrapper = "SelfPacedRegressor" if is_regressor(model) else "SelfPacedClassifier"
    return f"wrap it: {wrapper}({type(model).__name__}())"


def look_through(fitted: Any, X: Any = None) -> tuple[Any, Any]:
    """The estimator inside searches and Pipelines, and X (unless None) as that estimator sees it."""
    while True:
        if isinstance(fitted, Pipeline):
            X = X if X is None or len(fitted.steps) == 1 else fitted[:-1].transform(X)
            fitted = fitted.steps[-1][1]
        elif isinstance(fitted, JudgedByAnother):
            check_is_fitted(fitted, "judge_")
            fitted = fitted.judge_
        elif hasattr(fitted, "best_estimator_"):  # any search, of scikit-learn or of others
            fitted = fitted.best_estimator_
        else:
            return fitted, X
