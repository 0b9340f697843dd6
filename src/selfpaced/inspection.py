"""Which rows are wrong: a ranked table of suspects for every self-paced classifier and regressor."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .assessment import LEVELS, SUSPECT, Assessment, AssessmentMixin, DelegatedAssessment
from .distributed import on_dask
from .parameters import check_integer, check_number

__all__ = [
    "SUSPECT",
    "as_table",
    "assessment_of",
    "held_out_accuracy",
    "issue_table",
    "label_issues",
    "look_through",
    "suspects",
]


def suspects(
    fitted: Any,
    X: Any = None,
    y: Any = None,
    n: int | None = None,
    *,
    order: str = "probability",
    all_rows: bool = False,
) -> Any:
    """Return the rows (of a factorization: entries) to check, most suspicious first.

    There are two levels. A "likely error" is a claim: the given label or value is more probably wrong than right. Rows
    "worth a look" are no claim: they are the ones to check first if any labels or values are wrong.

    Rows that a `SelfPacedClassifier` or `SelfPacedRegressor` was fitted on are assessed by models that had not seen the
    row; other rows are assessed by the fitted model.

    Parameters
    ----------
    fitted : estimator
        A fitted self-paced classifier, regressor or factorization, alone, as the last step of a Pipeline, or inside a
        search.
    X : array-like of shape (n_samples, n_features), Dask array or data frame, or DaskTable, optional
        Rows; without them the assessment is that of the training data. A table holds `y`.
    y : array-like of shape (n_samples,), optional
        Their given labels or values; not for a factorization.
    n : int, optional
        Number of rows at most; by default all rows of both levels. Must be None for Dask collections.
    order : {"probability", "impact"}, default="probability"
        What comes first within a level: rows that are most probably wrong, or rows whose correction would change a
        model most: their probability of being wrong times their leverage (how far out they are among the rows of `X`,
        between 0 and 1).
    all_rows : bool, default=False
        Return the ranking of all rows instead of the two levels.

    Returns
    -------
    pandas.DataFrame
        The index is that of `X` if it is a data frame. Dask collections give a Dask DataFrame in the order of the rows.
        The columns are

        - ``row``: position in `X`; entries of a matrix have ``row`` and ``column``, by label if it has labels;
        - ``level``: "likely error", "worth a look" or, with ``all_rows``, empty;
        - ``given``, ``expected``: the given label or value, and what the model expects;
        - ``residual``: given less expected value (not for labels);
        - ``weight``: weight of the row in the fit;
        - ``noise_probability``: probability that the given label or value is wrong;
        - ``probability_if_noisy``: the same if any labels are wrong (labels only). Its mean over the rows worth a look
          is the expected share of wrong labels among them in that case;
        - ``label_quality``: ``1 - noise_probability``, as in cleanlab;
        - ``stability``: share of the fits to parts of the rows by which the row is a likely error, if there are such
          fits. A row with 1 stays suspect under a different split, a row with .5 depends on it.

    See Also
    --------
    label_issues : the same assessment in the form that cleanlab takes.

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced import SelfPacedLogisticRegression, suspects
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> worst = int(np.argmax(X[:, 0]))
    >>> y[worst] = "no"
    >>> table = suspects(SelfPacedLogisticRegression().fit(X, y), X, y)
    >>> bool(table["row"][0] == worst), str(table["given"][0]), str(table["expected"][0]), str(table["level"][0])
    (True, 'no', 'yes', 'likely error')
    """
    if order not in ("probability", "impact"):
        raise ValueError(f"order must be 'probability' or 'impact', got {order!r}")
    if on_dask(X):
        from .distributed import suspect_frame
        from .distributed.dask_results import collection_frame

        if n is not None or order == "impact":
            raise ValueError(
                f"n must be None and order 'probability' for Dask collections, got {n!r} and {order!r}: the table that "
                "is returned can be sorted and cut, for example with nlargest"
            )
        return collection_frame(_assessing(fitted), X, y, partial(suspect_frame, all_rows=all_rows))
    assessed = assessment_of(fitted, X, y, kinds=("labels", "values", "entries"))
    if order == "probability":
        return _indexed(suspect_table(assessed, n, all_rows=all_rows), X)
    if X is None or assessed.kind == "entries":
        raise ValueError("order='impact' needs the rows X, whose leverage it takes into account")
    n = None if n is None else check_integer("n", n, 0, "an integer >= 0 or None")
    impact, levels = assessed.wrong * leverage(_numbers(*look_through(fitted, X))), assessed.levels()
    ranked = assessed.ranking(only=None if all_rows else levels > 0)
    place = np.zeros_like(levels) if all_rows else levels
    ranked = ranked[np.lexsort((-impact[ranked], -place[ranked]))]
    return _indexed(as_table(assessed.table(ranked[:n], levels)), X)


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
    if hasattr(X, "iloc") and hasattr(X, "index") and "column" not in table:
        return table.set_axis(X.index[table["row"].to_numpy()])
    return table


def suspect_table(
    assessed: Assessment, n: int | None = None, threshold: float = SUSPECT, all_rows: bool = False
) -> Any:
    """The rows of both levels, likely errors first, or all rows: the table that `suspects` returns."""
    n = None if n is None else check_integer("n", n, 0, "an integer >= 0 or None")
    levels = assessed.levels(threshold)
    ranked = assessed.ranking(only=None if all_rows else levels > 0)
    if not all_rows:
        ranked = ranked[np.argsort(-levels[ranked], kind="stable")]
    return as_table(assessed.table(ranked[:n], levels))


def label_issues(fitted: Any, X: Any, y: Any, threshold: float = SUSPECT) -> Any:
    """Return the assessment of every row in row order, with cleanlab's column names.

    ``CleanLearning(model).fit(X, y, label_issues=label_issues(fitted, X, y))`` then trains without the likely errors.

    Parameters
    ----------
    fitted, X, y
        See `suspects`.
    threshold : float, default=0.5
        Rows whose probability of being wrong is above it are likely errors.

    Returns
    -------
    pandas.DataFrame
        ``is_label_issue`` (true for likely errors), ``label_quality``, ``given_label``, ``predicted_label``, and
        ``level`` and ``stability`` as in `suspects`. The index is that of `X` if it is a data frame.
    """
    threshold = check_number("threshold", threshold, 0, 1, "in [0, 1]")
    if on_dask(X):
        from .distributed.dask_results import collection_frame

        return collection_frame(_assessing(fitted), X, y, partial(issue_table, threshold=threshold))
    table = issue_table(assessment_of(fitted, X, y), threshold)
    return table.set_axis(X.index) if hasattr(X, "iloc") else table


def issue_table(assessed: Assessment, threshold: float = SUSPECT) -> Any:
    """Every row with cleanlab's column names."""
    levels, diagnosis = assessed.levels(threshold), assessed.diagnosis
    columns = {
        "is_label_issue": levels == 2,
        "label_quality": 1.0 - assessed.wrong,
        "given_label": diagnosis.given,
        "predicted_label": diagnosis.expected,
        "level": LEVELS[levels],
    }
    if assessed.stability is not None:
        columns["stability"] = assessed.stability
    return as_table(columns)


def _assessing(fitted: Any) -> Any:
    """The estimator itself, for rows that must not be brought into memory."""
    if not isinstance(fitted, AssessmentMixin) and not hasattr(fitted, "assessments"):
        raise TypeError(
            "fitted must be a fitted linear estimator or a cross-fit wrapper of this library for Dask collections, got "
            f"{type(fitted).__name__}: transform X by Dask first, and pass the last step alone"
        )
    check_is_fitted(fitted, "termination_")
    return fitted


def as_table(columns: dict[str, np.ndarray]) -> Any:
    """Columns as a data frame."""
    import pandas as pd  # takes a second: imported when a table is asked for

    return pd.DataFrame(columns)


def assessment_of(fitted: Any, X: Any, y: Any, kinds: tuple[str, ...] = ("labels", "values")) -> Assessment:
    """Return the assessment by a fitted estimator, or by the one inside it; of its training rows if X is None."""
    model, rows = look_through(fitted, X)
    if not isinstance(model, AssessmentMixin):
        raise TypeError(
            "fitted must be a fitted self-paced classifier or regressor of this library (or a Pipeline or search that "
            f"ends in one), got {type(model).__name__}; {_advice(model)}"
        )
    if X is None:
        check_is_fitted(model, "assessment_")
    assessment = model.assessment_ if X is None else model.assess(rows, y)
    if assessment.kind not in kinds:
        raise TypeError(
            f"fitted must assess labels or values, got {type(model).__name__}, which assesses "
            f"{assessment.kind}: see its outliers_, or model.assess(X)"
        )
    return assessment


def _advice(model: Any) -> str:
    """Return what to do with a model that does not assess rows itself."""
    if isinstance(model, TransformedTargetRegressor):
        inner = type(getattr(model, "regressor_", model.regressor)).__name__
        return (
            f"its regressor, {inner}, is fitted to a transformed target: call suspects(model.regressor_, X, "
            "model.transformer_.transform(y.reshape(-1, 1)).ravel())"
        )
    if not hasattr(model, "__sklearn_tags__"):
        return "an audit has its own suspects()" if hasattr(model, "suspects") else "fit one first"
    wrapper = "SelfPacedRegressor" if is_regressor(model) else "SelfPacedClassifier"
    return f"wrap it: {wrapper}({type(model).__name__}())"


def look_through(fitted: Any, X: Any = None) -> tuple[Any, Any]:
    """The estimator inside searches and Pipelines, and X (unless None) as that estimator sees it."""
    while True:
        if isinstance(fitted, Pipeline):
            X = X if X is None or len(fitted.steps) == 1 else fitted[:-1].transform(X)
            fitted = fitted.steps[-1][1]
        elif isinstance(fitted, DelegatedAssessment):
            check_is_fitted(fitted, "detector_")
            fitted = fitted.detector_
        elif hasattr(fitted, "best_estimator_"):  # any search, of scikit-learn or of others
            fitted = fitted.best_estimator_
        else:
            return fitted, X


def held_out_accuracy(model: Any) -> dict[str, float | None]:
    """Share of held-out rows whose given label is predicted, of the plain and of the fitted model; None if unknown."""
    plain = next((one.accuracy for one in model.path_ if np.isinf(one.lam)), np.nan)
    chosen = next((one.accuracy for one in model.path_ if one.chosen), np.nan)
    assessed = model.assessment_
    if assessed.kind == "labels" and assessed.held_out:
        chosen = float(np.mean(assessed.diagnosis.expected == assessed.diagnosis.given))
    return {name: float(v) if np.isfinite(v) else None for name, v in (("plain", plain), ("chosen", chosen))}
