"""Figures with Matplotlib: Display classes in scikit-learn's manner, and one function for each.

A Display holds plain data; ``plot`` draws it and leaves the axes in ``ax_`` and the figure in ``figure_``.

>>> from selfpaced.plot import RegularizersDisplay
>>> display = RegularizersDisplay.from_regularizers(["welsch", "huber", "hard"])
>>> sorted(display.curves)
['hard', 'huber', 'welsch']
"""

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


class PathDisplay:
    """The candidates of a path: selection score with its spread, and mean weight, over the pace.

    Parameters
    ----------
    path : sequence of Candidate
        ``path_`` of a fitted estimator.

    Attributes
    ----------
    ax_, weight_ax_ : Axes
        Of the score (None if no candidate has one) and of the mean weight.
    figure_ : Figure
    """

    def __init__(self, path: Sequence[Candidate]) -> None:
        if not path:
            raise ValueError("path must hold at least one candidate, got none")
        # the plain model is where an opening path leads to: show it last
        self.path = tuple(sorted(path, key=lambda candidate: math.isinf(candidate.lam)))

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line: Any) -> PathDisplay:
        """Draw the path of a fitted estimator, or of a Pipeline or search that ends in one."""
        return cls(_fitted(estimator).path_).plot(ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> PathDisplay:
        """Draw into ``ax``, or into a new figure; further keywords are for the line of the score."""
        ax = _axes(ax)
        x = np.arange(len(self.path))
        scores = np.array([candidate.score for candidate in self.path], dtype=float)
        spread = np.array([candidate.spread for candidate in self.path], dtype=float)
        weights = np.array([candidate.mean_weight for candidate in self.path], dtype=float)
        scored = bool(np.isfinite(scores).any())
        self.ax_, self.figure_ = ax if scored else None, ax.figure
        self.weight_ax_ = ax.twinx() if scored else ax
        if scored:
            bars = np.where(np.isfinite(spread), spread, 0.0)
            ax.errorbar(x, scores, yerr=bars, **({"marker": "o", "color": "C0", "capsize": 3} | line))
            ax.set_ylabel("selection score", color="C0")
        self.weight_ax_.plot(x, weights, "s--", color="C1", markersize=4)
        self.weight_ax_.set(ylim=(0, 1.05), ylabel="mean weight")
        if scored:
            self.weight_ax_.yaxis.label.set_color("C1")
            self.weight_ax_.grid(False)
        for index, candidate in enumerate(self.path):
            if candidate.chosen:
                ax.axvline(index, color="0.5", linewidth=8, alpha=0.2, zorder=0)
        step = max(1, math.ceil(len(x) / 10))
        ticks = [*x[:-1:step], x[-1]] if len(x) > 1 else [0]
        ax.set_xticks(ticks, [_pace(self.path[i]) for i in ticks])
        ax.set_xlabel("pace λ (shaded: chosen)")
        return self


def _pace(candidate: Candidate) -> str:
    return "plain" if math.isinf(candidate.lam) else f"{candidate.lam:.3g}"


class WeightsDisplay:
    """Histogram of relative weights, stacked by group where groups are given.

    Parameters
    ----------
    weights : array-like
        Relative weights in [0, 1]; NaN (an entry that was not observed) is left out.
    groups : array-like of the same length, optional
        For example the given labels.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    """

    def __init__(self, weights: ArrayLike, groups: Any = None) -> None:
        values = np.asarray(weights, dtype=np.float64).ravel()
        seen = ~np.isnan(values)
        self.weights = values[seen]
        self.groups = None if groups is None else np.asarray(groups)
        if self.groups is not None:
            if len(self.groups) != len(values):
                raise ValueError(f"groups must have one entry per weight ({len(values)}), got {len(self.groups)}")
            self.groups = self.groups[seen]

    @classmethod
    def from_estimator(cls, estimator: Any, y: Any = None, *, ax: Any = None, **bars: Any) -> WeightsDisplay:
        """Draw the weights of a fitted estimator; ``y`` stacks them by given label.

        A clustering is drawn per view, a factorization over its observed entries.
        """
        inner = _fitted(estimator)
        weights, groups = np.asarray(inner.assessment_.weight, dtype=np.float64), y
        if inner.assessment_.kind == "samples":
            names = [str(name) for name in inner.view_names_]  # type: ignore[attr-defined]
            groups = np.tile(np.array(names), len(weights)) if len(names) > 1 else None
        return cls(weights, groups).plot(ax, **bars)

    def plot(self, ax: Any = None, *, bins: int = 20, **bars: Any) -> WeightsDisplay:
        """Draw into ``ax``, or into a new figure; further keywords are for ``Axes.hist``."""
        ax = _axes(ax)
        if self.groups is None:
            ax.hist(self.weights, bins=bins, range=(0, 1), **bars)
        else:
            names = list(dict.fromkeys(self.groups.tolist()))
            parts = [self.weights[self.groups == name] for name in names]
            ax.hist(parts, bins=bins, range=(0, 1), stacked=True, label=[str(name) for name in names], **bars)
            ax.legend()
        ax.set(xlim=(0, 1), xlabel="weight relative to the largest", ylabel="count")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class SuspectsDisplay:
    """The most suspicious samples or entries as horizontal bars, the worst on top.

    Parameters
    ----------
    names : sequence of str
    suspicion : array-like
        One number per name: the probability that the label is wrong, an absolute residual, a loss or one minus the
        weight.
    label : str
        What ``suspicion`` is.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    """

    def __init__(self, names: Sequence[str], suspicion: ArrayLike, label: str = "1 - weight") -> None:
        self.names, self.suspicion, self.label = list(names), np.asarray(suspicion, dtype=np.float64), label
        if len(self.names) != len(self.suspicion):
            raise ValueError(f"one name per suspicion is needed, got {len(self.names)} and {len(self.suspicion)}")

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, n: int = 20, ax: Any = None, **bars: Any
    ) -> SuspectsDisplay:
        """Draw the ``n`` worst of a fitted estimator, of new rows ``X`` and ``y`` where they are given."""
        from .report.summarise import summarise

        table = summarise(estimator, X, y, max_rows=n).suspects
        if table is None or not len(table):
            raise ValueError("there are no suspects to draw")
        columns = {column.key: column.values for column in table.columns}
        suspicion, label = _suspicion(columns)
        names = [_suspect(columns, i) for i in range(len(table))]
        return cls(names, suspicion, label).plot(ax, **bars)

    def plot(self, ax: Any = None, **bars: Any) -> SuspectsDisplay:
        """Draw into ``ax``, or into a new figure; further keywords are for ``Axes.barh``."""
        ax = _axes(ax, figsize=(6.4, 1 + 0.25 * len(self.names)))
        y = np.arange(len(self.names))
        ax.barh(y, self.suspicion, **bars)
        ax.set_yticks(y, self.names)
        ax.invert_yaxis()
        ax.set_xlabel(self.label)
        if self.suspicion.max(initial=0.0) <= 1:
            ax.set_xlim(0, 1)
        self.ax_, self.figure_ = ax, ax.figure
        return self


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


class RegularizersDisplay:
    """Weight, latent loss or dual of several rules in one picture.

    Parameters
    ----------
    x : array-like
        Losses, or weights where the dual is drawn.
    curves : mapping of name -> array-like
    quantity : {"weight", "latent", "dual"}

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    """

    _LABELS = {
        "weight": ("loss", "weight relative to the largest"),
        "latent": ("loss", "latent loss φ"),
        "dual": ("weight", "regularizer ψ"),
    }

    def __init__(self, x: ArrayLike, curves: Mapping[str, ArrayLike], quantity: str = "weight") -> None:
        if quantity not in self._LABELS:
            raise ValueError(f"quantity must be one of {', '.join(self._LABELS)}, got {quantity!r}")
        self.x, self.quantity = np.asarray(x, dtype=np.float64), quantity
        self.curves = {name: np.asarray(values, dtype=np.float64) for name, values in curves.items()}

    @classmethod
    def from_regularizers(
        cls,
        rules: Sequence[Any] | None = None,
        *,
        lam: float | None = None,
        quantity: str = "weight",
        x: ArrayLike | None = None,
    ) -> RegularizersDisplay:
        """The curves of these rules (names or instances; all elementwise ones by default).

        Parameters
        ----------
        lam : float, optional
            The pace; by default each rule's own at which a loss of 1 has half the full weight, so that they can be
            compared. Rules that have no such pace (losses beyond their range) are left out of the default set.
        x : array-like, optional
            Where to evaluate: losses from 0 to 4, or relative weights for the dual.
        """
        named = REGISTRY if rules is None else rules
        chosen = [rule for rule in map(get, named) if not isinstance(rule, GroupRegularizer)]
        if x is None:
            x = np.linspace(0, 4, 401) if quantity != "dual" else np.linspace(0.01, 1, 100)
        at = np.asarray(x, dtype=np.float64)
        curves = {}
        for rule in chosen:
            try:
                pace = lam_at(rule, 1.0) if lam is None else lam
                curves[rule.name] = _curve(rule, at, pace, quantity)
            except ValueError:
                if rules is not None:
                    raise
        return cls(at, curves, quantity)

    def plot(self, ax: Any = None, **line: Any) -> RegularizersDisplay:
        """Draw into ``ax``, or into a new figure; further keywords are for ``Axes.plot``."""
        ax = _axes(ax)
        styles = ["-", "--", ":", "-."]
        for index, (name, values) in enumerate(self.curves.items()):
            style = {"color": f"C{index % 10}", "linestyle": styles[(index // 5) % 4]} | line
            ax.plot(self.x, values, label=name, **style)
        xlabel, ylabel = self._LABELS[self.quantity]
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.legend(ncols=2 if len(self.curves) > 6 else 1, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _curve(rule: Any, x: Floats, lam: float, quantity: str) -> Floats:
    if quantity == "dual":
        return np.asarray(rule.dual(x * float(rule.max_weight(lam)), lam))
    values = rule.relative_weight(x, lam) if quantity == "weight" else rule.latent(x, lam)
    return np.asarray(values)


def path(estimator: Any, *, ax: Any = None, **line: Any) -> PathDisplay:
    """The path of a fitted estimator: see :class:`PathDisplay`."""
    return PathDisplay.from_estimator(estimator, ax=ax, **line)


def weights(estimator: Any, y: Any = None, *, ax: Any = None, **bars: Any) -> WeightsDisplay:
    """The weights of a fitted estimator: see :class:`WeightsDisplay`."""
    return WeightsDisplay.from_estimator(estimator, y, ax=ax, **bars)


def suspects(
    estimator: Any, X: Any = None, y: Any = None, *, n: int = 20, ax: Any = None, **bars: Any
) -> SuspectsDisplay:
    """The worst samples or entries of a fitted estimator: see :class:`SuspectsDisplay`."""
    return SuspectsDisplay.from_estimator(estimator, X, y, n=n, ax=ax, **bars)


def regularizers(
    rules: Sequence[Any] | None = None,
    *,
    lam: float | None = None,
    quantity: str = "weight",
    ax: Any = None,
    **line: Any,
) -> RegularizersDisplay:
    """The curves of the rules: see :class:`RegularizersDisplay`."""
    return RegularizersDisplay.from_regularizers(rules, lam=lam, quantity=quantity).plot(ax, **line)


__all__ = [
    "PathDisplay",
    "RegularizersDisplay",
    "SuspectsDisplay",
    "WeightsDisplay",
    "path",
    "regularizers",
    "suspects",
    "weights",
]
