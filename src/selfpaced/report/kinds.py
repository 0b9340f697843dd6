"""What is particular to each kind of fitted object: its weights, its sentence, its suspects, its comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import Comparison, Fact, Grid, View
from .matrix import entries_of, grid_of, observed_values
from .tables import as_columns, key_of
from .words import count, number, percent, plural

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Facts:
    """The particular part of a summary; ``weights`` has one entry per sample (or matrix entry)."""

    kind: str
    noun: str
    sentence: str
    weights: Floats | None = None
    score_name: str = "selection score"
    counts: tuple[Fact, ...] = ()
    grid: Grid | None = None
    views: tuple[View, ...] = ()


def facts_of(model: Any, kind: str, X: Any) -> Facts:
    """Everything that depends on the kind alone."""
    if kind == "factorization":
        return _factorization(model, X)
    if kind == "clustering":
        return _clustering(model)
    if kind == "history":
        return Facts(kind, "samples", f"{type(model).__name__} recorded the numbers below, once per epoch.")
    if kind == "solution":
        return _solution(model)
    return _supervised(model, kind)


def _supervised(model: Any, kind: str) -> Facts:
    weights = np.asarray(model.sample_weight_, dtype=np.float64)
    n = weights.shape[0]
    features = getattr(model, "n_features_in_", None)
    counts = [Fact("samples", count(n))]
    if features is not None:
        counts.append(Fact("features", count(int(features))))
    rule = _rule(model)
    by = f" by the {rule} rule" if rule else ""
    head = f"{type(model).__name__} learned from {plural(n, 'sample')}, easy ones first,"
    if math.isinf(float(getattr(model, "lam_", 0.0))):
        sentence = f"{head} and kept the plain model: no self-paced candidate earned its place."
    else:
        low = int((weights < 0.5).sum())
        which = "none of them" if low == 0 else f"{count(low)} of them ({percent(low / n)})"
        sentence = f"{head} weighted{by}: {which} ended with less than half the full weight."
    return Facts(kind, "samples", sentence, weights, counts=tuple(counts))


def _clustering(model: Any) -> Facts:
    per_view = np.asarray(model.sample_weight_, dtype=np.float64)
    per_view = per_view[:, None] if per_view.ndim == 1 else per_view
    n, v = per_view.shape
    names = [key_of(name) for name in getattr(model, "view_names_", range(v))]
    clusters = len(np.unique(model.labels_))
    means = np.asarray(getattr(model, "view_weight_", per_view.mean(axis=0)), dtype=np.float64)
    views = tuple(
        View(name, round(float(means[j]), 4), _shares(per_view[:, j])) for j, name in enumerate(names) if v > 1
    )
    outliers = int(np.asarray(getattr(model, "outliers_", np.zeros(0, bool))).sum())
    seen = f", seen in {plural(v, 'view')}," if v > 1 else ""
    marked = "no sample" if outliers == 0 else plural(outliers, "sample")
    rule = _rule(model)
    sentence = (
        f"{type(model).__name__} grouped {plural(n, 'sample')}{seen} into {plural(clusters, 'cluster')}"
        f"{f' by the {rule} rule' if rule else ''} and marked {marked} as outlying."
    )
    counts = (Fact("samples", count(n)), Fact("clusters", count(clusters)), Fact("outliers", count(outliers)))
    return Facts(
        "clustering", "samples", sentence, per_view.mean(axis=1), "minus the latent objective", counts, views=views
    )


def _factorization(model: Any, X: Any) -> Facts:
    entries = entries_of(model, X)
    weights = observed_values(model.entry_weight_) if entries is None else entries.weight
    low = int((weights < 0.5).sum())
    shape = entries.shape if entries is not None else getattr(model.entry_weight_, "shape", None)
    size = f"a {count(shape[0])} × {count(shape[1])} matrix" if shape is not None and len(shape) == 2 else "a matrix"
    rank = getattr(model, "rank_", None)
    ranked = "" if rank is None else f" by rank {rank}"
    sentence = (
        f"{type(model).__name__} explained {plural(weights.size, 'observed entry')} of {size}{ranked}; "
        f"{'none' if low == 0 else f'{count(low)} ({percent(low / weights.size)})'} ended with less than half the "
        "full weight."
    )
    counts = [Fact("observed entries", count(weights.size))]
    if rank is not None:
        counts.append(Fact("rank", str(rank)))
    if isinstance(getattr(model, "scale_", None), float | np.floating):
        counts.append(Fact("noise scale", number(float(model.scale_))))
    grid = None if entries is None else grid_of(entries)
    return Facts("factorization", "entries", sentence, weights, "minus the noise scale", tuple(counts), grid)


def _solution(model: Any) -> Facts:
    weights = np.asarray(model.weights, dtype=np.float64).ravel()
    largest = weights.max(initial=0.0)
    relative = weights / largest if largest > 0 else weights
    low = int((relative < 0.5).sum())
    sentence = (
        f"The alternation went through {plural(len(model.stages), 'stage')} over {plural(weights.size, 'sample')}; "
        f"{count(low)} ended with less than half the largest weight."
    )
    return Facts("solution", "samples", sentence, relative, counts=(Fact("samples", count(weights.size)),))


def _shares(weights: Floats) -> tuple[float, ...]:
    from ..path import weight_histogram

    counts = np.asarray(weight_histogram(weights), dtype=float)
    return tuple(round(float(c), 6) for c in counts / max(counts.sum(), 1.0))


def _rule(model: Any) -> str:
    rule = getattr(model, "regularizer", None)
    return rule if isinstance(rule, str) else str(getattr(rule, "name", "") or "")


# ------------------------------------------------------------------------------------------------ suspects


def suspects_of(facts: Facts, model: Any, fitted: Any, X: Any, y: Any) -> Any:
    """The table of suspects, most suspicious first; None where there is nothing to rank."""
    if facts.kind == "history" or facts.weights is None:
        return None
    if facts.kind == "factorization":
        return as_columns(model.outliers_) if hasattr(model, "outliers_") else None
    if facts.kind == "clustering":
        return _clustered(model, facts.weights)
    if facts.kind in ("classification", "regression") and X is not None and y is not None:
        from ..inspection import suspects

        table = dict(as_columns(suspects(fitted, X, y)))
        table.pop("label_quality", None)  # one minus the probability beside it
        return table
    return _by_weight(facts.weights, getattr(model, "sample_loss_", getattr(model, "losses", None)), y)


def _by_weight(weights: Floats, losses: Any, y: Any) -> dict[str, Any]:
    loss = None if losses is None else np.asarray(losses, dtype=np.float64).ravel()
    order = np.argsort(weights, kind="stable") if loss is None else np.lexsort((-loss, weights))
    out: dict[str, Any] = {"row": order}
    if y is not None:
        out["given"] = np.asarray(y)[order]
    out["weight"] = weights[order]
    if loss is not None:
        out["loss"] = loss[order]
    return out


def _clustered(model: Any, weights: Floats) -> dict[str, Any]:
    loss = np.asarray(model.sample_loss_, dtype=np.float64)
    total = loss if loss.ndim == 1 else loss.mean(axis=1)
    order = np.lexsort((-total, weights))
    out: dict[str, Any] = {"row": order, "cluster": np.asarray(model.labels_)[order], "weight": weights[order]}
    per_view = np.asarray(model.sample_weight_)
    if per_view.ndim == 2 and per_view.shape[1] > 1:
        for j, name in enumerate(getattr(model, "view_names_", range(per_view.shape[1]))):
            out[f"{key_of(name)} weight"] = per_view[order, j]
    out["loss"] = total[order]
    if hasattr(model, "outliers_"):
        out["outlier"] = np.where(np.asarray(model.outliers_)[order], "yes", "no")
    return out


# ---------------------------------------------------------------------------------------------- comparison


def comparison_of(facts: Facts, model: Any, X: Any, y: Any) -> list[Comparison]:
    """Plain against self-paced on the data as given: predictions, and how they meet the labels or values."""
    plain = getattr(model, "plain_", None)
    if facts.kind == "factorization" and hasattr(plain, "sample_loss_"):
        return _matrix_residuals(plain, model)
    if X is None or y is None or facts.weights is None or not hasattr(plain, "predict"):
        return []
    if facts.kind == "classification":
        return _labels_met(plain, model, X, np.asarray(y), facts.weights)
    if facts.kind == "regression":
        return _residuals(plain, model, X, np.asarray(y, dtype=np.float64), facts.weights)
    return []


def _labels_met(plain: Any, model: Any, X: Any, y: Any, weights: Floats) -> list[Comparison]:
    before, after = np.asarray(plain.predict(X)), np.asarray(model.predict(X))
    if before.dtype.kind in "iu" and before.dtype.kind != y.dtype.kind and hasattr(model, "classes_"):
        before = np.asarray(model.classes_)[before]  # the plain model may know classes by number
    rows = [("all samples", np.ones(len(y), bool)), ("trusted samples (weight ≥ ½)", weights >= 0.5)]
    rows.append(("distrusted samples (weight < ½)", weights < 0.5))
    out = [
        Comparison(
            f"Agrees with the given label: {name}",
            percent(float(np.mean(before[mask] == y[mask])), 1),
            percent(float(np.mean(after[mask] == y[mask])), 1),
            f"{count(int(mask.sum()))} samples",
        )
        for name, mask in rows
        if mask.any()
    ]
    changed = int(np.sum(before != after))
    note = f"the two models disagree on {percent(changed / len(y))} of the samples"
    out.append(Comparison("Predictions changed", "–", count(changed), note))
    return out


def _residuals(plain: Any, model: Any, X: Any, y: Floats, weights: Floats) -> list[Comparison]:
    before, after = (np.abs(y - np.asarray(m.predict(X))) for m in (plain, model))
    trusted = weights >= 0.5
    out = [
        Comparison(
            "Median absolute residual",
            number(float(np.median(before))),
            number(float(np.median(after))),
            "all samples; outliers hardly move it",
        )
    ]
    for name, mask in (("all samples", np.ones(len(y), bool)), ("trusted samples (weight ≥ ½)", trusted)):
        if mask.any():
            values = [number(float(np.sqrt(np.mean(r[mask] ** 2)))) for r in (before, after)]
            note = "outliers dominate it" if name == "all samples" else f"{count(int(mask.sum()))} samples"
            out.append(Comparison(f"Root mean squared residual: {name}", *values, note))
    return out


def _matrix_residuals(plain: Any, model: Any) -> list[Comparison]:
    before, after = (observed_values(m.sample_loss_) for m in (plain, model))
    halves = [number(float(np.median(values))) for values in (before, after)]
    tails = [number(float(np.quantile(values, 0.99))) for values in (before, after)]
    return [
        Comparison("Median absolute residual", *halves, "observed entries; outliers hardly move it"),
        Comparison("99th percentile of absolute residuals", *tails, "gross errors that were left unexplained"),
    ]
