"""What a fitted classifier says about rows, as one matrix of logits whatever methods it has."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..label_noise import logits_from_proba

__all__ = ["as_logits", "as_votes", "output_kind", "read_output", "rival_loss"]


def output_kind(model: Any) -> str:
    """The richest output a fitted classifier has: "predict_proba", "decision_function" or "predict"."""
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            return name
    return "predict"


def read_output(model: Any, X: Any, *, kind: str, labels: np.ndarray) -> np.ndarray:
    """Output of `model` with one column per entry of `labels`.

    Classes the model has not seen in its training rows get probability 0 or the smallest decision of the row.

    Parameters
    ----------
    model : fitted classifier
    X : array-like
        Rows.
    kind : str
        From `output_kind`.
    labels : ndarray of shape (n_classes,)
        Sorted labels as the model sees them.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
    """
    raw = np.asarray(getattr(model, kind)(X))
    if kind == "predict_proba" and raw.ndim == 2 and np.isnan(raw).any():
        # GaussianNB divides nothing by nothing far from every class: it knows nothing there
        raw = np.where(np.isnan(raw).any(axis=1, keepdims=True), 1.0 / raw.shape[1], raw)
    if kind == "predict":
        return np.asarray(raw[:, None] == labels[None, :], dtype=float)
    if raw.ndim == 1 or raw.shape[1] == 1:
        raw = raw.reshape(-1)
        raw = np.stack([1.0 - raw, raw], axis=1) if kind == "predict_proba" else np.stack([-raw / 2, raw / 2], axis=1)
    known = np.asarray(model.classes_)
    if known.size == labels.size:
        return raw
    if known.size == 1:  # one class left in the training rows: some models then answer with one column
        raw = raw[:, -1:]
    least = 0.0 if kind == "predict_proba" else raw.min(axis=1, keepdims=True) - 1.0
    out = np.broadcast_to(least, (raw.shape[0], labels.size)).copy()
    out[:, np.searchsorted(labels, known)] = raw
    return out


def as_logits(output: np.ndarray, kind: str) -> np.ndarray:
    """Logits of an output matrix, possibly averaged over several models, in float64."""
    if kind == "decision_function":
        return np.asarray(np.nan_to_num(np.asarray(output, dtype=float), posinf=1e6, neginf=-1e6))
    return logits_from_proba(output)


def as_votes(output: np.ndarray, kind: str) -> np.ndarray:
    """Probabilities of an output matrix; decisions are taken for logits."""
    if kind != "decision_function":
        return np.asarray(output, dtype=float)
    logits = as_logits(output, kind)
    votes = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


def rival_loss(proba: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Logistic loss of the given label against its strongest rival, log(1 + p_rival / p_given).

    With two classes this is the log-loss. With more it stays at or below log 2 exactly for the most probable label,
    however many classes share the rest.

    Examples
    --------
    >>> import numpy as np
    >>> rival_loss(np.array([[0.5, 0.25, 0.25]]), np.array([0])).round(3)
    array([0.405])
    """
    rows = np.arange(len(codes))
    given = np.maximum(proba[rows, codes], 1e-12)
    others = proba.copy()
    others[rows, codes] = 0.0
    return np.asarray(np.log1p(others.max(axis=1) / given))
