"""What the page says about any fitted object, and about models of labels and values in particular."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..assessment import Assessment
from ..formatting import count, number, percent, plural
from ..inspection import Findings, assessment_of, held_out_accuracy, suspect_table
from ..selection import end_in_words
from .data import Comparison, Fact, Grid, ViewWeights
from .tables import as_columns

Floats = NDArray[np.float64]

FIRST = ("row", "level", "given", "expected", "noise_probability")  # display: first columns of the table of rows


class Section:
    """What the page says about any fitted object; subclasses add what they know."""

    kind = ""
    noun = "samples"
    score_name = ""  # empty: scores are not shown
    termination = ""
    path: tuple[Any, ...] = ()
    recorded: Any = None  # numbers per epoch or stage
    unit = "epoch"
    bands: Mapping[str, tuple[str, str]] = {}  # recorded numbers with the names of their lower and upper ends
    pictures: Sequence[Any] = ()  # of the first rows of the table
    scale: Any = None  # a fitted transformer, if the model predicts the target on another scale

    def __init__(self, model: Any) -> None:
        self.model = model

    def in_unit(self, values: Floats) -> Floats:
        """Return values on the scale of the model in the unit of the target."""
        if self.scale is None:
            return values
        return np.asarray(self.scale.inverse_transform(np.reshape(values, (-1, 1))), dtype=np.float64).ravel()

    @property
    def name(self) -> str:
        """Name of the model."""
        return type(self.model).__name__

    @property
    def weights(self) -> Floats | None:
        """Relative weights, one per sample or entry."""
        return None

    def sentence(self) -> str:
        """What was fitted, in one sentence."""
        raise NotImplementedError

    def conclusion(self, listed: Mapping[str, Any]) -> str:  # noqa: ARG002
        """What was found; empty for objects that do not assess rows."""
        return ""

    def facts(self) -> list[Fact]:
        """Figures to read at a glance."""
        return []

    def suspects(self, X: Any, y: Any) -> dict[str, Any] | None:  # noqa: ARG002
        """The rows to check, most suspicious first; None if there is nothing to rank."""
        return None

    def comparison(self, X: Any, y: Any) -> list[Comparison]:  # noqa: ARG002
        """The plain model beside the self-paced one."""
        return []

    @property
    def grid(self) -> Grid | None:
        """A matrix in blocks."""
        return None

    @property
    def views(self) -> tuple[ViewWeights, ...]:
        """The weights of every view."""
        return ()

    def check_rows(self, X: Any, y: Any) -> None:
        """Refuse data of another length than the model was fitted on."""


class AssessedSection(Section):
    """An estimator of this library."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.assessment: Assessment = model.assessment_
        self.path = tuple(model.path_)
        self.termination = end_in_words(str(model.termination_), self.path, self.noun)

    @property
    def weights(self) -> Floats:
        return np.asarray(self.assessment.weight, dtype=np.float64)

    def pace(self) -> Fact:
        """The pace and what it means for the data."""
        lam = float(self.model.lam_)
        if math.isinf(lam) or not self.weights.size:
            return Fact("pace", "plain")
        chosen = next((one.mean_weight for one in self.path if one.chosen), math.nan)
        share = chosen if math.isfinite(chosen) else float(self.weights.mean())
        trusted = percent(share).replace(" ", "\N{NO-BREAK SPACE}")
        return Fact("mean weight", trusted, f"pace λ = {number(lam)}")


class SupervisedSection(AssessedSection):
    """A model of given labels or values."""

    noun = "rows"
    assessed = "label"

    def sentence(self) -> str:
        rows = plural(self.weights.size, "row")
        if math.isinf(float(self.model.lam_)):
            return f"{self.name} was fitted to {rows}."  # how the fit ended says why it is the plain one
        if self.assessment.rule is None:
            return f"{self.name} was fitted to {rows} with soft labels: a row counts for each class by its probability."
        rule = getattr(self.assessment.rule, "name", "") or "chosen"
        return f"{self.name} was fitted to {rows}, weighted by the {rule} rule; {self._low()} less than half weight."

    def _low(self) -> str:
        low = int((self.weights < 0.5).sum())
        return f"{count(low)} ({percent(low / max(self.weights.size, 1))}) have" if low else "no row has"

    def conclusion(self, listed: Mapping[str, Any]) -> str:
        """What was found, and how far it is proven."""
        found = self.findings(listed)
        return f"{found.lists()} {found.rate()}"

    def findings(self, listed: Mapping[str, Any]) -> Findings:
        """The figures of the fit."""
        return Findings.of(self.model, listed, in_unit=self.in_unit)

    def facts(self) -> list[Fact]:
        features = getattr(self.model, "n_features_in_", None)  # a model of texts has none
        low, high = self.model.noise_rate_interval_
        rate = float(self.model.noise_rate_)
        value = "unknown" if math.isnan(rate) else percent(rate)
        return [
            Fact("rows", count(self.weights.size)),
            *([] if features is None else [Fact("features", count(int(features)))]),
            Fact(f"estimated {self.assessed}-error rate", value, f"{percent(float(low))} to {percent(float(high))}"),
            self.pace(),
        ]

    def suspects(self, X: Any, y: Any) -> dict[str, Any]:
        assessed = self.assessment if X is None or y is None else assessment_of(self.model, X, y)
        table = dict(as_columns(suspect_table(assessed)))
        table.pop("label_quality", None)  # one minus the probability beside it
        return {key: table[key] for key in FIRST} | table

    def check_rows(self, X: Any, y: Any) -> None:
        n = self.weights.size
        for name, data in (("X", X), ("y", y)):
            rows = None if data is None else data.shape[0] if hasattr(data, "shape") else len(data)
            if rows is not None and rows != n:
                raise ValueError(f"{name} must be what the model was fitted on ({n} rows), got {rows} rows")


class LabelSection(SupervisedSection):
    """A classifier."""

    kind = "classification"
    score_name = "held-out log-likelihood"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        if any(one.score > 0 for one in self.path if math.isfinite(one.score)):
            self.score_name = "held-out accuracy"

    def comparison(self, X: Any, y: Any) -> list[Comparison]:
        out = []
        accuracy = held_out_accuracy(self.model)
        if accuracy["chosen"] is not None:
            plain = "–" if accuracy["plain"] is None else percent(accuracy["plain"], 1)
            note = "on the given labels, of which some may be wrong"
            out.append(Comparison("Held-out accuracy", plain, percent(accuracy["chosen"], 1), note))
        if X is None or y is None or not hasattr(self.model, "plain_"):
            return out
        before, after = np.asarray(self.model.plain_.predict(X)), np.asarray(self.model.predict(X))
        if before.dtype.kind in "iu" and before.dtype.kind != after.dtype.kind:
            before = np.asarray(self.model.classes_)[before]  # the plain model may know classes by number
        changed = int(np.sum(before != after))
        note = f"{percent(changed / len(after))} of the rows"
        return [*out, Comparison("Predictions that differ from the plain model", "–", count(changed), note)]


class ValueSection(SupervisedSection):
    """A regressor."""

    kind = "regression"
    assessed = "value"

    def facts(self) -> list[Fact]:
        facts, found = super().facts(), self.findings({})
        if self.assessment.held_out:  # else it is compared with that of the plain model
            facts.append(Fact("median error", number(found.typical_error or 0.0), "of the held-out rows"))
        if found.misfit is not None:
            facts.append(Fact("not explained by the model", percent(found.misfit), "not called errors"))
        return facts

    def comparison(self, X: Any, y: Any) -> list[Comparison]:
        # held-out errors of the plain model are not known
        if X is None or y is None or self.assessment.held_out or not hasattr(self.model, "plain_"):
            return []
        fitted = self.in_unit(np.asarray(self.model.plain_.predict(X)))
        plain = number(float(np.median(np.abs(np.asarray(y, dtype=np.float64) - fitted))))
        paced = number(self.findings({}).typical_error or 0.0)
        return [Comparison("Median error", plain, paced, "of the fitted rows, in the unit of the target")]
