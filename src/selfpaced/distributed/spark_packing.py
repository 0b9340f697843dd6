"""What executors do: rows packed into binary blocks once, and functions of blocks in every pass.

A packed block is one row of a Spark frame. It is read back without being decoded, so that a pass moves bytes and no
rows. Everything here runs in Python on the executors, where this library has to be installed too.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .blocks import aligned, facts_of, joined
from .table import Block, ContentSample, Rows

Place = tuple[int, int]

PACKED = "part int, piece int, n long, without long, facts binary, X binary, y binary, weight binary"  # and ids
RESULT = "part int, result binary"


class Shape(NamedTuple):
    """How blocks are to be read."""

    n_features: int
    dtype: str
    classes: Any  # the labels, sorted; None where blocks hold values


# -------------------------------------------------------------------------------------------------------- packing


def pack(batches: Iterable[Any], labels: bool, least: int) -> Iterator[Any]:
    """Rows of a partition (features as a list, y, weight or null, id or nothing) as packed blocks.

    The features of a block have ``least`` bytes, and at most a batch more. Rows without a label are counted only.
    """
    from pyspark import TaskContext

    _freeze()
    part, piece, pending, without = TaskContext.get().partitionId(), 0, [], 0
    for batch in batches:
        if not batch.num_rows:
            continue
        pending.append(_unpacked(batch, labels))
        without += batch.num_rows - len(pending[-1][0].y)
        if sum(block.X.nbytes for block, _ in pending) >= least:
            yield _packed(part, piece, pending, labels, without)
            piece, pending, without = piece + 1, [], 0
    if pending:
        yield _packed(part, piece, pending, labels, without)


def _unpacked(batch: Any, labels: bool) -> tuple[Block, Any]:
    """A batch of rows as a block, and their ids."""
    features, n = batch.column(0), batch.num_rows
    if features.null_count:
        raise ValueError(f"features must not be null, got {features.null_count} nulls in a batch of {n} rows")
    lengths = np.diff(features.offsets.to_numpy())
    if np.any(lengths != lengths[0]):
        raise ValueError(f"features must have one length, got {sorted(set(lengths.tolist()))[:3]!r}")
    X = features.flatten().to_numpy(zero_copy_only=False).reshape(n, -1)
    y = batch.column(1).to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    weight = None if batch.column(2).null_count == n else batch.column(2).to_numpy(zero_copy_only=False)
    block, ids = Block(X, y, weight), batch.column(3) if batch.num_columns > 3 else None
    known = ~np.isnan(y)
    if not labels or known.all():
        return block, ids
    return block.rows(np.flatnonzero(known)), None if ids is None else ids.filter(pa.array(known))


def _packed(part: int, piece: int, pieces: list[tuple[Block, Any]], labels: bool, without: int) -> Any:
    block, ids = joined([own for own, _ in pieces]), [ids for _, ids in pieces]
    return _record(part, piece, block, None if ids[0] is None else pa.concat_arrays(ids), labels, without)


def _record(part: int, piece: int, block: Block, ids: Any, labels: bool, without: int = 0) -> Any:
    columns = {
        "part": pa.array([part], pa.int32()),
        "piece": pa.array([piece], pa.int32()),
        "n": pa.array([len(block.y)], pa.int64()),
        "without": pa.array([without], pa.int64()),
        "facts": pa.array([pickle.dumps(facts_of(block, labels))], pa.binary()),
        "X": pa.array([block.X.tobytes()], pa.binary()),
        "y": pa.array([block.y.tobytes()], pa.binary()),
        "weight": pa.array([None if block.weight is None else block.weight.tobytes()], pa.binary()),
    }
    if ids is not None:
        columns["ids"] = pa.ListArray.from_arrays(pa.array([0, len(ids)], pa.int32()), ids)
    return pa.RecordBatch.from_pydict(columns)


def gather(batches: Iterable[Any], shape: Shape, labels: bool, most: int) -> Iterator[Any]:
    """All packed blocks as few, of ``most`` bytes, in the order of the ids where there are some: of a small table."""
    found = [
        (_place(batch, i), _block(batch, i, shape._replace(classes=None)), _ids(batch, i))
        for batch, i in _cells(batches)
    ]
    if not found:
        return
    found.sort(key=lambda one: one[0])
    block, ids = joined([own for _, own, _ in found]), None
    if found[0][2] is not None:
        ids = pa.concat_arrays([own for _, _, own in found])
        order = pc.sort_indices(ids)
        block, ids = block.rows(order.to_numpy()), ids.take(order)
    step = max(1, most // max(1, block.X[:1].nbytes))
    for piece, first in enumerate(range(0, len(block.y), step)):
        rows = slice(first, first + step)
        yield _record(0, piece, block.rows(rows), None if ids is None else ids[rows], labels)


# ---------------------------------------------------------------------------------------------------------- passes


def run(batches: Iterable[Any], shape: Shape, function: Callable[..., Any], args: tuple[Any, ...]) -> Iterator[Any]:
    """The sum, over the blocks of a partition, of ``function(block, *args)``."""
    total, part = None, 0
    for batch, i in _cells(batches):
        result, part = function(_block(batch, i, shape), *args), _place(batch, i)[0]
        total = result if total is None else total + result
    yield from _answer(part, total)


def merge(batches: Iterable[Any], step: int) -> Iterator[Any]:
    """The sums of neighbouring partitions as one, ``step`` of them together, in their order."""
    found: dict[int, list[tuple[int, Any]]] = {}
    for batch in batches:
        for part, result in zip(batch.column("part").to_pylist(), batch.column("result").to_pylist(), strict=True):
            found.setdefault(part // step, []).append((part, result))
    for group, parts in found.items():
        yield from _answer(group, sum(pickle.loads(own) for _, own in sorted(parts)))


def pick(batches: Iterable[Any], shape: Shape, wanted: dict[Place, Rows]) -> Iterator[Any]:
    """Some rows of each block, with the ids of these rows where there are some."""
    found, part = [], 0
    for batch, i in _cells(batches):
        place = _place(batch, i)
        if place in wanted:
            ids, part = _ids(batch, i), place[0]
            own = None if ids is None else ids.take(pa.array(wanted[place])).to_numpy(zero_copy_only=False)
            found.append((place, _block(batch, i, shape).rows(wanted[place]), own))
    yield from _answer(part, found or None)


def as_lists(values: Any) -> Any:
    """Lines of a table as an Arrow column of lists."""
    n, d = values.shape
    return pa.ListArray.from_arrays(
        pa.array(d * np.arange(n + 1), pa.int32()), pa.array(np.ascontiguousarray(values).ravel())
    )


def _answer(part: int, result: Any) -> Iterator[Any]:
    if isinstance(result, ContentSample):
        result = result.settled()  # no larger than it has to be
    if result is not None:
        yield pa.RecordBatch.from_pydict(
            {"part": pa.array([part], pa.int32()), "result": pa.array([pickle.dumps(result)], pa.binary())}
        )


def _cells(batches: Iterable[Any]) -> Iterator[tuple[Any, int]]:
    _freeze()
    for batch in batches:
        for i in range(batch.num_rows):
            if batch.column("n")[i].as_py():  # rows without a label may be all that a partition has
                yield batch, i


@cache
def _freeze() -> None:
    """Take what is loaded out of the collection of garbage, once in a worker: Spark's workers collect after every task,
    and to look through all modules each time takes a hundred times as long as a small task.
    """
    gc.freeze()


def _place(batch: Any, i: int) -> Place:
    return batch.column("part")[i].as_py(), batch.column("piece")[i].as_py()


def _block(batch: Any, i: int, shape: Shape) -> Block:
    X = aligned(np.frombuffer(batch.column("X")[i].as_buffer(), dtype=shape.dtype)).reshape(-1, shape.n_features)
    given = aligned(np.frombuffer(batch.column("y")[i].as_buffer()))
    weight = batch.column("weight")[i]
    own = aligned(np.frombuffer(weight.as_buffer())) if weight.is_valid else None
    return Block(X, given if shape.classes is None else np.searchsorted(shape.classes, given).astype(np.intp), own)


def _ids(batch: Any, i: int) -> Any:
    return batch.column("ids")[i].values if "ids" in batch.schema.names else None
