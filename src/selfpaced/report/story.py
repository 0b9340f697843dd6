"""What a page says of anything; the kinds in `stories` and `networks` add what they know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..path import Candidate
from .data import Comparison, Fact, Grid, ViewWeights
from .words import number

Floats = NDArray[np.float64]


class Story:
    """What a page says of anything; the kinds below add what they know."""

    kind = ""
    noun = "samples"
    score_name = "selection score"
    termination = ""
    path: tuple[Any, ...] = ()
    recorded: Any = None  # numbers per epoch or stage
    unit = "epoch"
    bands: Mapping[str, tuple[str, str]] = {}  # recorded numbers with the names of their lower and upper ends
    pictures: Sequence[Any] = ()  # of the first suspects

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def name(self) -> str:
        """What the model calls itself."""
        return type(self.model).__name__

    @property
    def weights(self) -> Floats | None:
        """Relative weights, one per sample or entry."""
        return None

    def scored(self, candidate: Candidate) -> tuple[float, float]:
        """The score by which a candidate was compared, and its standard error."""
        return float(candidate.score), float(candidate.spread)

    def score_text(self, score: float, spread: float | None) -> str:
        """A score as it is read."""
        return number(score, 4) + ("" if spread is None else f" ± {number(spread, 2)}")

    def sentence(self) -> str:
        """What happened, in one sentence."""
        raise NotImplementedError

    def verdict(self, found: int, look: int = 0) -> str:  # noqa: ARG002
        """What was found, where rows are suspected; the page begins with it."""
        return ""

    def aside(self, found: int) -> str:  # noqa: ARG002
        """What would puzzle a reader otherwise."""
        return ""

    def counts(self) -> list[Fact]:
        """The first figures of the headline."""
        return []

    def pace(self) -> list[Fact]:
        """The pace, as a figure of the headline."""
        return []

    def suspects(self, X: Any, y: Any) -> dict[str, Any] | None:  # noqa: ARG002
        """The table of suspects, most suspicious first; None where there is nothing to rank."""
        return None

    def comparison(self, X: Any, y: Any) -> list[Comparison]:  # noqa: ARG002
        """Plain against self-paced on the data as given."""
        return []

    @property
    def grid(self) -> Grid | None:
        """A matrix from afar."""
        return None

    @property
    def views(self) -> tuple[ViewWeights, ...]:
        """The weights of every view."""
        return ()

    def check_rows(self, X: Any, y: Any) -> None:
        """Refuse data of another length than the model was fitted on."""
