"""Residuals: their scales, the rules on them, and what they say about outliers.

>>> import numpy as np
>>> from selfpaced.robust import residual_scale
>>> residuals = np.r_[np.random.default_rng(0).normal(size=600), np.full(300, 30.0)]
>>> bool(abs(residual_scale(residuals) - 1) < 0.1)
True
"""

from ..selection import effective_size
from .pace import (
    EfficientPace,
    EfficientStop,
    Opening,
    ResidualRule,
    ScaleStop,
    consistency,
    efficiency,
    efficient_lam,
    efficient_pace,
    efficient_rule,
    tukey_loss,
)
from .scales import (
    OutlierShare,
    largest_sigma,
    m_scale,
    madn,
    noise_scale,
    outlier_probability,
    outlier_share,
    residual_scale,
    second_heap,
    shorth,
    truncated_sigma,
    weighted_quantile,
)

__all__ = [
    "EfficientPace",
    "EfficientStop",
    "Opening",
    "OutlierShare",
    "ResidualRule",
    "ScaleStop",
    "consistency",
    "effective_size",
    "efficiency",
    "efficient_lam",
    "efficient_pace",
    "efficient_rule",
    "largest_sigma",
    "m_scale",
    "madn",
    "noise_scale",
    "outlier_probability",
    "outlier_share",
    "residual_scale",
    "second_heap",
    "shorth",
    "truncated_sigma",
    "tukey_loss",
    "weighted_quantile",
]
