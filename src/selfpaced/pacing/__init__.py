"""The pace: where lam starts, how it moves, when it stops. Pure functions of losses; models are never seen."""

from ..sketch import LossSketch
from .calibration import CalibrationError, calibrate, half_loss, lam_at, loss_scale
from .paces import Fixed, Geometric, Graduated, Ladder, Pacing, Quantile, Span, check_pace
from .stops import Plateau, ScaleRatio, StageLike, Stages, Stop, stop_reason

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
    "check_pace",
    "half_loss",
    "lam_at",
    "loss_scale",
    "stop_reason",
]
