"""How columns become features: scikit-learn's transformers, and dates, for which it has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, RobustScaler, StandardScaler

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DateParts", "Encoder", "encode_category", "encode_date", "encode_numbers"]

MOST_CODES = 250  # of a categorical for trees, numerical safety: scikit-learn's boosting takes at most 255
# convention: the calendar
_CYCLES = {"month": ("month", 12.0), "weekday": ("day_of_week", 7.0), "hour": ("hour", 24.0)}


@dataclass(frozen=True)
class Encoder:
    """Columns of one kind and the fitted transformer that makes features of them.

    Attributes
    ----------
    columns : tuple of str
    transformer : transformer
        Takes the cells of the columns; one of a category takes the categories.
    names : tuple of str
        Of the features.
    sources : tuple of str
        The column that each feature comes from.
    """

    columns: tuple[str, ...]
    transformer: Any
    names: tuple[str, ...]
    sources: tuple[str, ...]

    def features(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """The features of some rows of its columns."""
        column = X.iloc[:, 0]
        if column.dtype.name == "category":
            # Each category is encoded once and not row by row, which on a long table is most of the time.
            categories = np.array([*column.cat.categories, None], dtype=object)[:, None]
            codes: NDArray[np.intp] = column.cat.codes.to_numpy(dtype=np.intp)  # a gap has -1: the None
            return np.asarray(self.transformer.transform(categories), dtype=np.float64)[codes]
        if column.dtype.kind == "M":
            return np.asarray(self.transformer.transform(X))
        values = X.to_numpy(dtype=float)
        if _is_plain(self.transformer):
            return _quickly(self.transformer, values)
        return np.asarray(self.transformer.transform(values))


def encode_numbers(X: pd.DataFrame, linear: bool) -> Encoder:
    """Numbers as they are for trees, else imputed by their median and standardised, with a flag for gaps."""
    columns = tuple(map(str, X.columns))
    if not linear:
        return Encoder(columns, FunctionTransformer(), columns, columns)
    values = X.to_numpy(dtype=float)
    missing = np.isnan(values)
    empty = missing.all(axis=0)  # in these rows, that is: there is no median
    transformer = _standardised(flagged=bool(missing.any()))
    transformer.fit(np.where(empty, 0.0, values) if empty.any() else values)
    gaps = [columns[j] for j in np.flatnonzero(missing.any(axis=0) & ~empty)]
    return Encoder(columns, transformer, (*columns, *(f"{name} is missing" for name in gaps)), (*columns, *gaps))


def encode_category(X: pd.DataFrame, linear: bool, limit: int) -> Encoder:
    """Categories, for linear models a feature each and the rarest beyond ``limit`` together, for trees numbers.

    An unknown category counts as rare where there are rare ones; else it has no feature, and -1 for trees.
    """
    (name,) = map(str, X.columns)
    if linear:
        flags = OneHotEncoder(max_categories=limit, handle_unknown="infrequent_if_exist", sparse_output=False)
        flags.fit(_seen(X[name], limit))
        rare = flags.infrequent_categories_[0]
        kept = [c for c in flags.categories_[0] if rare is None or c not in rare]
        names = tuple(f"{name}={category}" for category in [*kept, *([] if rare is None else ["(rare)"])])
        return Encoder((name,), flags, names, (name,) * len(names))
    codes = OrdinalEncoder(max_categories=MOST_CODES, handle_unknown="use_encoded_value", unknown_value=-1)
    return Encoder((name,), codes.fit(_seen(X[name], MOST_CODES)), (name,), (name,))


def _seen(column: pd.Series, limit: int) -> NDArray[np.object_]:
    """The categories of the rows; how often each occurs matters, and takes time, only if some are too rare to keep."""
    distinct = column.dropna().unique()
    cells = distinct if len(distinct) <= limit else column.dropna()
    return np.asarray(cells, dtype=object)[:, None]


def encode_date(X: pd.DataFrame, linear: bool) -> Encoder:
    """Days since the first date, and where in the year, the week and the day it falls."""
    (name,) = map(str, X.columns)
    parts = DateParts(cyclic=linear).fit(X)
    words = list(parts.get_feature_names_out())
    if not linear:
        return Encoder((name,), parts, tuple(words), (name,) * len(words))
    # A date is missing as a whole: the first part says so for all.
    gaps = bool(X.isna().any(axis=None))
    days, cycles = _standardised(flagged=gaps), _standardised(flagged=False)
    scaling = ColumnTransformer([("days", days, [0]), ("cycles", cycles, slice(1, None))]).fit(parts.transform(X))
    words[1:1] = [f"{words[0]} is missing"] * gaps
    return Encoder((name,), Pipeline([("parts", parts), ("scaling", scaling)]), tuple(words), (name,) * len(words))


def _standardised(flagged: bool) -> Pipeline | FeatureUnion:
    """Imputed by the median and standardised; ``flagged`` adds a flag for each column with gaps."""
    # Less the median, a gap is 0: SimpleImputer's own median sorts, which on a long table takes most of the time.
    impute = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True, copy=False)
    values = make_pipeline(RobustScaler(with_scaling=False), impute, StandardScaler(copy=False))
    return FeatureUnion([("values", values), ("gaps", MissingIndicator(error_on_new=False))]) if flagged else values


def _is_plain(transformer: Any) -> bool:
    """Whether it is what `_standardised` makes for columns without gaps."""
    kinds = (RobustScaler, SimpleImputer, StandardScaler)
    return isinstance(transformer, Pipeline) and tuple(type(step) for _, step in transformer.steps) == kinds


def _quickly(transformer: Pipeline, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the three steps do, without their checks: for a few rows these would take most of the time."""
    robust, _, standard = (step for _, step in transformer.steps)
    out: NDArray[np.float64] = values - robust.center_
    out[np.isnan(out)] = 0.0
    out -= standard.mean_
    out /= standard.scale_
    return out


class DateParts(TransformerMixin, BaseEstimator):
    """A column of dates as numbers: days since the first one, month, weekday and, if there are times, hour.

    Parameters
    ----------
    cyclic : bool, default=True
        Give sine and cosine of month, weekday and hour: on a circle December is next to January, which trees do not
        need.

    Attributes
    ----------
    first_ : int
        The first date, in seconds since 1970.
    hours_ : bool
        Whether there are times of day.

    Examples
    --------
    >>> import pandas as pd
    >>> dates = pd.DataFrame({"seen": pd.to_datetime(["2024-01-01", "2024-03-02"])})
    >>> DateParts(cyclic=False).fit_transform(dates).tolist()
    [[0.0, 1.0, 0.0], [61.0, 3.0, 5.0]]
    """

    def __init__(self, cyclic: bool = True) -> None:
        self.cyclic = cyclic

    def fit(self, X: pd.DataFrame, y: Any = None) -> DateParts:  # noqa: ARG002
        """Find the first date and whether there are times."""
        dates = X.iloc[:, 0]
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.first_ = int(dates.min().timestamp())
        self.hours_ = bool((dates.dt.hour > 0).any())
        return self

    def transform(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """One row of numbers for each date; a gap is missing in all of them."""
        dates = X.iloc[:, 0]
        seconds = dates.to_numpy(dtype="datetime64[s]")
        days = (seconds.astype(np.int64).astype(float) - self.first_) / 86400.0
        parts = [np.where(np.isnat(seconds), np.nan, days)]
        for accessor, period in self._cycles().values():
            value = getattr(dates.dt, accessor).to_numpy(dtype=float, na_value=np.nan)
            angle = 2.0 * np.pi * value / period
            parts += [np.sin(angle), np.cos(angle)] if self.cyclic else [value]
        return np.column_stack(parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """``seen days``, ``seen month sin`` and so on."""
        shapes = (" sin", " cos") if self.cyclic else ("",)
        words = ["days", *(f"{cycle}{shape}" for cycle in self._cycles() for shape in shapes)]
        return np.array([f"{self.feature_names_in_[0]} {word}" for word in words], dtype=object)

    def _cycles(self) -> dict[str, tuple[str, float]]:
        return {name: cycle for name, cycle in _CYCLES.items() if name != "hour" or self.hours_}
