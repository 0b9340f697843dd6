"""From typed columns to features with names, as a scikit-learn Pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from .schema import TypedColumns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DateParts", "category_name", "preprocessor"]

_CYCLES = {"month": 12.0, "weekday": 7.0, "hour": 24.0}


class DateParts(TransformerMixin, BaseEstimator):
    """Dates as numbers: days since the first one, and where in the year, the week and the day they fall.

    Parameters
    ----------
    cyclic : bool, default=True
        Month, weekday and hour as points on a circle (sine and cosine), so that December is next to January;
        False gives the plain numbers, which trees prefer.

    Attributes
    ----------
    first_ : ndarray of datetime64
        The first date of each column.
    hours_ : ndarray of bool
        Which columns have a time of day.

    Examples
    --------
    >>> import pandas as pd
    >>> days = pd.DataFrame({"seen": pd.to_datetime(["2020-01-01", "2020-01-31"])})
    >>> DateParts(cyclic=False).fit_transform(days).tolist()
    [[0.0, 1.0, 2.0], [30.0, 1.0, 4.0]]
    """

    def __init__(self, cyclic: bool = True) -> None:
        self.cyclic = cyclic

    def fit(self, X: pd.DataFrame, y: Any = None) -> DateParts:  # noqa: ARG002
        """Remember the first date and whether there are times of day.

        Parameters
        ----------
        X : pandas.DataFrame of datetime64
        y : ignored

        Returns
        -------
        self
        """
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        self.first_ = np.array([X[name].min().to_datetime64() for name in X], dtype="datetime64[s]")
        self.hours_ = np.array([bool(X[name].dt.hour.gt(0).any()) for name in X])
        return self

    def _parts(self, hours: bool) -> list[str]:
        cycles = [name for name in _CYCLES if name != "hour" or hours]
        if not self.cyclic:
            return ["days", *cycles]
        return ["days", *(f"{name} {wave}" for name in cycles for wave in ("sin", "cos"))]

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """Dates to numbers; a missing date is NaN in all of them.

        Parameters
        ----------
        X : pandas.DataFrame of datetime64

        Returns
        -------
        ndarray of shape (n_samples, n_parts)
        """
        check_is_fitted(self, "first_")
        parts: list[np.ndarray] = []
        for name, first, hours in zip(self.feature_names_in_, self.first_, self.hours_, strict=True):
            dates = X[name]
            parts.append((dates - first).dt.total_seconds().to_numpy(dtype=float) / 86400.0)
            values = {"month": dates.dt.month, "weekday": dates.dt.day_of_week, "hour": dates.dt.hour}
            for cycle, period in _CYCLES.items():
                if cycle == "hour" and not hours:
                    continue
                value = values[cycle].to_numpy(dtype=float, na_value=np.nan)
                angle = 2.0 * np.pi * value / period
                parts.extend([np.sin(angle), np.cos(angle)] if self.cyclic else [value])
        return np.stack(parts, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:  # noqa: ARG002
        """``"<column> days"``, ``"<column> month sin"`` and so on."""
        check_is_fitted(self, "first_")
        names = [
            f"{column} {part}"
            for column, hours in zip(self.feature_names_in_, self.hours_, strict=True)
            for part in self._parts(bool(hours))
        ]
        return np.array(names, dtype=object)


def category_name(column: Any, category: Any) -> str:
    """``city=Rome``: the name of the feature that says that a column has a category.

    >>> category_name("city", "infrequent_sklearn")
    'city=(rare)'
    """
    return f"{column}={'(rare)' if category == 'infrequent_sklearn' else category}"


def preprocessor(
    kind: str = "linear",
    *,
    categorical: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_categories: int = 30,
) -> Pipeline:
    """A Pipeline from a raw table to features a model of this kind can use.

    For linear models numbers are imputed by their median, with a column that says so, and standardised; categories
    become one column each, rare ones together; dates become days and points on the circles of year, week and day.
    Trees take numbers as they are, gaps included, and categories as numbers.

    Parameters
    ----------
    kind : {"linear", "tree"}
        What kind of model follows.
    categorical, exclude : sequence of str
        See :class:`TypedColumns`.
    max_categories : int, default=30
        Columns a categorical becomes at most; the rarest share one.

    Returns
    -------
    Pipeline
        With the steps ``types`` and ``features``; gives pandas frames.
    """
    if kind not in ("linear", "tree"):
        raise ValueError(f"kind must be 'linear' or 'tree', got {kind!r}")
    scale = [("impute", SimpleImputer(strategy="median", add_indicator=True)), ("scale", StandardScaler())]
    if kind == "linear":
        numbers: Any = Pipeline(scale)
        dates: Any = Pipeline([("parts", DateParts()), *scale])
        categories: Any = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=max_categories,
            sparse_output=False,
            feature_name_combiner=category_name,
        )
    else:
        numbers, dates = "passthrough", DateParts(cyclic=False)
        # Trees take an unknown category for a missing one.
        categories = OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, max_categories=250, encoded_missing_value=-1
        )
    features = ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include="number")),
            ("dates", dates, make_column_selector(dtype_include="datetime")),
            ("categories", categories, make_column_selector(dtype_include="category")),
        ],
        verbose_feature_names_out=False,
    )
    typed = TypedColumns(categorical=tuple(categorical), exclude=tuple(exclude))
    return Pipeline([("types", typed), ("features", features)]).set_output(transform="pandas")
