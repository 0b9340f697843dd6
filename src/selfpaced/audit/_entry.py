"""The entry point: check the arguments, fit the label-noise model, and hand out the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, overload

from ..distributed.table import MemoryTable
from ..fitting import check_groups, check_weight
from ._blocks import audit_blocks, fit_rows, in_blocks
from ._inputs import AuditInput, check_in_sample, read_input, row_values, shown_cells
from ._labels import LabelAudit
from ._multilabel import MultiLabelAudit, read_indicators
from ._neighbours import find_neighbours
from ._noise import fit_columns, fit_noise, group_weights, logits_of, one_label_each, pooled


@overload
def audit_labels(
    labels: Any, pred_probs: Any, *, classes: Any = ..., groups: Any = ..., sample_weight: Any = ...,
    multi_label: Literal[False] = ..., cells: Any = ..., ids: Any = ..., features: Any = ...,
) -> LabelAudit: ...  # fmt: skip


@overload
def audit_labels(
    labels: Any, pred_probs: Any, *, classes: Any = ..., groups: Any = ..., sample_weight: Any = ...,
    multi_label: Literal[True], cells: Any = ..., ids: Any = ..., features: Any = ...,
) -> MultiLabelAudit: ...  # fmt: skip


def audit_labels(
    labels: Any,
    pred_probs: Any,
    *,
    classes: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    multi_label: bool = False,
    cells: Any = None,
    ids: Any = None,
    features: Any = None,
) -> LabelAudit | MultiLabelAudit:
    """Find wrong labels from any model's held-out probabilities.

    The label-noise model is that of `SelfPacedLogisticRegression`: the same probabilities give the same rate, interval
    and levels.

    Parameters
    ----------
    labels : array-like of shape (n,) or (n, n_labels)
        Given labels: numbers, booleans or text. Rows without one (None, NaN) take no part in the fit and are predicted.
        With ``multi_label`` an indicator matrix.
    pred_probs : array-like of shape (n, n_classes) or (n,)
        Probabilities of each label by a model that was not fitted on the row (out-of-fold, out-of-bag, or a model of
        other data). With two classes one column is enough: the probability of the second class. NumPy arrays, data
        frames, torch tensors.
        Or probabilities that come in blocks: a Dask array or data frame, an Arrow table, record-batch reader or
        dataset, names of files, or an iterator of batches. ``labels`` and ``sample_weight`` are then Dask collections,
        or name a column. Above 100,000 rows, here and in memory, the label-noise model is fitted to a sample by
        content; counts, shares and levels are those of all rows. Only the sample and sums over blocks come into memory.
    classes : array-like of shape (n_classes,), optional
        Label of every column. By default the columns of a data frame if they are labels, else the sorted labels.
    groups : array-like of shape (n,), optional
        Rows that belong together, for example visits of a patient. If every group has one label, its rows are assessed
        together, and the interval counts groups; else it counts independent rows (a cluster-robust variance). The
        probabilities should come from folds that do not split groups (`sklearn.model_selection.GroupKFold`).
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    multi_label : bool, default=False
        Whether a row may have several labels; every column is then audited by itself.
    cells : data frame, array or list, optional
        What a person needs to see to decide on a row (texts, paths of images, a raw table), shown in the report.
    ids : array-like of shape (n,), optional
        Names of the rows, added to the tables.
    features : array-like of shape (n, n_features), optional
        Features or embeddings. Nearest neighbours then check the model for misfit, give a reason for each suspect, and
        find near-duplicates with different labels. Without them, misfit of the model cannot be told from label noise.

    Returns
    -------
    LabelAudit
        With ``multi_label`` a `MultiLabelAudit`, which has the same attributes and methods with one entry per column.
        For blocks a `BlockAudit`, whose ``suspects()`` and ``label_issues()`` are lazy: Dask data frames, or readers of
        record batches. ``groups``, ``features``, ``cells``, ``ids`` and ``multi_label`` are for rows in memory.

    Warns
    -----
    UserWarning
        If the probabilities look in-sample.

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced import audit_labels
    >>> rng = np.random.default_rng(0)
    >>> margin = 6 * rng.normal(size=1000)
    >>> p = 1 / (1 + np.exp(-margin))
    >>> true = rng.random(1000) < p
    >>> wrong = rng.random(1000) < 0.15
    >>> audit = audit_labels(np.where(true ^ wrong, "dog", "cat"), np.column_stack([1 - p, p]))
    >>> low, high = audit.noise_rate_interval
    >>> bool(low < wrong.mean() < high)
    True
    >>> found = audit.suspects(20)
    >>> bool(wrong[found["row"]].mean() > 0.9), str(found["level"][0])
    (True, 'likely error')
    """
    if in_blocks(labels, pred_probs):
        asked = {"groups": groups, "multi_label": multi_label, "cells": cells, "ids": ids, "features": features}
        for name, value in asked.items():
            if value is not None and value is not False:
                raise ValueError(f"{name} must be left out if pred_probs come in blocks, got {type(value).__name__}")
        return audit_blocks(labels, pred_probs, classes, sample_weight)
    if multi_label:
        return _several(labels, pred_probs, classes, groups, sample_weight, cells, ids, features)
    given = read_input(labels, pred_probs, classes)
    in_sample = check_in_sample(given.probs[given.labelled], given.codes)
    return _audit(given, groups, sample_weight, cells, ids, features, in_sample)


def _audit(
    given: AuditInput, groups: Any, sample_weight: Any, cells: Any, ids: Any, features: Any, in_sample: bool
) -> LabelAudit:
    n, rows = len(given.probs), given.labelled
    whole, weight = check_groups(groups, n), check_weight(sample_weight, n)
    groups = None if whole is None else whole[rows]
    weight = None if weight is None else weight[rows]
    neighbours = None if features is None else find_neighbours(features, n, rows, groups)
    reference: Any = None if neighbours is None else neighbours.probabilities(given.codes, len(given.classes))
    ids = None if ids is None else row_values("ids", ids, n)
    if whole is not None and one_label_each(groups, given.codes):
        given = replace(given, probs=pooled(given.probs, whole))
        reference = None if reference is None else logits_of(pooled(reference, groups))
        shares, size = group_weights(groups, weight)
        noise = fit_noise(logits_of(given.probs)[rows], given.codes, shares, None, reference, size)
    else:
        reference = None if reference is None else logits_of(reference)
        logits = logits_of(given.probs)[rows]
        if groups is None and reference is None:
            table = MemoryTable(given.probs[rows], given.codes, weight, classes=given.classes)
            noise = replace(fit_rows(table, lambda _, own: logits[own])[0], logits=logits, codes=given.codes)
        else:
            noise = fit_noise(logits, given.codes, weight, groups, reference)
    return LabelAudit(noise, given, neighbours, weight, groups, shown_cells(cells, n), ids, in_sample)


def _several(
    labels: Any, pred_probs: Any, classes: Any, groups: Any, sample_weight: Any, cells: Any, ids: Any, features: Any
) -> MultiLabelAudit:
    given, probs, names = read_indicators(labels, pred_probs, classes)
    index = next((frame.index for frame in (labels, pred_probs) if hasattr(frame, "iloc")), None)
    audits = []
    for name, column, p in zip(names, given.T, probs.T, strict=True):
        try:
            one = read_input(column, p, classes=[0, 1])
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from error
        one = replace(one, index=index)
        in_sample = check_in_sample(one.probs[one.labelled], one.codes, stacklevel=4)
        audits.append(_audit(one, groups, sample_weight, None, ids, features, in_sample))
    together = [audit.given.labelled if audit.groups is None else audit.groups for audit in audits]
    decided = fit_columns([audit.noise for audit in audits], together)
    audits = [replace(audit, noise=noise) for audit, noise in zip(audits, decided, strict=True)]
    n = len(probs)
    return MultiLabelAudit(
        names, tuple(audits), shown_cells(cells, n), None if ids is None else row_values("ids", ids, n)
    )
