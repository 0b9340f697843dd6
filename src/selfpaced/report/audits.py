"""Labels that were audited from somebody's probabilities: no fit, no path, no weights."""

from __future__ import annotations

from typing import Any

from ..assessment import Assessment, AuditedLabels
from .data import Fact
from .story import Story


class OfAudit(Story):
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

    def verdict(self, found: int, look: int = 0) -> str:  # noqa: ARG002
        return self.model.headline

    def counts(self) -> list[Fact]:
        return [Fact(*fact) for fact in self.model.facts]

    def suspects(self, X: Any, y: Any) -> dict[str, Any]:  # noqa: ARG002
        return {name: values for name, values in self.model.table.items() if name != "label_quality"}
