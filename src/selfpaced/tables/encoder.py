"""`TableEncoder`: from a table as people keep it to features with names."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .cells import CellLevels
from .columns import CategoryColumn, Column, DateColumn, Note, NotUsed, NumberColumn, describe, levels_of
from .strings import JointText
from .text import TableWarning, suggestion

if TYPE_CHECKING:
    import pandas as pd

COMPONENTS = {"linear": 120, "tree": 30}  # cost, weighed by benchmarks/tables.py: components of all text columns
LARGE = 10_000_000  # cost: cells above which features are kept in single precision
CELLS_AT_ONCE = 1 << 20  # cost: cells that are encoded at a time, 8 MB


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode all columns of a table as numbers for a model: numbers, money, dates, categories, texts.

    - Numbers are read by one convention per column: ``$1,200``, ``1.234,5 €``, ``45 %``, ``(70)``, ``2.1k``, ``5 kg``.
      If they span orders of magnitude, their asinh is a feature, too.
    - Dates in one format per column become days, month, weekday and hour.
    - Strings that repeat are categories, however long. Up to `max_levels` levels are one feature each.
    - All other strings become TF-IDF weights of letters (of words, if they are long), and the texts of all columns
      together components of one SVD. A table that holds nothing but text becomes a sparse matrix of TF-IDF weights.
    - Digits with leading zeros are categories. "n/a", "-", "unknown" and the like are missing. A gap is filled by the
      median and has a feature of its own.

    Parameters
    ----------
    kind : {"linear", "tree"}, default="linear"
        What kind of model follows. Trees take numbers as they are, gaps included, and categories as ranks.
    categorical : sequence of str
        Columns that are categories whatever they look like.
    exclude : sequence of str
        Columns to leave out.
    decimal : {"", ".", ","}
        Decimal sign of columns whose numbers could be read either way (``1,234``). By default the other columns tell;
        if they do not, such a column is read as text.
    max_levels : int, default=40
        Levels that become a feature each; of a column with more, the frequent ones do.
    n_components : int, optional
        Components of all texts together, by default 120 for linear models and 30 for trees. If it is given, the output
        is never sparse.
    dtype : {"auto", "float32", "float64"}
        Type of the features; ``"auto"`` takes single precision above ten million cells.
    random_state : int, default=0
        Seed of the SVD.

    Attributes
    ----------
    columns_ : list
        The columns that are used: ``name``, ``kind`` ("number", "date", "category" or "text") and what was learnt.
    not_used_ : list of (str, str)
        Columns without information, and why: "identifier", "constant", "empty" or "nested values".
    notes_ : list of Note
        How columns were read, where a person should know: ``column``, ``text``, and the first ``row`` concerned or -1.
    sparse_ : bool
        Whether the output is a sparse matrix.
    feature_names_in_ : ndarray of str
        The columns of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from selfpaced import TableEncoder
    >>> table = pd.DataFrame(
    ...     {"order_id": range(40), "paid": ["$1,200", "$950.50", "n/a", "$70"] * 10, "city": ["Rome", "Oslo"] * 20}
    ... )
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['paid', 'paid is missing', 'city=Rome', 'city=Oslo']
    >>> encoder.not_used_
    [('order_id', 'identifier')]
    """

    def __init__(
        self,
        kind: Literal["linear", "tree"] = "linear",
        *,
        categorical: Sequence[str] = (),
        exclude: Sequence[str] = (),
        decimal: str = "",
        max_levels: int = 40,
        n_components: int | None = None,
        dtype: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.kind = kind
        self.categorical = categorical
        self.exclude = exclude
        self.decimal = decimal
        self.max_levels = max_levels
        self.n_components = n_components
        self.dtype = dtype
        self.random_state = random_state

    # ---------------------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None) -> TableEncoder:  # noqa: ARG002
        """Find out what the columns hold and learn their features.

        Parameters
        ----------
        X : pandas or polars DataFrame
        y : ignored

        Returns
        -------
        self
        """
        self._fit(_frame(X))
        return self

    def _fit(self, frame: pd.DataFrame) -> tuple[dict[str, CellLevels | None], dict[str, Any]]:
        """Fit, and return the levels of the columns and the features of the levels of texts."""
        self._check(frame)
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        levels = {
            name: levels_of(frame[name], categorical=name in self.categorical)
            for name in frame.columns
            if name not in self.exclude
        }
        linear = self.kind == "linear"
        self.columns_: list[Column] = []
        for column in self._described(frame, levels):
            if isinstance(column, CategoryColumn):
                self.columns_.append(column.fit(_present(levels[column.name]), linear, self.max_levels))
            else:
                self.columns_.append(column.fit(frame[column.name], linear))
        if not self.columns_:
            shown = "; ".join(f"{name!r}: {why}" for name, why in self.not_used_[:5])
            raise ValueError(f"no column can be used: {shown or 'there is none besides the target'}")
        texts = {name: _present(levels[name]) for name in self.names_of("text")}
        self.sparse_ = len(texts) == len(self.columns_) and linear and self.n_components is None
        components = 0 if self.sparse_ else self.n_components or COMPONENTS[self.kind]
        self.text_ = JointText(components, self.random_state) if texts else None
        tables = {} if self.text_ is None else self.text_.fit(texts)
        large = len(frame) * len(self.get_feature_names_out()) >= LARGE and not self.sparse_
        self.dtype_ = ("float32" if large else "float64") if self.dtype == "auto" else str(np.dtype(self.dtype))
        return levels, tables

    def _check(self, frame: pd.DataFrame) -> None:
        if self.kind not in ("linear", "tree"):
            raise ValueError(f"kind must be 'linear' or 'tree', got {self.kind!r}")
        if self.decimal not in ("", ".", ","):
            raise ValueError(f"decimal must be '', '.' or ',', got {self.decimal!r}")
        if self.max_levels < 2:
            raise ValueError(f"max_levels must be at least 2, got {self.max_levels!r}")
        if self.n_components is not None and self.n_components < 1:
            raise ValueError(f"n_components must be at least 1 or None, got {self.n_components!r}")
        if not len(frame):
            raise ValueError("X must have rows, got none")
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise ValueError(f"X must have unique column names, got {twice!r} more than once")
        for name in (*self.categorical, *self.exclude):
            if name not in frame.columns:
                raise ValueError(f"the table has no column {name!r}{suggestion(name, frame.columns)}")

    def _described(self, frame: pd.DataFrame, levels: dict[str, CellLevels | None]) -> list[Column]:
        """Return the columns that are used; numbers that could be read either way follow the other columns."""
        found = {
            name: describe(frame[name], cells, categorical=name in self.categorical, decimal=self.decimal)
            for name, cells in levels.items()
        }
        columns = [column for column, _ in found.values()]
        signs = {column.decimal for column in columns if isinstance(column, NumberColumn) and column.text}
        if not self.decimal and signs == {","}:
            for name, (column, _) in list(found.items()):
                if isinstance(column, CategoryColumn) and column.either:
                    found[name] = describe(frame[name], levels[name], decimal=",")
        self.not_used_ = [(name, c.reason) for name, (c, _) in found.items() if isinstance(c, NotUsed)]
        self.notes_ = [note for _, notes in found.values() for note in notes]
        return [column for column, _ in found.values() if not isinstance(column, NotUsed)]

    # --------------------------------------------------------------------------------------------------- encoding

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> Any:  # noqa: ARG002
        """Fit, and return the features; `notes_` tells of cells that could not be read."""
        frame = _frame(X)
        levels, tables = self._fit(frame)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)
            return self._encode(frame, self._readers(frame, levels, tables))

    def transform(self, X: Any) -> Any:
        """Encode the rows of a table; other columns are ignored.

        Parameters
        ----------
        X : pandas or polars DataFrame

        Returns
        -------
        ndarray of shape (n_samples, n_features), or sparse matrix for a table of nothing but text
        """
        frame = self._known(X)
        return self._encode(frame, self._readers(frame))

    def _encode(self, frame: pd.DataFrame, found: Iterator[tuple[str, slice, Any]]) -> Any:
        readers = [(place, read) for _, place, read in found]
        if self.sparse_:
            return sum(read(slice(None)) for _, read in readers)
        out = np.zeros((len(frame), len(self.get_feature_names_out())), dtype=self.dtype_)
        step = max(CELLS_AT_ONCE // out.shape[1], 1)
        for begin in range(0, len(frame), step):  # all columns of some rows: these stay in cache
            rows = slice(begin, begin + step)
            for place, read in readers:
                out[rows, place] += read(rows)
        return out

    def text_parts(self, X: Any) -> dict[str, tuple[slice, Any]]:
        """Return what each text column contributes to the features of all texts, which are the sum of these parts.

        Parameters
        ----------
        X : pandas or polars DataFrame

        Returns
        -------
        dict of str to (slice, callable)
            The features of the texts, and a function that gives a column's part in them for some rows of `X`.
        """
        frame = self._known(X)
        levels = [(name, CellLevels.of(frame[name])) for name in self.names_of("text")]
        return {name: (place, read) for name, place, read in self._texts(levels)}

    def _readers(
        self, frame: pd.DataFrame, known: Mapping[str, CellLevels | None] | None = None, tables: Any = None
    ) -> Iterator[tuple[str, slice, Any]]:
        """Yield columns, the features that they fill, and what gives these for some rows; texts come last."""
        linear, begin = self.kind == "linear", 0
        texts: list[tuple[str, CellLevels]] = []
        for column in self.columns_:
            series = frame[column.name]
            if isinstance(column, CategoryColumn):
                levels = CellLevels.of(series) if known is None else _present(known[column.name])
                texts += [(column.name, levels)] * column.many
                read = column.reader(levels, linear)
            else:
                read, bad = column.reader(series, linear)
                if bad >= 0:
                    _tell_unread(column, series, bad)
            if not self.sparse_:
                yield column.name, slice(begin, begin := begin + len(column.names(linear))), read
        yield from self._texts(texts, tables)

    def _texts(
        self, columns: list[tuple[str, CellLevels]], tables: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[str, slice, Any]]:
        """Yield text columns, the last features, which they share, and what gives a column's part in these."""
        width = len(self.get_feature_names_out())
        for name, levels in columns:
            assert self.text_ is not None  # it was fitted to these columns
            table = self.text_.table(name, levels) if tables is None else tables[name]
            place = slice(width - self.text_.width, width)
            yield name, place, lambda rows, table=table, codes=levels.codes: table[codes[rows]]

    def _known(self, X: Any) -> pd.DataFrame:
        check_is_fitted(self, "columns_")
        frame = _frame(X)
        absent = [column.name for column in self.columns_ if column.name not in frame.columns]
        if absent:
            more = f" {len(absent) - 1} more are missing: {absent[1:6]}" if len(absent) > 1 else ""
            what = f"the table has no column {absent[0]!r}, which the model was fitted on"
            raise ValueError(f"{what}{suggestion(absent[0], frame.columns)}{more}")
        return frame

    # ------------------------------------------------------------------------------------------------------ names

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Return names such as ``age``, ``age is missing``, ``city=Rome``, ``seen=days`` and ``note=text 1``."""
        check_is_fitted(self, "columns_")
        linear = self.kind == "linear"
        names = [] if self.sparse_ else [name for column in self.columns_ for name in column.names(linear)]
        if self.text_ is not None:
            texts = self.names_of("text")
            source = texts[0] if len(texts) == 1 else "text columns"
            names += [f"{source}=text {number + 1}" for number in range(self.text_.width)]
        return np.array(names, dtype=object)

    @property
    def categorical_features_(self) -> list[int]:
        """Places of features that are ranks of categories, as scikit-learn's boosting takes them (trees only)."""
        if self.kind == "linear":
            return []
        ends = np.cumsum([0, *(len(column.names(False)) for column in self.columns_)])
        return [int(ends[k]) for k, column in enumerate(self.columns_) if isinstance(column, CategoryColumn)]

    def names_of(self, kind: str) -> list[str]:
        """Return the names of the columns of one kind: "number", "date", "category" or "text"."""
        return [column.name for column in self.columns_ if column.kind == kind]

    # ------------------------------------------------------------------------------------------------------- files

    def __getstate__(self) -> dict[str, Any]:
        """Return the columns as one text: a file of ten thousand objects takes most of the time of a fit to write."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "columns_" in state:
            state["columns_"] = json.dumps([(type(column).__name__, asdict(column)) for column in self.columns_])
            state["notes_"] = json.dumps([(note.column, note.text, note.row) for note in self.notes_])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the columns from their text."""
        state = dict(state)
        if "columns_" in state:
            kinds = {kind.__name__: kind for kind in (NumberColumn, DateColumn, CategoryColumn)}
            state["columns_"] = [kinds[kind](**values) for kind, values in json.loads(state["columns_"])]
            state["notes_"] = [Note(*values) for values in json.loads(state["notes_"])]
        super().__setstate__(state)


def _present(levels: CellLevels | None) -> CellLevels:
    assert levels is not None  # columns of strings have levels
    return levels


def _tell_unread(column: NumberColumn | DateColumn, series: pd.Series, row: int) -> None:
    sign = f" with decimal {column.decimal!r}" if isinstance(column, NumberColumn) else ""
    what = f"column {column.name!r}: not all cells are {column.kind}s{sign}; these count as missing"
    warnings.warn(f"{what}, first {series.iloc[row]!r} in row {series.index[row]}", TableWarning, stacklevel=4)


def _frame(X: Any) -> pd.DataFrame:
    import pandas as pd

    if not isinstance(X, pd.DataFrame):
        if not hasattr(X, "to_pandas"):  # polars, Arrow
            what = "X must be a table with column names (a pandas or polars DataFrame)"
            raise TypeError(f"{what}, got {type(X).__name__}")
        X = X.to_pandas()
    return X if all(type(name) is str for name in X.columns) else X.set_axis([str(name) for name in X.columns], axis=1)
