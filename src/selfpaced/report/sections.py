"""What the page says about matrices, clusterings, networks and audits; and which section belongs to an object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..assessment import Assessment, AssessmentMixin, AuditedLabels, TrainedNetwork
from ..formatting import count, number, percent, plural
from ..inspection import suspect_table
from .data import Fact, Grid
from .supervised import AssessedSection, Floats, LabelSection, Section, ValueSection
from .tables import as_columns, key_of

BLOCKS = 50  # display: blocks per side of the picture of a matrix
#: What is drawn of an epoch, and under which title.
EPOCH = {
    "agreement": "accuracy on the given labels",
    "rate": "rate of wrong labels",
    "lower": "lower",
    "upper": "upper",
    "trusted": "trusted share",
    "lam": "pace λ",
}


class MatrixSection(AssessedSection):
    """A factorized matrix."""

    kind = "factorization"
    noun = "entries"
    score_name = "minus the noise scale"

    def sentence(self) -> str:
        weights, shape = self.weights, self.assessment.places.shape  # type: ignore[union-attr]
        size = f"{count(shape[0])} × {count(shape[1])} matrix"
        fitted = f"{self.name} fitted {plural(weights.size, 'observed entry')} of a {size} by rank {self.model.rank_}"
        return f"{fitted}; {_below_half(weights)} end with less than half weight."

    def facts(self) -> list[Fact]:
        return [
            Fact("observed entries", count(self.weights.size)),
            Fact("rank", str(self.model.rank_)),
            Fact("noise scale", number(float(self.model.scale_))),
            self.pace(),
        ]

    def suspects(self, X: Any, y: Any) -> dict[str, Any]:  # noqa: ARG002
        return dict(as_columns(self.model.outliers_))

    @property
    def grid(self) -> Grid:
        return grid_of(self.assessment)


class ClusterSection(AssessedSection):
    """A clustering."""

    kind = "clustering"
    score_name = "minus the latent objective"

    @property
    def per_view(self) -> Floats:
        """Weights, one column per view."""
        return np.asarray(self.assessment.weight, dtype=np.float64)

    @property
    def weights(self) -> Floats:
        return np.asarray(self.per_view.mean(axis=1))

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(np.unique(self.model.labels_))

    def sentence(self) -> str:
        n, v = self.per_view.shape
        outliers = int(self.model.outliers_.sum())
        seen = f", seen in {plural(v, 'view')}," if v > 1 else ""
        marked = "no sample" if outliers == 0 else plural(outliers, "sample")
        clusters = plural(self.n_clusters, "cluster")
        return f"{self.name} grouped {plural(n, 'sample')}{seen} into {clusters} and marked {marked} as outlying."

    def facts(self) -> list[Fact]:
        return [
            Fact("samples", count(len(self.per_view))),
            Fact("clusters", count(self.n_clusters)),
            Fact("outliers", count(int(self.model.outliers_.sum()))),
            *self._views(),
            self.pace(),
        ]

    def _views(self) -> list[Fact]:
        """The mean weight of every view."""
        names = [key_of(name) for name in self.model.view_names_]
        weights = zip(names, self.model.view_weight_, strict=True)
        return [Fact(name, percent(float(weight)), "mean weight") for name, weight in weights] * (len(names) > 1)

    def suspects(self, X: Any, y: Any) -> dict[str, Any]:  # noqa: ARG002
        weights, total = self.weights, np.asarray(self.assessment.losses, dtype=np.float64).mean(axis=1)
        order = np.lexsort((-total, weights))
        out: dict[str, Any] = {"row": order, "cluster": self.model.labels_[order], "weight": weights[order]}
        if self.per_view.shape[1] > 1:
            for j, name in enumerate(self.model.view_names_):
                out[f"{key_of(name)} weight"] = self.per_view[order, j]
        out["loss"] = total[order]
        out["outlier"] = np.where(self.model.outliers_[order], "yes", "no")
        return out


class NetworkSection(Section):
    """A trained network: its epochs, and the rows it was trained on."""

    kind = "network"
    model: TrainedNetwork
    bands = {"rate of wrong labels": ("lower", "upper")}

    def __init__(self, model: TrainedNetwork) -> None:
        super().__init__(model)
        self.termination, self.pictures = model.termination, model.pictures
        self.recorded = [
            {"epoch": one["epoch"], "phase": one["phase"], **{title: one[key] for key, title in EPOCH.items()}}
            for one in model.epochs
        ] or None

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def last(self) -> Mapping[str, Any]:
        """The record of the last epoch."""
        return self.model.epochs[-1] if self.model.epochs else {"phase": "plain"}

    @property
    def weights(self) -> Floats:
        return np.asarray(self.model.assessment.weight, dtype=np.float64)

    def sentence(self) -> str:
        phases = [epoch["phase"] for epoch in self.model.epochs]
        samples = plural(self.weights.size, "sample")
        head = f"{self.name} was trained for {plural(len(phases), 'epoch')} on {samples}"
        if self.last["phase"] != "paced":
            return f"{head}; all samples have full weight."
        low = _below_half(self.weights)
        return f"{head}, paced from epoch {phases.index('paced') + 1} on; {low} end with less than half weight."

    def facts(self) -> list[Fact]:
        last = self.last
        out = [Fact("samples", count(self.weights.size)), Fact("epochs", count(len(self.model.epochs)))]
        if math.isfinite(last.get("rate", math.nan)):
            note = f"{percent(last['lower'])} to {percent(last['upper'])}"
            out.append(Fact("estimated label-error rate", percent(last["rate"]), note))
        if math.isfinite(last.get("trusted", math.nan)):
            out.append(Fact("trusted", percent(last["trusted"])))
        return [*out, Fact("pace", f"λ = {number(last['lam'])}" if last["phase"] == "paced" else str(last["phase"]))]

    def suspects(self, X: Any, y: Any) -> dict[str, Any]:  # noqa: ARG002
        table = dict(as_columns(suspect_table(self.model.assessment, all_rows=True)))
        if self.model.names is not None:
            table["row"] = self.model.names[np.asarray(table["row"])]
        for key in ("label_quality", "probability_if_noisy"):
            table.pop(key, None)
        return table


class AuditSection(Section):
    """An audit of labels."""

    model: AuditedLabels

    def __init__(self, model: AuditedLabels) -> None:
        super().__init__(model)
        self.assessment: Assessment | None = model.assessment
        self.kind = "audit" if model.assessment is None else "classification"
        self.noun, self.pictures = "labels", model.pictures

    @property
    def name(self) -> str:
        return self.model.name

    def sentence(self) -> str:
        return self.model.sentence

    def conclusion(self) -> str:
        return self.model.headline

    def facts(self) -> list[Fact]:
        return [Fact(*fact) for fact in self.model.facts]

    def suspects(self, X: Any, y: Any) -> dict[str, Any]:  # noqa: ARG002
        return {name: values for name, values in self.model.table.items() if name != "label_quality"}


#: What an assessment is about -> its section.
SECTIONS: dict[str, type[AssessedSection]] = {
    "labels": LabelSection,
    "values": ValueSection,
    "entries": MatrixSection,
    "samples": ClusterSection,
}


def section_of(model: Any) -> Section:
    """Return what the page says about a fitted object."""
    if isinstance(model, AssessmentMixin):
        return SECTIONS[model.assessment_.kind](model)
    if isinstance(model, TrainedNetwork):
        return NetworkSection(model)
    if hasattr(model, "audited"):
        model = model.audited()
    if isinstance(model, AuditedLabels):
        return AuditSection(model)
    raise TypeError(
        f"report needs a fitted estimator, an audit or a reviewed network of selfpaced; got {type(model).__name__}"
    )


def grid_of(assessment: Assessment, blocks: int = BLOCKS) -> Grid:
    """Return at most ``blocks`` x ``blocks`` cells with the mean weight and mean absolute residual in each."""
    places = assessment.places
    assert places is not None
    n, m = places.shape
    high, wide = min(n, blocks), min(m, blocks)
    block = (places.rows.astype(np.int64) * high // n) * wide + places.columns.astype(np.int64) * wide // m
    seen = np.bincount(block, minlength=high * wide)
    return Grid(
        row_starts=tuple(int(-(-i * n // high)) for i in range(high)),
        column_starts=tuple(int(-(-j * m // wide)) for j in range(wide)),
        residual=_means(block, np.abs(assessment.diagnosis.support), seen, (high, wide)),
        weight=_means(block, assessment.weight, seen, (high, wide)),
        shape=places.shape,
    )


def _means(block: Any, values: Floats, seen: Any, shape: tuple[int, int]) -> tuple[tuple[float | None, ...], ...]:
    totals = np.bincount(block, weights=values, minlength=seen.size)
    means = [None if k == 0 else float(f"{total / k:.4g}") for total, k in zip(totals, seen, strict=True)]
    return tuple(tuple(means[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0]))


def _below_half(weights: Floats) -> str:
    low = int((weights < 0.5).sum())
    return "none" if low == 0 else f"{count(low)} ({percent(low / weights.size)})"
