"""What the page says about any fitted object, and about models of labels and values in particular."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..assessment import Assessment
from ..formatting import count, number, percent, plural
from ..inspection import Findings, assessment_of, suspect_table
from ..selection import end_in_words
from .data import Fact, Grid
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
    recorded: Any = None  # numbers per epoch
    bands: Mapping[str, tuple[str, str]] = {}  # recorded numbers with the names of their lower and upper ends
    pictures: Sequence[Any] = ()  # of the first rows of the table
    scale: Any = None  # a fitted transformer, if the model predicts the target on another scale
    listed: Mapping[str, Any] = {}  # the table of rows, all of them

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

    def conclusion(self) -> str:
        """What was found; empty for objects that do not assess rows."""
        return ""

    def facts(self) -> list[Fact]:
        """Figures to read at a glance."""
        return []

    def suspects(self, X: Any, y: Any) -> dict[str, Any] | None:  # noqa: ARG002
        """The rows to check, most suspicious first; None if there is nothing to rank."""
        return None

    @property
    def grid(self) -> Grid | None:
        """A matrix in blocks."""
        return None

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
        return f"{self._fitted()} {self.findings.accuracy()}".strip()

    def _fitted(self) -> str:
        fitted, rule = f"{self.name} was fitted to {plural(self.weights.size, 'row')}", self.assessment.rule
        if math.isinf(float(self.model.lam_)):
            return f"{fitted}."  # how the fit ended says why it is the plain one
        if rule is None:
            return f"{fitted} with soft labels: a row counts for each class by its probability."
        low = int((self.weights < 0.5).sum())
        half = f"{count(low)} ({percent(low / max(self.weights.size, 1))}) have" if low else "no row has"
        return f"{fitted}, weighted by the {getattr(rule, 'name', '') or 'chosen'} rule; {half} less than half weight."

    def conclusion(self) -> str:
        """What was found, and how far it is proven."""
        return f"{self.findings.lists()} {self.findings.rate()}"

    @cached_property
    def findings(self) -> Findings:
        """The figures of the fit."""
        return Findings.of(self.model, self.listed, in_unit=self.in_unit)

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


class ValueSection(SupervisedSection):
    """A regressor."""

    kind = "regression"
    assessed = "value"
