"""From typed columns to features with names, as a scikit-learn Pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .encoders import CategoryCodes, CategoryFlags, Dates, Number
from .schema import TypedColumns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableFeatures", "preprocessor"]

LARGE = 10_000_000  # cost: cells above which features are kept in single precision
MOST_CODES = 250  # of a categorical for trees, numerical safety: scikit-learn's boosting takes at most 255


class TableFeatures(TransformerMixin, BaseEstimator):
    """Features of typed columns in one matrix, filled column by column: no second copy of a large table.

    For linear models numbers are imputed by their median, with a feature that says so, and standardised; categories
    become a feature each, rare ones together; dates become days and points on the circles of year, week and day.
    Trees take numbers as they are, gaps included, and categories as numbers.

    Parameters
    ----------
    kind : {"linear", "tree"}
        What kind of model follows.
    max_categories : int, default=30
        Features a categorical becomes at most for a linear model; the rarest share one.
    dtype : {"auto", "float32", "float64"}
        Of the features; ``"auto"`` takes single precision above ten million cells.

    Attributes
    ----------
    encoders_ : tuple
        What was learnt about each column.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20.0, 40.0, None], "city": pd.Categorical(["Rome", "Oslo", "Rome"])})
    >>> TableFeatures().fit_transform(frame).columns.tolist()
    ['age', 'age is missing', 'city=Oslo', 'city=Rome']
    """

    def __init__(self, kind: str = "linear", max_categories: int = 30, dtype: str = "auto") -> None:
        self.kind = kind
        self.max_categories = max_categories
        self.dtype = dtype

    def fit(self, X: pd.DataFrame, y: Any = None) -> TableFeatures:  # noqa: ARG002
        """Learn medians, spreads and categories.

        Parameters
        ----------
        X : pandas.DataFrame
            As :class:`TypedColumns` gives it.
        y : ignored

        Returns
        -------
        self
        """
        if self.kind not in ("linear", "tree"):
            raise ValueError(f"kind must be 'linear' or 'tree', got {self.kind!r}")
        if self.max_categories < 2:
            raise ValueError(f"max_categories must be at least 2, got {self.max_categories!r}")
        self.encoders_ = tuple(self._learn(str(name), X[name]) for name in X.columns)
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        large = len(X) * len(self.get_feature_names_out()) >= LARGE
        self.dtype_ = ("float32" if large else "float64") if self.dtype == "auto" else str(np.dtype(self.dtype))
        return self

    def _learn(self, name: str, column: pd.Series) -> Any:
        linear = self.kind == "linear"
        if column.dtype.kind == "M":
            return Dates.learn(name, column, scaled=linear)
        if column.dtype.name == "category":
            if linear:
                return CategoryFlags.learn(name, column, self.max_categories)
            return CategoryCodes.learn(name, column, MOST_CODES)
        return Number.learn(name, column.to_numpy(), scaled=linear)

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """The features of these rows.

        Parameters
        ----------
        X : pandas.DataFrame
            As :class:`TypedColumns` gives it.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        check_is_fitted(self, "encoders_")
        names = self.get_feature_names_out()
        out = np.empty((len(X), len(names)), dtype=self.dtype_)
        start = 0
        for encoder in self.encoders_:
            column, end = X[encoder.name], start + len(encoder.names)
            encoder.fill(out[:, start:end], column.to_numpy() if isinstance(encoder, Number) else column)
            start = end
        return pd.DataFrame(out, columns=names, index=X.index, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:  # noqa: ARG002
        """``age``, ``age is missing``, ``city=Rome``, ``seen days`` and so on."""
        check_is_fitted(self, "encoders_")
        return np.array([name for encoder in self.encoders_ for name in encoder.names], dtype=object)


def preprocessor(
    kind: str = "linear",
    *,
    categorical: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_categories: int = 30,
) -> Pipeline:
    """A Pipeline from a raw table to features a model of this kind can use.

    Parameters
    ----------
    kind : {"linear", "tree"}
        What kind of model follows.
    categorical, exclude : sequence of str
        See :class:`TypedColumns`.
    max_categories : int, default=30
        See :class:`TableFeatures`.

    Returns
    -------
    Pipeline
        With the steps ``types`` and ``features``; gives pandas frames.
    """
    if kind not in ("linear", "tree"):
        raise ValueError(f"kind must be 'linear' or 'tree', got {kind!r}")
    typed = TypedColumns(categorical=tuple(categorical), exclude=tuple(exclude))
    features = TableFeatures(kind, max_categories=max_categories)
    return Pipeline([("types", typed), ("features", features)]).set_output(transform="pandas")
