"""Audit labels from anybody's held-out probabilities: one label per row, several, or several annotators."""

from __future__ import annotations

from ._annotators import AnnotatorAudit, audit_annotators
from ._blocks import BlockAudit
from ._entry import audit_labels
from ._labels import LabelAudit
from ._multilabel import MultiLabelAudit

__all__ = ["AnnotatorAudit", "BlockAudit", "LabelAudit", "MultiLabelAudit", "audit_annotators", "audit_labels"]
