"""What is particular to each kind of fitted object: its weights, its sentence, its suspects, its comparison.

A story reads the model's assessment and path; which one tells it follows from what the assessment is about.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..assessment import AssessmentMixin, AuditedLabels, TrainedNetwork
from ..inspection import assessment_of, suspect_table
from ..path import Candidate, end_in_words, probability_of_labels, weight_histogram
from ..solver import Solution
from .audits import OfAudit
from .data import Comparison, Fact, Grid, ViewWeights
from .matrix import grid_of
from .networks import OfNetwork, Recorded
from .rows import FIRST
from .story import Floats, Story
from .tables import as_columns, key_of
from .words import count, number, percent, plural, share


class Walked(Story):
    """A path of the core, without an estimator."""

    kind = "solution"
    unit = "stage"
    model: Solution[Any]

    def __init__(self, model: Solution[Any]) -> None:
        super().__init__(model)
        self.recorded, self.termination = model.stages, model.status

    @property
    def weights(self) -> Floats:
        weights = np.asarray(self.model.weights, dtype=np.float64).ravel()
        largest = float(weights.max(initial=0.0))
        return weights / largest if largest > 0 else weights

    def sentence(self) -> str:
        low = int((self.weights < 0.5).sum())
        return (
            f"The alternation went through {plural(len(self.model.stages), 'stage')} over "
            f"{plural(self.weights.size, 'sample')}; {count(low)} ended with less than half the largest weight."
        )

    def counts(self) -> list[Fact]:
        return [Fact("samples", count(self.weights.size))]

    def suspects(self, X: Any, y: Any) -> dict[str, Any] | None:  # noqa: ARG002
        return by_weight(self.weights, np.asarray(self.model.losses, dtype=np.float64).ravel(), y)


class Assessed(Story):
    """Anything that this library has fitted."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.assessment = model.assessment_
        self.path = tuple(model.path_)
        self.termination = end_in_words(str(model.termination_), self.path, self.noun)

    @property
    def weights(self) -> Floats:
        return np.asarray(self.assessment.weight, dtype=np.float64)

    @property
    def by_rule(self) -> str:
        """The rule that made the weights, as a part of a sentence."""
        rule = getattr(self.assessment.rule, "name", None)
        return f" by the {rule} rule" if rule else ""

    def pace(self) -> list[Fact]:
        lam, weights = float(self.model.lam_), self.weights
        if math.isinf(lam) or not weights.size:
            return [Fact("pace", "plain")]
        trusted = percent(float(weights.mean())).replace(" ", "\N{NO-BREAK SPACE}")
        return [Fact("pace", f"trusts {trusted}", f"λ = {number(lam)}")]


class Supervised(Assessed):
    """Given labels or values."""

    assessed = "label"  # what may be wrong about a row

    def sentence(self) -> str:
        weights = self.weights
        head = f"{self.name} learned from {plural(weights.size, 'sample')}, easy ones first,"
        if math.isinf(float(self.model.lam_)):
            return f"{head} and kept the plain model: no self-paced candidate earned its place."
        low = int((weights < 0.5).sum())
        which = "none of them" if low == 0 else f"{count(low)} of them ({percent(low / weights.size)})"
        return f"{head} weighted{self.by_rule}: {which} ended with less than half the full weight."

    def counts(self) -> list[Fact]:
        features = getattr(self.model, "n_features_in_", None)  # a model of texts has none
        known = [] if features is None else [Fact("features", count(int(features)))]
        return [Fact("samples", count(self.weights.size)), *known]

    def noise(self) -> list[Fact]:
        """The estimated share of wrong labels or values."""
        low, high = self.model.noise_rate_interval_
        rate = float(self.model.noise_rate_)
        note = f"{percent(float(low))} to {percent(float(high))}"
        return [Fact("estimated noise rate", "unknown" if math.isnan(rate) else percent(rate), note)]

    def pace(self) -> list[Fact]:
        return [*self.noise(), *super().pace()]

    def suspects(self, X: Any, y: Any) -> dict[str, Any]:
        assessed = self.assessment if X is None or y is None else assessment_of(self.model, X, y)
        table = dict(as_columns(suspect_table(assessed)))
        table.pop("label_quality", None)  # one minus the probability beside it
        table.pop("probability_if_noisy", None)  # the order of the rows says it
        return {key: table[key] for key in FIRST} | table

    def verdict(self, found: int, look: int = 0) -> str:
        """What was found, in a sentence or two."""
        what, n = self.assessed, self.weights.size
        rate = share(float(self.model.noise_rate_), self.model.noise_rate_interval_)
        right, if_any = self.assessment.expected_precision(self.assessment.levels())
        likely = (
            f"{plural(found, 'likely error')} (about {percent(right)} of them wrong)" if found else "No likely errors"
        )
        rest = plural(look, "row") + " worth a look"
        if not math.isnan(if_any):
            rest += f" (about {percent(if_any)} of them wrong, if any {what}s are)"
        return f"{likely} and {rest} among {count(n)} rows. Wrong {what}s: {rate}."

    def aside(self, found: int) -> str:
        """Why rows are suspected though all of them have full weight."""
        if not found or not math.isinf(float(self.model.lam_)):
            return ""
        what = self.assessed
        return (
            f"The plain model was kept, with full weight for every row, because no other foretold held-out {what}s "
            "better: the wrong ones hardly spoil it. Which rows are wrong is another question. A row is a suspect "
            f"where its {what} is more probably wrong than right, whatever its weight."
        )

    def check_rows(self, X: Any, y: Any) -> None:
        n = self.weights.size
        for name, data in (("X", X), ("y", y)):
            rows = None if data is None else data.shape[0] if hasattr(data, "shape") else len(data)
            if rows is not None and rows != n:
                raise ValueError(f"{name} must be what the model was fitted on ({n} rows), got {rows} rows")


class OfLabels(Supervised):
    """A classifier."""

    kind = "classification"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        # by the likelihood of held-out labels, which is told as a probability, or by how many of them are right
        self.likelihood = all(candidate.score <= 0 for candidate in self.path if math.isfinite(candidate.score))
        self.score_name = "held-out labels foretold" if self.likelihood else "held-out labels right"

    def scored(self, candidate: Candidate) -> tuple[float, float]:
        found = super().scored(candidate)
        return probability_of_labels(*found) if self.likelihood else found

    def score_text(self, score: float, spread: float | None) -> str:
        return percent(score, 1) + ("" if spread is None else f" ± {percent(spread, 1)}")

    def comparison(self, X: Any, y: Any) -> list[Comparison]:
        if X is None or y is None or not hasattr(self.model, "plain_"):
            return []
        labels, weights = np.asarray(y), self.weights
        before, after = np.asarray(self.model.plain_.predict(X)), np.asarray(self.model.predict(X))
        if before.dtype.kind in "iu" and before.dtype.kind != labels.dtype.kind:
            before = np.asarray(self.model.classes_)[before]  # the plain model may know classes by number
        rows = [("all samples", np.ones(len(labels), bool)), ("trusted samples (weight ≥ ½)", weights >= 0.5)]
        rows.append(("distrusted samples (weight < ½)", weights < 0.5))
        plain, paced = np.asarray(before == labels), np.asarray(after == labels)
        out = [
            Comparison(
                f"Agrees with the given label: {name}",
                percent(float(np.mean(plain[mask])), 1),
                percent(float(np.mean(paced[mask])), 1),
                f"{count(int(mask.sum()))} samples",
            )
            for name, mask in rows
            if mask.any()
        ]
        changed = int(np.sum(before != after))
        note = f"the two models disagree on {percent(changed / len(labels))} of the samples"
        out.append(Comparison("Predictions changed", "–", count(changed), note))
        return out


class OfValues(Supervised):
    """A regressor."""

    kind = "regression"
    assessed = "value"
    score_name = "minus the robust loss"

    def noise(self) -> list[Fact]:
        """The estimated share of gross errors, and what the model only misfits."""
        facts, diagnosis = super().noise(), self.assessment.diagnosis
        if diagnosis.misfit_words:
            note = "explained otherwise: no errors"
            facts.append(Fact("values this model cannot explain", percent(float(diagnosis.misfit)), note))
        return facts

    def sentence(self) -> str:
        told, words = super().sentence(), self.assessment.diagnosis.misfit_words
        return f"{told} Its fit is poor: {words}." if words else told

    def comparison(self, X: Any, y: Any) -> list[Comparison]:
        if X is None or y is None:
            return []
        values = np.asarray(y, dtype=np.float64)
        before, after = (np.abs(values - np.asarray(m.predict(X))) for m in (self.model.plain_, self.model))
        plain, paced = (number(float(np.median(r))) for r in (before, after))
        out = [Comparison("Median absolute residual", plain, paced, "all samples; outliers hardly move it")]
        masks = (("all samples", np.ones(len(values), bool)), ("trusted samples (weight ≥ ½)", self.weights >= 0.5))
        for name, mask in masks:
            if mask.any():
                plain, paced = (number(float(np.sqrt(np.mean(r[mask] ** 2)))) for r in (before, after))
                note = "outliers dominate it" if name == "all samples" else f"{count(int(mask.sum()))} samples"
                out.append(Comparison(f"Root mean squared residual: {name}", plain, paced, note))
        return out


class OfEntries(Assessed):
    """A factorized matrix."""

    kind = "factorization"
    noun = "entries"
    score_name = "minus the noise scale"

    def sentence(self) -> str:
        weights, places = self.weights, self.assessment.places
        low = int((weights < 0.5).sum())
        size = f"{count(places.shape[0])} × {count(places.shape[1])} matrix"
        return (
            f"{self.name} explained {plural(weights.size, 'observed entry')} of a {size} by rank {self.model.rank_}; "
            f"{'none' if low == 0 else f'{count(low)} ({percent(low / weights.size)})'} ended with less than half "
            "the full weight."
        )

    def counts(self) -> list[Fact]:
        return [
            Fact("observed entries", count(self.weights.size)),
            Fact("rank", str(self.model.rank_)),
            Fact("noise scale", number(float(self.model.scale_))),
        ]

    def suspects(self, X: Any, y: Any) -> dict[str, Any]:  # noqa: ARG002
        return dict(as_columns(self.model.outliers_))

    @property
    def grid(self) -> Grid:
        return grid_of(self.assessment)


class OfSamples(Assessed):
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

    def sentence(self) -> str:
        n, v = self.per_view.shape
        outliers = int(self.model.outliers_.sum())
        seen = f", seen in {plural(v, 'view')}," if v > 1 else ""
        marked = "no sample" if outliers == 0 else plural(outliers, "sample")
        clusters = plural(len(np.unique(self.model.labels_)), "cluster")
        grouped = f"{self.name} grouped {plural(n, 'sample')}{seen} into {clusters}{self.by_rule}"
        return f"{grouped} and marked {marked} as outlying."

    def counts(self) -> list[Fact]:
        return [
            Fact("samples", count(len(self.per_view))),
            Fact("clusters", count(len(np.unique(self.model.labels_)))),
            Fact("outliers", count(int(self.model.outliers_.sum()))),
        ]

    @property
    def views(self) -> tuple[ViewWeights, ...]:
        names = [key_of(name) for name in self.model.view_names_]
        if len(names) == 1:
            return ()
        means = self.model.view_weight_
        return tuple(
            ViewWeights(name, round(float(means[j]), 4), _shares(self.per_view[:, j])) for j, name in enumerate(names)
        )

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


#: What an assessment is about -> who tells the story.
STORIES: dict[str, type[Assessed]] = {
    "labels": OfLabels,
    "values": OfValues,
    "entries": OfEntries,
    "samples": OfSamples,
}


def story_of(model: Any) -> Story:
    """The story of a fitted object."""
    if isinstance(model, AssessmentMixin):
        return STORIES[model.assessment_.kind](model)
    if isinstance(model, Solution):
        return Walked(model)
    if isinstance(model, TrainedNetwork):
        return OfNetwork(model)
    if isinstance(model, AuditedLabels):
        return OfAudit(model)
    for name in ("history_", "history"):  # training loops of others: skorch, Keras, one's own
        recorded = getattr(model, name, None)
        if recorded is not None and not callable(recorded):
            return Recorded(model, recorded)
    raise TypeError(
        "report needs a fitted estimator of selfpaced, a Solution, or an object with a history of epochs; got "
        f"{type(model).__name__}, which is none of them"
    )


def by_weight(weights: Floats, losses: Floats, y: Any) -> dict[str, Any]:
    """Rows by their weight, where nothing better is known."""
    order = np.lexsort((-losses, weights))
    out: dict[str, Any] = {"row": order}
    if y is not None:
        out["given"] = np.asarray(y)[order]
    return out | {"weight": weights[order], "loss": losses[order]}


def _shares(weights: Floats) -> tuple[float, ...]:
    counts = np.asarray(weight_histogram(weights), dtype=float)
    return tuple(round(float(c), 6) for c in counts / max(counts.sum(), 1.0))
