"""The rows of a fit: which of them decide, which stand for all, and the objective of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..engines import Block, ContentSample, MemoryTable, Table
from ..label_noise import NoiseChannel
from ..regularizers import Regularizer
from .blocks import TableObjective, agreement
from .descent import Geometry, Penalty
from .folds import FoldLayout, draw, fetch, lay_out, many
from .minimize import Metric
from .objective import Objective, Vector

# Of the folds, where rows are few: benchmarks/real_suspects.py.
DEALS = 8
DEALS_OF_WIDE = 3  # cost: where features are more than rows

# The same where suspects hang on them: cost.
MORE_DEALS = 64
MORE_ROWS, FEATURES = 16, 100  # times as many rows in all deals, of two classes and at most so many features


@dataclass(frozen=True, eq=False)
class LogisticSettings:
    """The estimator's parameters that a fit needs."""

    regularizer: Regularizer
    pace: Any
    penalty: Penalty
    choose_penalty: bool
    fit_intercept: bool
    tol: float
    max_iter: int
    n_jobs: int | None
    random_state: np.random.RandomState

    @property
    def automatic(self) -> bool:
        """Whether the pace is chosen."""
        return isinstance(self.pace, str) and self.pace == "auto"


@dataclass(frozen=True, eq=False)
class Evidence:
    """A table with what is asked of it before and during a fit, each worked out once.

    Attributes
    ----------
    table : Table
        The rows, labels as codes.
    n_classes : int
        Number of classes.
    settings : LogisticSettings
        The estimator's parameters.
    again : bool
        Whether rows are dealt into folds more often, because too much hung on how they were.
    """

    table: Table
    n_classes: int
    settings: LogisticSettings
    again: bool = field(default=False, kw_only=True)

    @cached_property
    def options(self) -> dict[str, Any]:
        """What every objective has in common."""
        return {"ridge": self.settings.penalty.ridge, "fit_intercept": self.settings.fit_intercept}

    @cached_property
    def sample(self) -> ContentSample:
        """The rows that may decide."""
        return draw(self.table, self.n_classes, int(self.settings.random_state.randint(1 << 31)))

    @cached_property
    def sampled(self) -> bool:
        """Whether only a sample of the rows decides."""
        return many(self.sample)

    @cached_property
    def objective(self) -> Objective | TableObjective:
        """The plain objective of all rows."""
        if isinstance(self.table, MemoryTable) and not self.sampled:
            return self.in_memory
        return TableObjective(self.table, self.n_classes, self.settings.penalty.total, **self.options)

    @property
    def in_memory(self) -> Objective:
        """The same of a table in memory, whose rows can be asked one by one."""
        assert isinstance(self.table, MemoryTable)
        X, codes, weight = self.table.block
        return Objective([X], codes, self.n_classes, sample_weight=weight, **self.options)

    @cached_property
    def layout(self) -> FoldLayout | None:
        """The rows that decide; None where there are too few."""
        wide = self.table.n_features >= self.sample.n_distinct
        deals, rows = DEALS_OF_WIDE if wide else DEALS, 1
        if self.again and not wide:
            deals = MORE_DEALS
            rows = MORE_ROWS * FEATURES // (max(self.table.n_features, FEATURES) * (self.n_classes - 1))
        return lay_out(self.table, self.sample, self.n_classes, deals if self.settings.automatic else 1, rows)

    @cached_property
    def geometry(self) -> Geometry:
        """The geometry of the rows that decide."""
        if isinstance(self.objective, Objective):
            return Geometry(self.objective)
        return Geometry(self.thinned if self.layout is None else self.layout.everything(**self.options))

    @property
    def evidence(self) -> Objective:
        """Rows that stand for all where losses are looked at one by one: all of them, or those that decide."""
        return self.geometry.rows

    @cached_property
    def thinned(self) -> Objective:
        """The plain objective of the whole sample: full fits of many rows begin near its minimum."""
        sample = self.sample
        if isinstance(self.table, MemoryTable) and len(sample.rows) == self.table.n:
            return self.in_memory
        X = fetch(self.table, sample.rows).X
        return Objective([X], sample.codes, self.n_classes, sample_weight=sample.sample_weight, **self.options)

    def agreement(self, params: Vector, channel: NoiseChannel) -> Any:
        """What `blocks.agreement` sums up of all rows or, of many, of the sample: shares are all that is asked."""
        if not self.sampled:
            return self.table.reduce(agreement, params, channel, self.n_classes)
        thin = self.thinned
        return agreement(Block(thin.parts[0], thin.codes, thin.sample_weight), params, channel, self.n_classes)

    @property
    def metric(self) -> Metric:
        """The geometry of paced fits."""
        return self.geometry.metric(self.settings.penalty.ridge)


__all__ = ["Evidence", "LogisticSettings"]
