"""Contributing columns of a row, and what listed rows have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from sklearn.base import is_classifier

from .formatting import number

if TYPE_CHECKING:
    import pandas as pd


Mask = NDArray[np.bool_]

RULE_ROWS = 5  # display: rows that a rule must cover
VALUES_TRIED = 50  # cost: values of a column that are tried, the most frequent ones
RULE_LEVEL = 0.001  # convention: significance level of a rule, over all rules that were tried
LEAST_LIFT = 1.5  # display: times the usual share of listed rows from which on a rule is shown
ROWS_EXAMINED = 10_000  # cost: rows that are looked at, or compared with
LIKE = 50  # cost: confident rows of similar value that a row is compared with, in a regression
EXPLAINED_ROWS = 1_000  # cost: rows whose contributing columns are found
QUERIES = 50_000  # cost: changed rows that the model predicts, over all columns
BATCH = 5_000  # cost: changed rows per call of the model
DENSE = 10_000_000  # cost: cells of a sparse table that is made dense
TRUSTED = 0.8  # display: weight from which on a row is compared with
BESIDE = 0.4  # display: of the contribution of the strongest column, below which another is not named
LEAST_SHARE = 0.15  # display: of the residual, below which a column is not named


# ------------------------------------------------------------------------------------------- common patterns


@dataclass(frozen=True, eq=False)
class Clause:
    """A condition on a column, and the rows that meet it: ``fee = 4.3``, ``age above 70``."""

    text: str
    holds: Mask


def common_patterns(cells: pd.DataFrame, suspect: Mask) -> list[tuple[str, int, int, float]]:
    """Return a short list of conditions under which listed rows are much more frequent than elsewhere.

    Each rule is found among the rows that the earlier ones do not cover, by a likelihood-ratio test of its share of
    listed rows; a second condition is added if that is significant too.

    Parameters
    ----------
    cells : pandas.DataFrame
        The raw table.
    suspect : ndarray of bool
        Which of its rows are listed.

    Returns
    -------
    list of (rule, listed rows, rows, lift)
        Lift is the share of listed rows under the rule divided by that of all rows.

    Examples
    --------
    >>> import pandas as pd
    >>> fee = np.tile([1.0, 2.5, 4.3, 7.0], 50)
    >>> common_patterns(pd.DataFrame({"fee": fee, "n": np.arange(200) % 7}), (fee == 4.3) & (np.arange(200) < 120))
    [('fee = 4.3', 30, 50, 4.0)]
    """
    if len(cells) > ROWS_EXAMINED:
        rows = np.linspace(0, len(cells) - 1, ROWS_EXAMINED).astype(np.intp)
        cells, suspect = cells.iloc[rows], suspect[rows]
    conditions = list(_conditions(cells))
    least = float(chi2.isf(RULE_LEVEL / max(len(conditions), 1), 1))
    left = np.ones(len(cells), dtype=bool)
    found: list[tuple[str, int, int, float]] = []
    while len(found) < 4 and np.count_nonzero(suspect & left) >= RULE_ROWS:
        best = _best(conditions, suspect, left, least)
        if best is None:
            break
        inside = best.holds & left
        narrower = _best([Clause(f"{best.text} and {c.text}", c.holds) for c in conditions], suspect, inside, least)
        rule = best if narrower is None else narrower
        inside &= rule.holds
        lift = float(suspect[inside].mean() / suspect.mean())
        if lift < LEAST_LIFT:  # frequent among the remaining rows only
            break
        found.append((rule.text, int(np.sum(suspect & inside)), int(inside.sum()), round(lift, 1)))
        left &= ~inside
    return found


def _best(conditions: list[Clause], suspect: Mask, left: Mask, least: float) -> Clause | None:
    """The most significant condition among the remaining rows; None if none is significant."""
    scored = [(_ratio(suspect, c.holds & left, left), c) for c in conditions]
    ratio, best = max(scored, key=lambda pair: pair[0], default=(0.0, None))
    return best if ratio > least else None


def _ratio(suspect: Mask, inside: Mask, left: Mask) -> float:
    """Likelihood-ratio statistic of two shares of listed rows against one; zero if the share inside is smaller."""
    n, k = int(inside.sum()), int(np.sum(suspect & inside))
    total, found = int(left.sum()), int(np.sum(suspect & left))
    if n < RULE_ROWS or n == total or k * total <= found * n:
        return 0.0
    return 2 * (_likelihood(k, n) + _likelihood(found - k, total - n) - _likelihood(found, total))


def _likelihood(k: int, n: int) -> float:
    return sum(part * math.log(part / n) for part in (k, n - k) if part)


def _conditions(cells: pd.DataFrame) -> Iterator[Clause]:
    """Conditions on each column: missing, equal to a frequent value, above or below a quantile."""
    import pandas as pd
    from pandas.api import types

    for place, name in enumerate(cells.columns):
        column = cells.iloc[:, place]
        missing = column.isna().to_numpy()
        if missing.any():
            yield Clause(f"{name} is missing", missing)
        if types.is_datetime64_any_dtype(column.dtype):
            continue
        try:
            codes, values = pd.factorize(column)
        except TypeError:  # lists and other cells that cannot be hashed
            continue
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        for code in np.argsort(-counts, kind="stable")[:VALUES_TRIED]:
            if counts[code] >= RULE_ROWS:
                yield Clause(f"{name} = {_shown(values[code])}", codes == code)
        if types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype):
            yield from _ends(name, column.to_numpy(dtype=float, na_value=np.nan))


def _ends(name: Any, values: NDArray[np.float64]) -> Iterator[Clause]:
    known = values[np.isfinite(values)]
    if not known.size:
        return
    for cut in np.unique(np.quantile(known, [0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98])):
        yield Clause(f"{name} above {_shown(cut)}", values > cut)
        yield Clause(f"{name} below {_shown(cut)}", values < cut)


def _shown(value: Any) -> str:
    return number(value, 5) if isinstance(value, float) else str(value)


# --------------------------------------------------------------------------------------- contributing columns


def columns_against(
    model: Any, X: Any, y: Any, rows: Any, confident: Any, parts: Mapping[str, tuple[slice, Any]] | None = None
) -> list[list[str]]:
    """Return the columns that contribute most to the expected label or value of some rows, the strongest first.

    Each column in turn is set to the median of confident rows with the same label (or a similar value). Its
    contribution is the gain in the model's agreement with the given label or value.

    Parameters
    ----------
    model : estimator
        Anything fitted that predicts rows of `X`: a classifier, a regressor, a Pipeline.
    X : array or data frame of shape (n_samples, n_features)
        Columns ``city=Oslo``, ``city=Rome`` and ``city is missing`` belong to ``city``; those of an array are called
        as the model calls them, else ``x0``, ``x1`` and so on.
    y : array-like of shape (n_samples,)
        Given labels or values.
    rows : array-like of int
        Positions of the rows to explain. At most the first 1,000 are, or fewer if there are more than 50 columns.
    confident : array-like of int
        Positions of the rows to compare with, see `confident_rows`.
    parts : mapping of str to (slice, callable), optional
        Columns that share features, as texts do in `TableEncoder`: the features, and what gives a column's part in
        them for some rows. The part is set to the mean of the confident rows.

    Returns
    -------
    list of list of str
        For every row, at most three names; none if no column contributes, or if `X` is not a table.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0, 5.0], [1.0, 3.0], [2.0, 4.0], [3.0, 6.0], [9.0, 5.0]])
    >>> model = LinearRegression().fit(X[:4], X[:4, 0])
    >>> columns_against(model, X, [0.0, 1.0, 2.0, 3.0, 2.0], [4], [0, 1, 2, 3])
    [['x0']]
    """
    rows, confident = np.asarray(rows, dtype=np.intp), np.asarray(confident, dtype=np.intp)
    table, given = _dense(X), np.asarray(y)
    if table is None or not rows.size or not confident.size or X.shape[1] > QUERIES:
        return [[] for _ in rows]
    groups: dict[str, list[int]] = {name: [] for name in parts or ()}
    shared = {j for place, _ in (parts or {}).values() for j in range(place.start, place.stop)}
    for place, name in enumerate(_names(model, X)):
        if place not in shared:
            own = name.partition("=")[0] or name  # a column may be called "=x"
            groups.setdefault(own.removesuffix(" is missing"), []).append(place)
    asked = rows[: min(EXPLAINED_ROWS, QUERIES // len(groups))]
    alike = _alike(model, given, asked, confident)
    before = _agreement(model, _taken(table, asked), given[asked])
    gains = _once_usual(model, table, given[asked], asked, alike, groups, parts or {}) - before[:, None]
    # no column explains a value that is far from all others
    amiss = np.zeros(asked.size) if is_classifier(model) else -before
    names = np.array(list(groups), dtype=object)
    told = [_strongest(names, gain, least) for gain, least in zip(gains, amiss, strict=True)]
    return told + [[]] * (rows.size - asked.size)


def confident_rows(weight: Any, suspects: Any) -> NDArray[np.intp]:
    """Return rows with nearly full weight that are not listed; a sample if there are many.

    >>> confident_rows([1.0, 0.9, 0.1, 1.0], suspects=[0]).tolist()
    [1, 3]
    """
    weight = np.asarray(weight, dtype=float)
    trusted = weight >= min(TRUSTED, float(np.median(weight)))
    trusted[suspects] = False
    found = np.flatnonzero(trusted)
    if found.size > ROWS_EXAMINED:
        found = np.sort(np.random.default_rng(0).choice(found, ROWS_EXAMINED, replace=False))
    return found


def _dense(X: Any) -> Any:
    """A data frame or an array of two dimensions; None if X is not a table, or too large a sparse one."""
    if hasattr(X, "tocsr"):
        return X.toarray() if X.shape[0] * X.shape[1] <= DENSE else None
    return X if hasattr(X, "columns") or (hasattr(X, "dtype") and np.ndim(X) == 2) else None


def _names(model: Any, X: Any) -> list[str]:
    names = X.columns if hasattr(X, "columns") else getattr(model, "feature_names_in_", ())
    return [str(name) for name in names] if len(names) == X.shape[1] else [f"x{j}" for j in range(X.shape[1])]


def _strongest(names: Any, gain: Any, amiss: float) -> list[str]:
    """The strongest columns that explain a part of the residual."""
    order = np.argsort(-gain, kind="stable")[:3]
    least = max(BESIDE * gain[order[0]], LEAST_SHARE * amiss, 0.0)
    return [str(names[j]) for j in order if gain[j] > least]


def _alike(model: Any, given: Any, rows: Any, confident: Any) -> list[tuple[Any, Any]]:
    """Groups of the rows, each with the confident rows of the same label or of a similar value."""
    if is_classifier(model):
        labels = given[rows]
        pairs = [(np.flatnonzero(labels == one), confident[given[confident] == one]) for one in np.unique(labels)]
        return [(which, like if like.size else confident) for which, like in pairs]
    order = confident[np.argsort(given[confident], kind="stable")]
    starts = np.searchsorted(given[order], given[rows]) - LIKE // 2
    starts = np.clip(starts, 0, max(order.size - LIKE, 0))
    return [(np.array([place]), order[at : at + LIKE]) for place, at in enumerate(starts)]


def _once_usual(
    model: Any, table: Any, given: Any, rows: Any, alike: Any, groups: dict[str, list[int]], parts: Any
) -> Any:
    """Agreement of every row with its label or value after a group of its columns is set to the usual cell."""
    agreement = np.empty((rows.size, len(groups)))
    at_once = max(1, BATCH // rows.size)
    for start in range(0, len(groups), at_once):
        some = list(groups.items())[start : start + at_once]
        repeated = np.tile(rows, len(some))
        changed = _taken(table, repeated)
        for block, (name, places) in enumerate(some):
            inside = slice(block * rows.size, (block + 1) * rows.size)
            for place in places:
                source = repeated.copy()
                source[inside] = _usual(_column(table, place), rows, alike)
                changed = _replaced(changed, place, table, source)
            if name in parts:
                _shift(changed, inside, parts[name], rows, alike)
        found = _agreement(model, changed, np.tile(given, len(some)))
        agreement[:, start : start + len(some)] = found.reshape(len(some), rows.size).T
    return agreement


def _shift(changed: Any, inside: slice, part: tuple[slice, Any], rows: Any, alike: Any) -> None:
    """Replace a column's part in shared features by the mean part of similar confident rows, in place."""
    place, read = part
    own = read(rows)
    own = own.toarray() if hasattr(own, "tocsr") else own
    usual = np.empty(own.shape)
    for which, like in alike:
        usual[which] = np.asarray(read(like).mean(axis=0))
    cells = changed.iloc if hasattr(changed, "iloc") else changed
    cells[inside, place] += usual - own


def _usual(column: Any, rows: Any, alike: Any) -> Any:
    """For every row, the confident row whose cell is the median (or mode) of similar rows."""
    numbers, ordered = _numbered(column)
    source = rows.copy()
    for which, like in alike:
        values = numbers[like].astype(np.float64)
        finite = np.isfinite(values)
        known, values = like[finite], values[finite]
        if known.size and ordered:
            source[which] = known[np.argsort(values, kind="stable")[(known.size - 1) // 2]]
        elif known.size:
            codes = values.astype(np.intp)
            source[which] = known[np.argmax(codes == np.bincount(codes).argmax())]
    return source


def _numbered(column: Any) -> tuple[Any, bool]:
    """Cells as numbers, and whether their order means anything; texts by order of appearance."""
    cells = np.asarray(column)
    if cells.dtype.kind in "biuf":
        return cells, True
    try:
        if cells.dtype.kind not in "mMSU":
            return cells.astype(np.float64), True
    except (TypeError, ValueError):
        pass
    known: dict[str, int] = {}
    return np.array([known.setdefault(str(value), len(known)) for value in cells.tolist()], dtype=np.float64), False


def _taken(table: Any, rows: Any) -> Any:
    return table.iloc[rows].reset_index(drop=True) if hasattr(table, "iloc") else table[rows]


def _column(table: Any, place: int) -> Any:
    return table.iloc[:, place] if hasattr(table, "iloc") else table[:, place]


def _replaced(part: Any, place: int, table: Any, source: Any) -> Any:
    """A part of the table with one column taken from other rows."""
    if hasattr(part, "isetitem"):  # pandas
        part.isetitem(place, table.iloc[source, place].array)
    elif hasattr(part, "with_columns"):  # polars
        return part.with_columns(table[:, place][source])
    else:
        part[:, place] = table[source, place]
    return part


def _agreement(model: Any, part: Any, given: Any) -> Any:
    """How well the model agrees with the given labels or values."""
    if not is_classifier(model):
        return -np.abs(np.asarray(model.predict(part), dtype=float) - given)
    places, codes = np.arange(given.size), np.searchsorted(model.classes_, given)
    if hasattr(model, "decision_function"):  # does not saturate, unlike probabilities
        scores = np.asarray(model.decision_function(part))
        if scores.ndim == 1:
            return np.where(codes == 1, scores, -scores)
        if scores.shape[1] == len(model.classes_):
            own = scores[places, codes]
            scores[places, codes] = -np.inf
            return own - scores.max(axis=1)
    if not hasattr(model, "predict_proba"):
        return (np.asarray(model.predict(part)) == given).astype(float)
    own = np.clip(model.predict_proba(part)[places, codes], 1e-9, 1 - 1e-9)  # no logarithm of zero
    return np.log(own) - np.log1p(-own)
