"""Cross-fitting: predictions of rows by models that have not seen them, and whether a model needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from ..folds import Split
from ..selection import mean_and_error
from .routing import WeightRoute, fit_weighted, n_rows, take_rows

__all__ = ["cross_fit", "decide_cross_fit"]


def cross_fit(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    folds: Sequence[Split],
    read: Callable[[Any, Any], np.ndarray],
    *,
    weight: np.ndarray | None = None,
    route: WeightRoute,
    counts: np.ndarray | None = None,
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Predictions of every row by a model that was not fitted on it.

    Parameters
    ----------
    estimator, X, y, weight, route, counts, fit_params
        See `fit_weighted`; `weight` and `counts` have one entry per row of `X`.
    folds : sequence of (train, test)
        From :func:`selfpaced.folds.make_folds`.
    read : callable
        ``read(model, X_test)`` gives an array with one entry (or one row) per test row.
    n_jobs : int or None
        Folds fitted at once, through joblib.
    out : ndarray, optional
        Filled and returned; rows in no test fold keep what it holds (NaN when it is not given).

    Returns
    -------
    ndarray of shape (n_samples, ...)
    """
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_one_fold)(estimator, X, y, weight, route, counts, train, test, read, fit_params)
        for train, test in folds
    )
    for (_, test), part in zip(folds, parts, strict=True):
        if out is None:
            out = np.full((n_rows(X), *part.shape[1:]), np.nan, dtype=part.dtype)
        out[test] = part
    if out is None:
        raise ValueError("folds must hold at least one fold to cross-fit, got none")
    return out


def _one_fold(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    route: WeightRoute,
    counts: np.ndarray | None,
    train: np.ndarray,
    test: np.ndarray,
    read: Callable[[Any, Any], np.ndarray],
    fit_params: Mapping[str, Any] | None,
) -> np.ndarray:
    model = fit_weighted(estimator, X, y, weight, route, rows=train, counts=counts, fit_params=fit_params)
    return read(model, take_rows(X, test))


def decide_cross_fit(
    setting: bool | str,
    seen: np.ndarray,
    unseen: np.ndarray,
    sample_weight: np.ndarray | None = None,
    *,
    unit: str,
    least: float = 0.02,
    share: float = 0.0,
) -> tuple[bool, str]:
    """Cross-fitted or in-sample losses, and the reason in words.

    A model that fits the rows it has seen clearly better than rows it has not seen memorises their noise:
    its training losses say nothing about which rows are wrong.

    Parameters
    ----------
    setting : bool or "auto"
        The wrapper's ``cross_fit``.
    seen, unseen : ndarray of shape (n_samples,)
        Per-row error of the plain model on rows it was, and was not, fitted on (0/1 errors, or losses in
        units of their mean): the paired difference decides.
    sample_weight : ndarray of shape (n_samples,), optional
        Weights of the rows.
    unit : str
        What the errors are, for the sentence.
    least : float
        Smallest difference of the means that counts.
    share : float
        Smallest difference that counts, as a share of the error on unseen rows.

    Returns
    -------
    bool, str
    """
    if setting is True or setting is False:
        return setting, f"{'cross-fitted' if setting else 'in-sample'} losses as asked (cross_fit={setting})"
    if setting != "auto":
        raise ValueError(f"cross_fit must be True, False or 'auto', got {setting!r}")
    gap = mean_and_error(unseen - seen, sample_weight)
    before, after = (float(np.average(errors, weights=sample_weight)) for errors in (seen, unseen))
    interpolates = gap.mean > max(least, 2.0 * gap.error, share * after)
    words = f"{unit} {before:.3g} on seen and {after:.3g} on unseen rows"
    if interpolates:
        return True, f"cross-fitted losses, because the model memorises ({words})"
    return False, f"in-sample losses, because the model has little capacity to memorise ({words})"
