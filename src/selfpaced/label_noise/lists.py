"""How long a list of rows to check is: the one rule for estimators and audits."""

from __future__ import annotations

__all__ = ["share_to_check"]

CLEAN_LABELS = 0.03  # benchmarks/ablation.py: confident error by class below which labels look clean
CONTRADICTED = 0.75  # a choice: share of the labels that held-out predictions contradict which are worth a look


def share_to_check(rate_if_any: float, confident_error: float, accuracy: float) -> float:
    """Return the share of the rows that are worth a look.

    Parameters
    ----------
    rate_if_any : float
        Expected share of wrong labels if any are wrong.
    confident_error : float
        Error of the most confident held-out predictions, mean over the classes.
    accuracy : float
        Held-out accuracy on the given labels.

    Examples
    --------
    >>> share_to_check(0.05, 0.01, 0.8), round(share_to_check(0.05, 0.1, 0.8), 3)
    (0.05, 0.15)
    """
    clean = confident_error < CLEAN_LABELS
    return max(rate_if_any, confident_error if clean else CONTRADICTED * (1.0 - accuracy))
