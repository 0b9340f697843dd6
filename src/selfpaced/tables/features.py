"""From typed columns to features with names, as a scikit-learn Pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .encoders import Encoder, encode_category, encode_date, encode_numbers
from .schema import TypedColumns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableFeatures", "preprocessor"]

LARGE = 10_000_000  # cost: cells above which features are kept in single precision
BLOCK = 1 << 20  # cost: cells that are encoded at a time, 8 MB


class TableFeatures(TransformerMixin, BaseEstimator):
    """Features of typed columns in one matrix, filled block by block: no second copy of a large table.

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
    encoders_ : tuple of Encoder
        What was learnt about the columns.

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
        if not len(X):
            raise ValueError("X must have rows, got none")
        with config_context(transform_output="default"):  # of the transformers inside, whatever is asked of this one
            self.encoders_ = tuple(self._learn(X))
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        # Features stand in the order of the columns they come from, whichever block made them.
        position = {str(name): place for place, name in enumerate(X.columns)}
        sources = [position[source] for encoder in self.encoders_ for source in encoder.sources]
        self.order_ = np.argsort(sources, kind="stable")
        large = len(X) * len(sources) >= LARGE
        self.dtype_ = ("float32" if large else "float64") if self.dtype == "auto" else str(np.dtype(self.dtype))
        return self

    def _learn(self, X: pd.DataFrame) -> Iterator[Encoder]:
        linear, numbers = self.kind == "linear", []
        for name in X.columns:
            if X[name].dtype.kind == "M":
                yield encode_date(X[[name]], linear)
            elif X[name].dtype.name == "category":
                yield encode_category(X[[name]], linear, self.max_categories)
            else:
                numbers.append(name)
        for block in _slices(len(numbers), BLOCK // len(X)):
            yield encode_numbers(X[numbers[block]], linear)

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
        # No ColumnTransformer: it keeps the features of all columns, and then a copy of them side by side.
        out = np.empty((len(X), len(self.order_)), dtype=self.dtype_)
        ends = np.cumsum([0, *(len(encoder.names) for encoder in self.encoders_)])
        order = np.argsort(self.order_)
        places = [_as_slice(order[begin:end]) for begin, end in pairwise(ends)]
        sources = [X[list(encoder.columns)] for encoder in self.encoders_]
        with config_context(transform_output="default"):
            for rows in _slices(len(X), BLOCK // max(out.shape[1], 1)):  # all columns of some rows: these stay in cache
                for encoder, source, place in zip(self.encoders_, sources, places, strict=True):
                    out[rows, place] = encoder.features(source.iloc[rows])
        return pd.DataFrame(out, columns=self.get_feature_names_out(), index=X.index, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """``age``, ``age is missing``, ``city=Rome``, ``seen days`` and so on."""
        check_is_fitted(self, "encoders_")
        names = [name for encoder in self.encoders_ for name in encoder.names]
        return np.array(names, dtype=object)[self.order_]


def _as_slice(places: NDArray[np.intp]) -> Any:
    """Neighbours as a slice, which is quicker to write to."""
    together = places.size > 0 and bool(np.all(np.diff(places) == 1))
    return slice(int(places[0]), int(places[-1]) + 1) if together else places


def _slices(count: int, step: int) -> Iterator[slice]:
    step = max(step, 1)
    return (slice(start, start + step) for start in range(0, count, step))


def preprocessor(
    kind: str = "linear",
    *,
    categorical: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_categories: int = 30,
    decimal: str = "",
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
    decimal : {"", ".", ","}
        See :class:`TypedColumns`.

    Returns
    -------
    Pipeline
        With the steps ``types`` and ``features``; gives pandas frames.
    """
    if not isinstance(kind, str) or kind not in ("linear", "tree"):
        got = repr(kind) if isinstance(kind, str) else f"{type(kind).__name__}: preprocessor().fit(table) takes tables"
        raise ValueError(f"kind must be 'linear' or 'tree', got {got}")
    typed = TypedColumns(categorical=tuple(categorical), exclude=tuple(exclude), decimal=decimal)
    features = TableFeatures(kind, max_categories=max_categories)
    return Pipeline([("types", typed), ("features", features)]).set_output(transform="pandas")
