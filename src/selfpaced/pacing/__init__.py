"""The pace: where lam starts, how it moves, when it stops. Pure functions of losses; models are never seen."""

from .calibration import CalibrationError, LossSketch, calibrate, half_loss, lam_at, loss_scale
from .paces import (
    Fixed,
    Geometric,
    Graduated,
    Ladder,
    Pacing,
    Plateau,
    Quantile,
    ScaleRatio,
    Span,
    StageLike,
    Stages,
    Stop,
)

__all__ = [
    "CalibrationError",
    "Fixed",
    "Geometric",
    "Graduated",
    "Ladder",
    "LossSketch",
    "Pacing",
    "Plateau",
    "Quantile",
    "ScaleRatio",
    "Span",
    "StageLike",
    "Stages",
    "Stop",
    "calibrate",
    "half_loss",
    "lam_at",
    "loss_scale",
]
