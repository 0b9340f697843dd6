"""What speaks against a row, column by column, and what suspects have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["columns_against", "common_patterns"]

Mask = NDArray[np.bool_]

MOST_RULES = 4  # display: rules of a list
FEWEST = 5  # a choice: rows that a rule must hold of
LEVELS = 50  # cost: values of a column that are tried, the most frequent ones
CHANCE = 0.001  # a choice: how probably a rule of the list is one by chance, over all that were tried
LEAST_LIFT = 1.5  # a choice: times the usual share of suspects from which on a rule is worth a line
SAMPLE = 50_000  # cost: rows looked at
LIKE = 50  # a choice: confident rows of like value that a row is compared with, of a regression
NAMED = 3  # display: columns that are named
LEAST_SHARE = 0.15  # display: of what speaks against a row, below which a column is not named


# ------------------------------------------------------------------------------------------- what is in common


@dataclass(frozen=True, eq=False)
class Clause:
    """Something that holds of some rows: ``fee = 4.3``, ``age above 70``."""

    text: str
    holds: Mask


def common_patterns(cells: pd.DataFrame, suspect: Mask) -> list[tuple[str, int, int, float]]:
    """A short list of rules over the raw columns of which suspects are far more frequent than elsewhere.

    Each rule is found among the rows that those before it leave, by the likelihood ratio of its share of suspects
    against that of the others; a second condition is added where that says clearly more.

    Parameters
    ----------
    cells : pandas.DataFrame
        The raw table.
    suspect : ndarray of bool
        Which of its rows are suspects.

    Returns
    -------
    list of (rule, suspects, rows, lift)
        Lift is the rule's share of suspects over that of all rows.

    Examples
    --------
    >>> import pandas as pd
    >>> fee = np.tile([1.0, 2.5, 4.3, 7.0], 50)
    >>> common_patterns(pd.DataFrame({"fee": fee, "n": np.arange(200) % 7}), (fee == 4.3) & (np.arange(200) < 120))
    [('fee = 4.3', 30, 50, 4.0)]
    """
    if len(cells) > SAMPLE:
        rows = np.linspace(0, len(cells) - 1, SAMPLE).astype(np.intp)
        cells, suspect = cells.iloc[rows], suspect[rows]
    conditions = list(_conditions(cells))
    least = float(chi2.isf(CHANCE / max(len(conditions), 1), 1))
    left = np.ones(len(cells), dtype=bool)
    found: list[tuple[str, int, int, float]] = []
    while len(found) < MOST_RULES and np.count_nonzero(suspect & left) >= FEWEST:
        best = _best(conditions, suspect, left, least)
        if best is None:
            break
        inside = best.holds & left
        narrower = _best([Clause(f"{best.text} and {c.text}", c.holds) for c in conditions], suspect, inside, least)
        rule = best if narrower is None else narrower
        inside &= rule.holds
        lift = float(suspect[inside].mean() / suspect.mean())
        if lift < LEAST_LIFT:  # more than elsewhere among what is left, and no more than usual
            break
        found.append((rule.text, int(np.sum(suspect & inside)), int(inside.sum()), round(lift, 1)))
        left &= ~inside
    return found


def _best(conditions: list[Clause], suspect: Mask, left: Mask, least: float) -> Clause | None:
    """The condition that tells suspects best among the rows that are left; None where none does clearly."""
    scored = [(_ratio(suspect, c.holds & left, left), c) for c in conditions]
    ratio, best = max(scored, key=lambda pair: pair[0], default=(0.0, None))
    return best if ratio > least else None


def _ratio(suspect: Mask, inside: Mask, left: Mask) -> float:
    """Twice the log-likelihood ratio of two shares of suspects against one; zero where there are fewer inside."""
    n, k = int(inside.sum()), int(np.sum(suspect & inside))
    total, found = int(left.sum()), int(np.sum(suspect & left))
    if n < FEWEST or n == total or k * total <= found * n:
        return 0.0
    return 2 * (_likelihood(k, n) + _likelihood(found - k, total - n) - _likelihood(found, total))


def _likelihood(k: int, n: int) -> float:
    return sum(part * math.log(part / n) for part in (k, n - k) if part)


def _conditions(cells: pd.DataFrame) -> Iterator[Clause]:
    """Values that are frequent, ends of numbers, gaps."""
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
        except TypeError:  # lists and other cells that cannot be compared
            continue
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        for code in np.argsort(-counts, kind="stable")[:LEVELS]:
            if counts[code] >= FEWEST:
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
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# --------------------------------------------------------------------------------------- what speaks against a row


def columns_against(model: Any, X: pd.DataFrame, rows: Any, confident: Any) -> list[list[str]]:
    """The columns that speak against the given label or value of some rows, the strongest first.

    One column after the other is given the middle value of confident rows with the same label (or a like value), and
    what the model then thinks of the given one is compared with what it thought before. For a linear model these are
    its terms; any other is asked in the same way.

    Parameters
    ----------
    model : estimator
        A fitted self-paced classifier or regressor.
    X : pandas.DataFrame
        What it was fitted on. Columns ``city=Oslo``, ``city=Rome`` and ``city is missing`` belong to ``city``.
    rows : array-like of int
        Positions of the rows to explain.
    confident : array-like of int
        Positions of rows that speak for their label or value.

    Returns
    -------
    list of list of str
        For every row, at most three names; none where nothing speaks against it.
    """
    rows, confident = np.asarray(rows, dtype=np.intp), np.asarray(confident, dtype=np.intp)
    if not rows.size or not confident.size:
        return [[] for _ in rows]
    table = X.to_numpy()
    usual = _usual(model, table, rows, confident)
    agree = _agreement(model, X, rows)
    before = agree(table[rows])
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(X.columns):
        groups.setdefault(str(name).partition("=")[0].removesuffix(" is missing"), []).append(place)
    gains = np.empty((rows.size, len(groups)))
    for number, places in enumerate(groups.values()):
        changed = table[rows].copy()
        changed[:, places] = usual[:, places]
        gains[:, number] = agree(changed) - before
    names = np.array(list(groups), dtype=object)
    out = []
    for gain in gains:
        order = np.argsort(-gain, kind="stable")[:NAMED]
        most = np.maximum(gain, 0).sum()
        out.append([str(names[j]) for j in order if gain[j] > LEAST_SHARE * most > 0])
    return out


def _usual(model: Any, table: Any, rows: Any, confident: Any) -> Any:
    """For every row, the middle of confident rows that have its label, or a value like its own."""
    given = np.asarray(model.judgement_.opinion.given)
    usual = np.empty((rows.size, table.shape[1]), dtype=table.dtype)
    if model.judgement_.kind == "labels":
        for label in np.unique(given[rows]):
            like = confident[given[confident] == label]
            middle = np.nanmedian(table[like if like.size else confident], axis=0)
            usual[given[rows] == label] = middle
        return usual
    order = confident[np.argsort(given[confident], kind="stable")]
    place = np.searchsorted(given[order], given[rows])
    for number, at in enumerate(np.clip(place - LIKE // 2, 0, max(order.size - LIKE, 0))):
        usual[number] = np.nanmedian(table[order[at : at + LIKE]], axis=0)
    return usual


def _agreement(model: Any, X: pd.DataFrame, rows: Any) -> Any:
    """How well the model agrees with the given label or value of the rows, as a function of their features."""
    given = np.asarray(model.judgement_.opinion.given)[rows]

    def frame(table: Any) -> Any:
        return X.iloc[rows].__class__(table, columns=X.columns)

    if model.judgement_.kind == "values":
        return lambda table: -np.abs(np.asarray(model.predict(frame(table)), dtype=float) - given)
    codes = np.searchsorted(model.classes_, given)

    def logit(table: Any) -> Any:
        own = model.predict_proba(frame(table))[np.arange(rows.size), codes]
        own = np.clip(own, 1e-9, 1 - 1e-9)  # no logarithm of zero
        return np.log(own) - np.log1p(-own)

    return logit
