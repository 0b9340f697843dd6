"""Which rows are wrong: a ranked table of suspects for every self-paced classifier and regressor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .assessment import LEVELS, SUSPECT, Assessment, AssessmentMixin, DelegatedAssessment
from .distributed.table import on_dask
from .formatting import number, percent, plural, rate_in_words
from .parameters import check_most, check_number


def suspects(
    fitted: Any,
    X: Any = None,
    y: Any = None,
    n: int | None = None,
    *,
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
    if on_dask(X):
        from .distributed.dask_results import collection_frame
        from .distributed.scratch import suspect_frame

        if n is not None:
            raise ValueError(
                f"n must be None for Dask collections, got {n!r}: the table that is returned can be sorted and cut, "
                "for example with nlargest"
            )
        return collection_frame(_assessing(fitted), X, y, partial(suspect_frame, all_rows=all_rows))
    assessed = assessment_of(fitted, X, y, kinds=("labels", "values", "entries"))
    return _indexed(suspect_table(assessed, n, all_rows=all_rows), X)


def _indexed(table: Any, X: Any) -> Any:
    """The table with the index of X, where both are data frames and it is about their rows."""
    if hasattr(X, "iloc") and hasattr(X, "index") and "column" not in table:
        return table.set_axis(X.index[table["row"].to_numpy()])
    return table


def suspect_table(
    assessed: Assessment, n: int | None = None, threshold: float = SUSPECT, all_rows: bool = False
) -> Any:
    """The rows of both levels, likely errors first, or all rows: the table that `suspects` returns."""
    levels = assessed.levels(threshold)
    ranked = assessed.ranking(only=None if all_rows else levels > 0)
    if not all_rows:
        ranked = ranked[np.argsort(-levels[ranked], kind="stable")]
    return as_table(assessed.table(ranked[: check_most(n)], levels))


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
            f"fitted must assess {', '.join(kinds[:-1])} or {kinds[-1]}, got {type(model).__name__}, which assesses "
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


# --------------------------------------------------------------------------------------------- the whole fit


@dataclass(frozen=True)
class Findings:
    """What a fitted classifier or regressor found in its rows, as figures and as sentences.

    The terminal and the page print the sentences, and ``metrics.json`` holds the fields.

    Attributes
    ----------
    rows_fitted : int
        Rows with a label or value.
    likely_errors, worth_a_look : int
        Lengths of the two lists.
    expected_precision : dict
        Expected share of errors among the ``likely_errors``, and among the rows ``worth_a_look_if_any`` labels are
        wrong; NaN if unknown.
    noise_rate, noise_rate_interval, noise_rate_if_any : float, pair of floats, float or None
        Estimates of the model.
    held_out_accuracy : dict or None
        Accuracy of the ``plain`` and of the ``chosen`` model on the given labels; None for values.
    typical_error : float or None
        Median distance of the given from the expected values, in the unit of the target; None for labels.
    misfit : float or None
        Share of the values that the model does not explain; these are not called errors.
    termination : str
        How the fit ended.
    """

    rows_fitted: int
    likely_errors: int
    worth_a_look: int
    expected_precision: dict[str, float]
    noise_rate: float
    noise_rate_interval: tuple[float, float]
    noise_rate_if_any: float | None
    held_out_accuracy: dict[str, float | None] | None
    typical_error: float | None
    misfit: float | None
    termination: str

    @classmethod
    def of(
        cls,
        model: Any,
        listed: Mapping[str, Any] | tuple[int, int],
        rows: int | None = None,
        in_unit: Callable[[np.ndarray], np.ndarray] = np.asarray,
    ) -> Findings:
        """Return what is known of a model and the rows that it lists.

        Parameters
        ----------
        model : estimator
            A self-paced classifier or regressor of this library.
        listed : table, or pair of int
            The listed rows as `suspects` gives them (without ``level``, all are likely errors), or the lengths of both
            lists.
        rows : int, optional
            Rows that were fitted, if not all of them are assessed.
        in_unit : callable
            Turns values on the scale of the model into the unit of the target.
        """
        likely, look, right, if_any = (*listed, np.nan, np.nan) if isinstance(listed, tuple) else _counted(listed)
        assessed, diagnosis = model.assessment_, model.assessment_.diagnosis
        labels = assessed.kind == "labels"
        error = None if labels else np.median(np.abs(in_unit(diagnosis.given) - in_unit(diagnosis.expected)))
        return cls(
            rows_fitted=len(assessed.wrong) if rows is None else rows,
            likely_errors=likely,
            worth_a_look=look,
            expected_precision={"likely_errors": right, "worth_a_look_if_any": if_any},
            noise_rate=float(model.noise_rate_),
            noise_rate_interval=model.noise_rate_interval_,
            noise_rate_if_any=getattr(model, "noise_rate_if_any_", None),
            held_out_accuracy=held_out_accuracy(model) if labels else None,
            typical_error=None if error is None else float(error),
            misfit=None if labels or not diagnosis.misfit_words else float(diagnosis.misfit),
            termination=str(model.termination_),
        )

    @property
    def noun(self) -> str:
        """What is assessed: labels or values."""
        return "value" if self.held_out_accuracy is None else "label"

    def lists(self) -> str:
        """Return how long the two lists are, and how far they are proven."""
        right, if_any = self.expected_precision.values()
        return lists_in_words(
            self.likely_errors, self.worth_a_look, self.rows_fitted, right, if_any, given=f"{self.noun}s"
        )

    def rate(self) -> str:
        """Return the estimated share of errors, and the share of values that the model does not explain."""
        rate = rate_in_words(self.noise_rate, self.noise_rate_interval, found=self.likely_errors > 0)
        text = f"Wrong {self.noun}s: {rate}."
        if self.misfit is not None:
            text += f" The model does not explain {percent(self.misfit)} of the values; these are not called errors."
        return text

    def accuracy(self) -> str:
        """Return the held-out accuracy of the fitted and of the plain model, or the typical error of the values.

        The models were compared by likelihood, not by accuracy, and the sentence says so if the two disagree.
        """
        if self.typical_error is not None:
            return f"Half of the rows are within {number(self.typical_error)} of their expected value."
        plain, chosen = (self.held_out_accuracy or {}).values()
        if chosen is None:
            return ""
        text = f"Held-out accuracy on the given labels: {percent(chosen, 1)}"
        if plain is None or percent(plain, 1) == percent(chosen, 1):
            return f"{text}."
        better = "" if chosen >= plain else "; models are compared by likelihood, not by accuracy"
        return f"{text} (plain model: {percent(plain, 1)}{better})."


CERTAIN = 0.999  # display: no row is certainly wrong


def lists_in_words(
    likely: int, look: int, n: int, right: float, if_any: float, *, row: str = "row", given: str = "labels"
) -> str:
    """Return how long the two lists of n rows are, and how far they are proven; NaN is an unknown share of errors.

    >>> lists_in_words(2, 1, 5000, 0.9, np.nan)
    '2 likely errors (about 90 % of them are wrong) and 1 row worth a look among 5,000 rows.'
    >>> lists_in_words(0, 0, 50, np.nan, np.nan, row="entry")
    'No likely errors among 50 entries: no entry is more probably wrong than right.'
    """
    rows = plural(look, row) if look else f"no {plural(0, row).partition(' ')[2]}"
    rows += " worth a look"
    if not np.isnan(if_any):
        rows += f" (if any {given} are wrong, about {percent(min(if_any, CERTAIN))} of these)"
    if likely:
        known = "" if np.isnan(right) else f" (about {percent(min(right, CERTAIN))} of them are wrong)"
        return f"{plural(likely, 'likely error')}{known} and {rows} among {plural(n, row)}."
    found = f"No likely errors among {plural(n, row)}: no {row} is more probably wrong than right."
    return f"{found} There {'is' if look == 1 else 'are'} {rows}." if look else found


def _counted(listed: Mapping[str, Any]) -> tuple[int, int, float, float]:
    """Return the lengths of both lists and their expected precisions."""
    total = len(next((listed[name] for name in listed), ()))
    level = np.asarray(listed["level"], dtype=object) if "level" in listed else np.full(total, LEVELS[2], dtype=object)

    def mean(name: str, rows: np.ndarray) -> float:
        return float(np.asarray(listed[name], dtype=float)[rows].mean()) if name in listed and rows.any() else np.nan

    likely, look = level == LEVELS[2], level == LEVELS[1]
    precision = mean("noise_probability", likely), mean("probability_if_noisy", look)
    return int(likely.sum()), int(look.sum()), *precision


def held_out_accuracy(model: Any) -> dict[str, float | None]:
    """Share of held-out rows whose given label is predicted, of the plain and of the fitted model; None if unknown."""
    plain = next((one.accuracy for one in model.path_ if np.isinf(one.lam)), np.nan)
    chosen = next((one.accuracy for one in model.path_ if one.chosen), np.nan)
    assessed = model.assessment_
    if assessed.kind == "labels" and assessed.held_out:
        chosen = float(np.mean(assessed.diagnosis.expected == assessed.diagnosis.given))
    return {name: float(v) if np.isfinite(v) else None for name, v in (("plain", plain), ("chosen", chosen))}
