"""Audit labels whose probabilities come in blocks: on a Dask cluster, in Arrow batches, or in files.

What needs all rows is a sum over blocks. The label-noise model is fitted to a sample of rows by content if there
are many rows, here as in memory.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..assessment import Assessment
from ..distributed.scratch import assessed_blocks, spool, suspect_frame
from ..distributed.table import Block, MappedTable, Rows, Sums, drawn, from_dask
from ..fitting import is_dask, is_source
from ..inspection import issue_table, lists_in_words
from ._inputs import SUM_ROUNDING, AuditInput, class_order, codes_among, warn_in_sample
from ._labels import LabelAudit, paragraphs
from ._noise import FittedNoise, fit_noise, logits_of

Array = NDArray[Any]

AUDITED_ROWS = 100_000  # cost: rows above which a sample is fitted; a rate of 10 % is then known to 0.1 points


def in_blocks(labels: Any, pred_probs: Any) -> bool:
    """Whether rows come in blocks, and not all at once."""
    if is_dask(labels) and not is_dask(pred_probs):
        raise TypeError(f"pred_probs must be a Dask collection as labels are, got {type(pred_probs).__name__}")
    return is_dask(pred_probs) or is_source(pred_probs) or _is_arrow(pred_probs)


def _is_arrow(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pyarrow" and hasattr(X, "schema")


def _table(labels: Any, pred_probs: Any, sample_weight: Any) -> Any:
    """Probabilities, labels and weights as a table of blocks."""
    if is_dask(pred_probs):
        return from_dask(pred_probs, labels, sample_weight, labels=True)
    if hasattr(pred_probs, "append_column"):  # an Arrow table: labels and weights may be arrays beside it
        import pyarrow as pa

        if not isinstance(labels, str):
            pred_probs = pred_probs.append_column("__labels__", pa.array(labels, from_pandas=True))
            labels = "__labels__"
        if sample_weight is not None and not isinstance(sample_weight, str):
            pred_probs = pred_probs.append_column("__weight__", pa.array(sample_weight, pa.float64()))
            sample_weight = "__weight__"
        pred_probs = iter(pred_probs.to_batches())
    for name, value in (("labels", labels), ("sample_weight", sample_weight)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must name a column if pred_probs come in batches, got {type(value).__name__}")
    return spool(pred_probs, labels, weight=sample_weight)


# ------------------------------------------------------------------------------------------------ sums over blocks


def _normalised(block: Block, places: Rows) -> Block:
    """Probabilities that sum to one, with a column for every class."""
    X = _two_columns(block.X)
    sums = X.sum(axis=1, keepdims=True)
    return Block(X / np.where(sums > 0, sums, 1.0), places[block.y], block.weight)


def _two_columns(X: Any) -> Array:
    X = np.asarray(X, dtype=np.float64)
    return np.asarray(np.minimum(np.column_stack([1.0 - X, X]) if X.shape[1] == 1 else X, 1.0))


class ProbabilityFacts(NamedTuple):
    """What must be known of all probabilities before a fit; the facts of blocks add up."""

    n: int  # rows
    least: float  # the smallest positive probability
    zero: bool  # whether any probability is 0
    certain: bool  # whether every row has a label of probability 1
    expected: float  # labels that contradict the probabilities: as these expect ...
    found: int  # ... and as there are
    faulty: int | None  # the first row whose entries are no probabilities

    @classmethod
    def of(cls, block: Block, places: Rows) -> ProbabilityFacts:
        """Of one block; rows of no weight are not asked."""
        n, own = len(block.y), np.arange(len(block.y)) if block.weight is None else np.flatnonzero(block.weight)
        kept = block.rows(own)
        raw = np.asarray(kept.X, dtype=np.float64)
        off = np.abs(_two_columns(raw).sum(axis=1) - 1.0) > SUM_ROUNDING
        bad = np.flatnonzero(off | np.any((raw < 0) | (raw > 1 + SUM_ROUNDING), axis=1))
        if bad.size:
            return cls(n, math.inf, False, False, 0.0, 0, int(own[bad[0]]))
        X, codes, _ = _normalised(kept, places)
        top, wrong = X.max(axis=1), int(np.sum(X.argmax(axis=1) != codes))
        least, zero = float(X[X > 0].min(initial=math.inf)), bool((X == 0).any())
        return cls(n, least, zero, bool(np.all(top == 1.0)), float(np.sum(1.0 - top)), wrong, None)

    def __add__(self, other: Any) -> ProbabilityFacts:
        later = None if other.faulty is None else self.n + other.faulty
        return ProbabilityFacts(
            self.n + other.n,
            min(self.least, other.least),
            self.zero or other.zero,
            self.certain and other.certain,
            self.expected + other.expected,
            self.found + other.found,
            later if self.faulty is None else self.faulty,
        )

    def __radd__(self, other: Any) -> ProbabilityFacts:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum(parts) works


def fit_rows(table: Any, logits: Callable[[Block, Rows], Array]) -> tuple[FittedNoise, Block, Rows]:
    """Fit the label-noise model to all rows of a table or, if they are many, to a sample of them by content.

    ``logits`` takes rows and their numbers to logits. Returns the model, the rows it was fitted to, and their numbers.
    """
    sampled = table.n > AUDITED_ROWS
    if sampled:
        sample = drawn(table, 0, AUDITED_ROWS, len(table.mass))
        order, weight = np.argsort(sample.rows), sample.sample_weight
        numbers = sample.rows[order]
        block = table.take(numbers)._replace(weight=None if weight is None else weight[order])
    else:
        block, numbers = table.take(np.arange(table.n)), np.arange(table.n)
    return fit_noise(logits(block, numbers), block.y, block.weight, counts=sampled), block, numbers


# ----------------------------------------------------------------------------------------------------- the audit


@dataclass(frozen=True, eq=False)
class BlockAssessor:
    """Assesses the rows of a block as they lie in the table."""

    classes: Array
    noise: FittedNoise
    places: Rows
    least: float

    def _assess(self, X: Any, y: Any) -> Assessment:
        return self.of(_normalised(Block(X, y), self.places))

    def of(self, block: Block) -> Assessment:
        """The assessment of rows of probabilities that sum to one."""
        noise = replace(self.noise, logits=logits_of(block.X, self.least), codes=block.y)
        return noise.assessment(self.classes, None)

    def totals(self, block: Block) -> Sums:
        """Rows of each level, expected errors in the lists, and weights of the clean labels."""
        found = self.of(block)
        levels, weight = found.levels(), np.ones(len(block.y)) if block.weight is None else block.weight
        wrong, evidence = float(found.wrong[levels == 2].sum()), float(found.evidence[levels == 1].sum())
        clean = self.noise.model.proba(logits_of(block.X, self.least))
        return Sums((np.bincount(levels, minlength=3), wrong, evidence, weight @ clean, float(weight.sum())))


@dataclass(frozen=True, eq=False, repr=False)
class BlockAudit(LabelAudit):
    """The result of `audit_labels` for probabilities that come in blocks.

    It has the attributes and methods of `LabelAudit`. The rate, its interval and the transition matrix are fitted to
    all rows or, above 100,000 of them, to a sample by content; ``clean_share``, ``level_counts`` and the levels of rows
    are those of all rows. ``assessment``, ``calibrated_probs`` and the report show the rows that were fitted.
    """

    table: Any = None
    assessor: Any = None
    totals: Any = None
    numbers: Any = None

    @property
    def n_labelled(self) -> int:
        return int(self.level_counts.sum())

    @property
    def n_unlabelled(self) -> int:
        return int(self.table.n_unlabelled)

    @property
    def level_counts(self) -> Array:
        return np.asarray(self.totals[0])

    @property
    def clean_share(self) -> Array:
        return np.asarray(self.totals[3] / self.totals[4])

    def suspects(self, n: int | None = None, *, all_rows: bool = False) -> Any:
        """Return the rows to check, in the order of the rows.

        Parameters
        ----------
        n : None
            The table that is returned can be sorted and cut.
        all_rows : bool, default=False
            Return all labelled rows instead of the two levels.

        Returns
        -------
        dask DataFrame or pyarrow.RecordBatchReader
            Lazily, block by block, with the columns of `LabelAudit.suspects`.
        """
        if n is not None:
            raise ValueError(f"n must be None if probabilities come in blocks, got {n!r}: sort and cut the table")
        return self._listed(partial(suspect_frame, all_rows=all_rows))

    def label_issues(self) -> Any:
        """Return every labelled row in row order, with cleanlab's column names and ``row``.

        Returns
        -------
        dask DataFrame or pyarrow.RecordBatchReader
            As `LabelAudit.label_issues`, lazily. Rows without a label are left out.
        """
        return self._listed(_issues)

    def _listed(self, listing: Callable[[Assessment], Any]) -> Any:
        if hasattr(self.table, "parts"):
            from ..distributed.dask_results import table_frame

            return table_frame(self.assessor, self.table, listing)
        return _reader(map(listing, assessed_blocks(self.assessor, self.table)))

    def _lists(self) -> str:
        (_, look, likely), wrong, evidence = self.totals[:3]
        right, if_any = (wrong / likely if likely else math.nan), (evidence / look if look else math.nan)
        return lists_in_words(int(likely), int(look), self.n_labelled, right, if_any)

    def _repr_html_(self) -> str:
        """The summary, for a notebook."""
        return paragraphs(self.summary())


def _issues(assessed: Assessment) -> Any:
    found = issue_table(assessed)
    found.insert(0, "row", assessed.numbers)
    return found


def _reader(frames: Iterator[Any]) -> Any:
    import pyarrow as pa

    first = pa.Table.from_pandas(next(frames), preserve_index=False)

    def batches() -> Iterator[Any]:
        yield from first.to_batches()
        for frame in frames:
            yield from pa.Table.from_pandas(frame, first.schema, preserve_index=False).to_batches()

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def audit_blocks(labels: Any, pred_probs: Any, classes: Any, sample_weight: Any) -> BlockAudit:
    """What `audit_labels` returns for Dask collections, Arrow tables, batches and files: three passes over the rows."""
    raw = _table(labels, pred_probs, sample_weight)
    width = max(raw.n_features, 2)
    order = class_order(raw.classes, width, classes, raw.names)
    places = codes_among(raw.classes, order)
    facts: ProbabilityFacts = raw.reduce(ProbabilityFacts.of, places)
    if facts.faulty is not None:
        row = np.array([facts.faulty])
        what = f"{np.round(raw.take(row).X[0], 4).tolist()!r} in row {raw.numbers(row)[0]}"
        raise ValueError(f"the rows of pred_probs must be probabilities that sum to 1, got {what}")
    least = facts.least if facts.zero else math.inf
    rows = MappedTable(raw, np.bincount(places, raw.mass, minlength=width), _normalised, places)
    noise, block, numbers = fit_rows(rows, lambda own, _: logits_of(own.X, least))
    numbers = raw.numbers(numbers)
    lean = replace(noise, logits=noise.logits[:0], codes=noise.codes[:0])
    assessor = BlockAssessor(order, lean, places, least)
    totals = rows.reduce(assessor.totals)
    in_sample = warn_in_sample(facts.expected, facts.found, int(totals[0].sum()), facts.certain, stacklevel=4)
    given = AuditInput(order, block.X, np.arange(len(block.y)), block.y)
    audit = BlockAudit(
        noise, given, sample_weight=block.weight, in_sample=in_sample, table=raw, assessor=assessor, totals=totals,
        numbers=numbers,
    )  # fmt: skip
    if hasattr(raw, "close"):
        weakref.finalize(audit, raw.close)
    return audit
