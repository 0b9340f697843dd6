"""Trainings: whatever kept numbers once per epoch, and networks whose rows were assessed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..assessment import TrainedNetwork
from ..inspection import suspect_table
from .data import Fact
from .story import Floats, Story
from .tables import as_columns
from .words import count, number, percent, plural

#: What is drawn of an epoch, and under which title.
_EPOCH = {
    "agreement": "accuracy on the given labels",
    "rate": "rate of wrong labels",
    "lower": "lower",
    "upper": "upper",
    "trusted": "trusted share",
    "lam": "pace λ",
}


class Recorded(Story):
    """Numbers that a training loop has kept, once per epoch."""

    kind = "history"
    bands = {"rate": ("lower", "upper")}

    def __init__(self, model: Any, recorded: Any) -> None:
        super().__init__(model)
        self.recorded = recorded

    def sentence(self) -> str:
        return f"{self.name} recorded the numbers below, once per epoch."


class OfNetwork(Story):
    """A network: its epochs, and the rows it was trained on."""

    kind = "network"
    model: TrainedNetwork
    bands = {"rate of wrong labels": ("lower", "upper")}

    def __init__(self, model: TrainedNetwork) -> None:
        super().__init__(model)
        self.termination, self.pictures = model.termination, model.pictures
        self.recorded = [
            {"epoch": one["epoch"], "phase": one["phase"], **{title: one[key] for key, title in _EPOCH.items()}}
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
        n, phases = self.weights.size, [epoch["phase"] for epoch in self.model.epochs]
        head = f"{self.name} was trained for {plural(len(phases), 'epoch')} on {plural(n, 'sample')}"
        if self.last["phase"] != "paced":
            return f"{head}, all with full weight in the end: none was held back."
        low, start = int((self.weights < 0.5).sum()), phases.index("paced") + 1
        which = "none" if low == 0 else f"{count(low)} of them ({percent(low / n)})"
        return f"{head}, paced from epoch {start} on: {which} ended with less than half the full weight."

    def counts(self) -> list[Fact]:
        return [Fact("samples", count(self.weights.size)), Fact("epochs", count(len(self.model.epochs)))]

    def pace(self) -> list[Fact]:
        out, last = [], self.last
        if math.isfinite(last.get("rate", math.nan)):
            note = f"{percent(last['lower'])} to {percent(last['upper'])}"
            out.append(Fact("estimated noise rate", percent(last["rate"]), note))
        if math.isfinite(last.get("trusted", math.nan)):
            out.append(Fact("trusted", percent(last["trusted"])))
        return [*out, Fact("pace", f"λ = {number(last['lam'])}" if last["phase"] == "paced" else str(last["phase"]))]

    def suspects(self, X: Any, y: Any) -> dict[str, Any]:  # noqa: ARG002
        table = dict(as_columns(suspect_table(self.model.assessment, all_rows=True)))
        if self.model.names is not None:
            table["row"] = self.model.names[np.asarray(table["row"])]
        table.pop("label_quality", None)  # one minus the probability beside it
        return table
