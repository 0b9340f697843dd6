"""Figures with Matplotlib: each function draws into the given axes, or into a new figure, and returns the axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .assessment import AssessmentMixin
from .inspection import look_through
from .pacing import lam_at
from .regularizers import REGISTRY, GroupRegularizer, get
from .selection import Candidate

Floats = NDArray[np.float64]
_QUANTITIES = {
    "weight": ("loss", "weight relative to the largest"),
    "latent": ("loss", "latent loss φ"),
    "dual": ("weight", "regularizer ψ"),
}


def _axes(ax: Any, **figure: Any) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:  # pragma: no cover - depends on what is installed
        raise ImportError('plots need Matplotlib: pip install "selfpaced[plot]"') from error
    if ax is not None:
        return ax
    return plt.subplots(layout="constrained", **figure)[1]


def _fitted(estimator: Any) -> AssessmentMixin:
    """The library's own estimator inside a search or a Pipeline."""
    inner, _ = look_through(estimator)
    if not isinstance(inner, AssessmentMixin):
        raise TypeError(f"estimator must be a fitted estimator of selfpaced, got {type(inner).__name__}")
    check_is_fitted(inner)
    return inner


def path(estimator: Any, *, ax: Any = None, **line: Any) -> Any:
    """Draw the candidates of a path: selection score with its spread, and mean weight, over the pace.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator, or a Pipeline or search that ends in one.
    ax : Axes, optional
        Where to draw; a new figure by default.
    **line
        Options of the line of the score.

    Returns
    -------
    Axes
        Those of the score. The mean weight has axes of its own beside them; without any score it is drawn alone.
    """
    # the plain model is where an opening path leads to: show it last
    candidates = sorted(_fitted(estimator).path_, key=lambda candidate: math.isinf(candidate.lam))
    ax = weight_ax = _axes(ax)
    x = np.arange(len(candidates))
    scores = np.array([candidate.score for candidate in candidates], dtype=float)
    spread = np.array([candidate.spread for candidate in candidates], dtype=float)
    if np.isfinite(scores).any():
        bars = np.where(np.isfinite(spread), spread, 0.0)
        ax.errorbar(x, scores, yerr=bars, **({"marker": "o", "color": "C0", "capsize": 3} | line))
        ax.set_ylabel("selection score", color="C0")
        weight_ax = ax.twinx()
        weight_ax.yaxis.label.set_color("C1")
        weight_ax.grid(False)
    weight_ax.plot(x, [candidate.mean_weight for candidate in candidates], "s--", color="C1", markersize=4)
    weight_ax.set(ylim=(0, 1.05), ylabel="mean weight")
    for index, candidate in enumerate(candidates):
        if candidate.chosen:
            ax.axvline(index, color="0.5", linewidth=8, alpha=0.2, zorder=0)
    step = max(1, math.ceil(len(x) / 10))
    ticks = [*x[:-1:step], x[-1]] if len(x) > 1 else [0]
    ax.set_xticks(ticks, [_pace(candidates[i]) for i in ticks])
    ax.set_xlabel("pace λ (shaded: chosen)")
    return ax


def _pace(candidate: Candidate) -> str:
    return "plain" if math.isinf(candidate.lam) else f"{candidate.lam:.3g}"


def weights(estimator: Any, y: Any = None, *, ax: Any = None, **bars: Any) -> Any:
    """Draw a histogram of the weights; those of a clustering by view, those of a factorization of its observed entries.

    Parameters
    ----------
    estimator, ax
        As in `path`.
    y : array-like, optional
        The given labels, by which bars are stacked.
    **bars
        Options of ``Axes.hist``.

    Returns
    -------
    Axes
    """
    inner, ax = _fitted(estimator), _axes(ax)
    found, groups = np.asarray(inner.assessment_.weight, dtype=np.float64), None if y is None else np.asarray(y)
    if inner.assessment_.kind == "samples":
        names = np.array([str(name) for name in inner.view_names_])  # type: ignore[attr-defined]
        groups = np.tile(names, len(found)) if len(names) > 1 else None
    found = found.ravel()
    if groups is not None and len(groups) != len(found):
        raise ValueError(f"y must have one label per weight ({len(found)}), got {len(groups)}")
    options = {"bins": 20, "range": (0, 1)} | bars
    seen = ~np.isnan(found)  # an entry that was not observed has no weight
    if groups is None:
        ax.hist(found[seen], **options)
    else:
        labels = list(dict.fromkeys(groups[seen].tolist()))
        parts = [found[seen & (groups == label)] for label in labels]
        ax.hist(parts, stacked=True, label=[str(label) for label in labels], **options)
        ax.legend()
    ax.set(xlim=(0, 1), xlabel="weight relative to the largest", ylabel="count")
    return ax


def suspects(estimator: Any, X: Any = None, y: Any = None, *, n: int = 20, ax: Any = None, **bars: Any) -> Any:
    """Draw the most suspicious samples or entries as horizontal bars, the worst on top.

    Parameters
    ----------
    X, y : array-like, optional
        New rows to assess; those of the fit by default.
    n : int, default=20
        How many.
    estimator, ax
        As in `path`.
    **bars
        Options of ``Axes.barh``.

    Returns
    -------
    Axes
    """
    from .report.summarise import summarise

    table = summarise(estimator, X, y, max_rows=n).suspects
    if table is None or not len(table):
        raise ValueError("there are no suspects to draw")
    columns = {column.key: column.values for column in table.columns}
    suspicion, label = _suspicion(columns)
    places = np.arange(len(table))
    ax = _axes(ax, figsize=(6.4, 1 + 0.25 * len(table)))
    ax.barh(places, suspicion, **bars)
    ax.set_yticks(places, [_suspect(columns, i) for i in range(len(table))])
    ax.invert_yaxis()
    ax.set_xlabel(label)
    if suspicion.max(initial=0.0) <= 1:
        ax.set_xlim(0, 1)
    return ax


def _suspicion(columns: Mapping[str, Sequence[Any]]) -> tuple[Floats, str]:
    """The most telling number there is: weights of far outliers are all zero and tell them apart no more."""
    numbers = {key: np.array(values, dtype=float) for key, values in columns.items() if _numeric(values)}
    if "noise_probability" in numbers:
        return numbers["noise_probability"], "probability that the label is wrong"
    if "residual" in numbers:
        return np.abs(numbers["residual"]), "absolute residual"
    if "value" in numbers and "expected" in numbers:
        return np.abs(numbers["value"] - numbers["expected"]), "absolute residual"
    return (numbers["loss"], "loss") if "loss" in numbers else (1 - numbers["weight"], "1 - weight")


def _numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(value, float | int) for value in values)


def _suspect(columns: Mapping[str, Sequence[Any]], i: int) -> str:
    name = str(columns["row"][i])
    if "column" in columns:
        name += f", {columns['column'][i]}"
    given = columns.get("given", columns.get("value"))
    if given is not None:
        name += f": {_short(given[i])}"
        if "expected" in columns:
            name += f" → {_short(columns['expected'][i])}"
    return name


def _short(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else text[:23] + "…"


def regularizers(
    rules: Sequence[Any] | None = None,
    *,
    lam: float | None = None,
    quantity: str = "weight",
    x: ArrayLike | None = None,
    ax: Any = None,
    **line: Any,
) -> Any:
    """Draw the curves of several rules (names or instances; all elementwise ones by default).

    Parameters
    ----------
    rules : sequence of Regularizer or str, optional
        The rules.
    lam : float, optional
        The pace; by default each rule's own at which a loss of 1 has half the full weight, so that they can be
        compared. Rules that have no such pace (losses beyond their range) are left out of the default set.
    quantity : {"weight", "latent", "dual"}
        What to draw.
    x : array-like, optional
        Where to evaluate: losses from 0 to 4, or relative weights for the dual.
    ax
        As in `path`.
    **line
        Options of ``Axes.plot``.

    Returns
    -------
    Axes
    """
    if quantity not in _QUANTITIES:
        raise ValueError(f"quantity must be one of {', '.join(_QUANTITIES)}, got {quantity!r}")
    if x is None:
        x = np.linspace(0, 4, 401) if quantity != "dual" else np.linspace(0.01, 1, 100)
    at, curves = np.asarray(x, dtype=np.float64), dict[str, Floats]()
    for rule in map(get, REGISTRY if rules is None else rules):
        if isinstance(rule, GroupRegularizer):
            continue
        try:
            curves[rule.name] = _curve(rule, at, lam_at(rule, 1.0) if lam is None else lam, quantity)
        except ValueError:
            if rules is not None:
                raise
    ax, styles = _axes(ax), ["-", "--", ":", "-."]
    for index, (name, values) in enumerate(curves.items()):
        style = {"color": f"C{index % 10}", "linestyle": styles[(index // 5) % 4]} | line
        ax.plot(at, values, label=name, **style)
    ax.set(**dict(zip(("xlabel", "ylabel"), _QUANTITIES[quantity], strict=True)))
    ax.legend(ncols=2 if len(curves) > 6 else 1, fontsize="small")
    return ax


def _curve(rule: Any, x: Floats, lam: float, quantity: str) -> Floats:
    if quantity == "dual":
        return np.asarray(rule.dual(x * float(rule.max_weight(lam)), lam))
    values = rule.relative_weight(x, lam) if quantity == "weight" else rule.latent(x, lam)
    return np.asarray(values)
