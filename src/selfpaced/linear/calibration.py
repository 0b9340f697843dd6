"""What held-out labels say about noise, once a more flexible model has been heard: rate, shift, suspects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engines import MemoryTable
from ..fitting import Progress
from ..folds import Rows
from ..label_noise import UNDECIDED, ChannelModels, NoiseChannel, confident_error
from .descent import FoldFits, FoldModel
from .evidence import Evidence
from .folds import N_FOLDS
from .objective import Objective, Vector
from .outvoted import contradictions
from .selection import CLEAN, FoldVerdict
from .witness import FEW, SUSPECT, Testimony, testimony

__all__ = ["Calibration", "calibrate"]

# Measured by benchmarks/constants.py linear.
MISMATCH = 0.1  # class shares of full and held-out predictions further apart: no shift of decisions

# Measured by benchmarks/real_suspects.py: rows whose probability of a wrong label is this near to one half, and their
# number over that of the suspects above which the latter hangs on how rows were dealt into folds.
NEAR, HANGING = 0.05, 0.25
SURELY_RIGHT = 0.25  # cost: probability of a wrong label below which, of many rows, no fit to part of them calls it so


@dataclass(frozen=True, eq=False)
class Calibration:
    """What is said about the labels.

    Attributes
    ----------
    channel : NoiseChannel
        Of rows to come.
    judging : NoiseChannel
        Of the rows of the fit, whose labels the model has seen.
    witness : str
        Whose held-out predictions the rate comes from.
    stability : ndarray or None
        Share of the fold fits by which every row is a suspect.
    hanging : bool
        Whether the number of suspects hangs on how rows were dealt into folds.
    said : str
        Sentences for ``termination_``.
    """

    channel: NoiseChannel
    judging: NoiseChannel
    witness: str
    stability: Vector | None
    hanging: bool
    said: str


def calibrate(rows: Evidence, params: Vector, folds: FoldFits, chosen: FoldVerdict, progress: Progress) -> Calibration:
    """Noise channel on held-out scores, for a model with these parameters."""
    scores, codes, weight = chosen.model.scores, chosen.codes, folds.relative_weight
    models = ChannelModels.of(scores, codes, weight, size=folds.evidence, shift=rows.settings.fit_intercept)
    channel = models.judged()
    shifted = bool(np.any(channel.bias))
    decided, moved = _decisions(rows, params, channel) if shifted else (None, 0.0)
    still = shifted and _mismatch(channel, decided, chosen)
    heard = _heard(folds, chosen, channel, progress)
    most, likely = (1.0, 1.0) if heard is None else (heard.most(channel), heard.likely(channel))
    if still or min(most, likely) < channel.noise_rate:
        channel = models.judged(most, shift=not still, likely=likely)
        if np.any(channel.bias):
            moved = _decisions(rows, params, channel)[1]
    witness, said = "linear", ""
    if heard is not None:
        channel, witness = heard.widened(heard.doubted(channel)), "quadratic" if heard.better else "linear"
        said = heard.sentence
    if np.any(channel.bias):
        alike = "are not" if channel.interval[0] > 0 else "may not be"  # wrong, or just rare and hard
        said = f" Decisions were shifted ({moved:.1%} of the rows), because classes {alike} wrong alike.{said}"
    if folds.layout.coarse:
        channel = channel.even()  # a mixed cell of equal rows: wrong labels, or just how it is
    judging = channel
    if isinstance(rows.objective, Objective):
        unseen = float(np.average(channel.decide(scores) != codes, weights=chosen.sample_weight))
        channel, judging, outvoted = contradictions(rows.objective, params, channel, unseen)
        said += outvoted
    stability, hanging = None, False
    if isinstance(rows.table, MemoryTable) and folds.layout.n_validated == N_FOLDS:
        own = rows.in_memory
        wrong = judging.noise_probability(own.scores(params), own.codes)
        asked = np.flatnonzero(wrong > SURELY_RIGHT) if rows.sampled else np.arange(own.n)
        stability = _stability(own, chosen.model, judging, asked)
        hanging = judging.suspicion is not None and judging.suspicion.share > UNDECIDED and _hanging(wrong)
    return Calibration(channel, judging, witness, stability, hanging, said)


def _heard(folds: FoldFits, chosen: FoldVerdict, channel: NoiseChannel, progress: Progress) -> Testimony | None:
    """The second witness, where there is something to explain."""
    if confident_error(chosen.model.scores, chosen.codes, chosen.sample_weight)[1] < CLEAN:
        return None
    with progress.stage("second witness"):
        return testimony(folds, chosen.model.scores, channel)


def _decisions(rows: Evidence, params: Vector, channel: NoiseChannel) -> tuple[Vector, float]:
    """Shares of the classes that a channel decides for, and of the rows that it decides otherwise."""
    _, decided, moved, total = rows.agreement(params, channel)
    return decided / total, moved / total


def _mismatch(channel: NoiseChannel, decided: Vector | None, chosen: FoldVerdict) -> bool:
    """Whether full and held-out predictions disagree on how many rows are in each class: then nothing is moved."""
    weight, z = chosen.sample_weight, chosen.model.scores
    held_out = np.bincount(channel.decide(z), weight, minlength=channel.n_classes)
    return bool(0.5 * np.abs(decided - held_out / held_out.sum()).sum() > MISMATCH)


def _stability(rows: Objective, model: FoldModel, channel: NoiseChannel, asked: Rows) -> Vector:
    """Share of the fold fits by which rows are suspects; none for those that are not asked about."""
    part = rows if len(asked) == rows.n else Objective([rows.parts[0][asked]], rows.codes[asked], rows.n_classes)
    suspected = [channel.noise_probability(part.scores(x), part.codes) > SUSPECT for x in model.params]
    stability = np.zeros(rows.n)
    stability[asked] = np.mean(suspected, axis=0)
    return stability


def _hanging(wrong: Vector) -> bool:
    """Whether many rows, beside the suspects, are about as probably right as wrong."""
    near = int((np.abs(wrong - SUSPECT) < NEAR).sum())
    return near >= FEW and near > HANGING * int((wrong > SUSPECT).sum())
