"""The decision, epoch by epoch on the host: look on, plain, or paced. It may be revised."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..sketch import LossSketch
from .counts import Epoch, mean_over_ranks
from .lapse import BINS, fit_lapse

LOOK, PLAIN, PACED = "look", "plain", "paced"

# Chosen on a few runs with seeds 0 to 5, neighbours not tried one by one; benchmarks/torch.py measures them on seeds
# from 100 on, which were not looked at before.
FIRST, LAST = 4, 16  # epochs: the first decision, and the last
FIRST_ROWS = 5_000  # ... and the first not before so many rows: a network that knows nothing proves nothing
LEARNING = 0.035  # agreement gained in an epoch above which the network is still learning: wait
ALARMS = 2  # looks in a row that must say noise
LEAST_RATE = 0.03  # wrong labels below which nothing is done
# Share of all contradictions that wrong labels must explain: at the lower bound for an alarm, at the upper bound for
# looking on, and at the best rate, mean of the paced epochs, for staying paced (overlap reaches 0.31 there, noise 0.5).
NOISE_SHARE = 0.45
TRIAL = 4  # paced epochs before they may take the pace back
FADE = 0.5  # what the counts of an epoch still weigh one epoch later

Validation = Callable[[], float]


@dataclass
class PhaseVerdict:
    """What is known and decided; plain numbers, so that a checkpoint holds them."""

    phase: str = LOOK
    epochs: int = 0
    rate: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    trusted: float = math.nan
    agreement: float = math.nan
    reason: str = "no epoch has ended yet"

    kind: ClassVar[str]
    slows: ClassVar[bool] = False  # whether rows are weighted while it looks

    @property
    def looking(self) -> bool:
        """Whether it asks for the agreement of labels with the network."""
        return False

    def see(self, epoch: Epoch, validation: Validation | None = None) -> None:
        """Take an epoch's counts in, and decide if it is time."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """What the history keeps of an epoch."""
        names = ("phase", "agreement", "rate", "lower", "upper", "trusted")
        return {name: getattr(self, name) for name in names}


@dataclass
class GivenVerdict(PhaseVerdict):
    """The pace was given: there is nothing to decide."""

    kind: ClassVar[str] = "given"

    def see(self, epoch: Epoch, validation: Validation | None = None) -> None:  # noqa: ARG002
        self.epochs += 1
        self.phase, self.reason = PACED, "the pace was given"


@dataclass
class LapseVerdict(PhaseVerdict):
    """Labels: paced where they contradict a network that is sure, as long as the paced network confirms it."""

    n_answers: int = 2
    rows: float = 0.0
    alarms: int = 0
    closed: bool = False
    before: float = math.nan
    agreements: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    memory: list[list[float]] = field(default_factory=lambda: [[0.0] * BINS, [0.0] * BINS])

    kind: ClassVar[str] = "lapse"
    slows: ClassVar[bool] = True

    @property
    def looking(self) -> bool:
        return not self.closed

    def see(self, epoch: Epoch, validation: Validation | None = None) -> None:
        self.epochs += 1
        if self.closed:
            return
        self._remember(epoch)
        if self.epochs < FIRST or self.rows < FIRST_ROWS:
            self.reason = f"still looking: {self.epochs} epochs and {self.rows:.0f} rows decide nothing"
            return
        lapse = fit_lapse(np.asarray(self.memory), self.n_answers)
        self.rate, self.lower, self.upper = lapse.rate, lapse.lower, lapse.upper
        if validation is not None:
            self.held_out = [*self.held_out, mean_over_ranks(validation())][-2:]
        if self.phase == PACED:
            self._review()
        elif self.epochs >= LAST or not self._learning():
            self._decide()
        else:
            self.reason = f"still looking: the network learns {self.agreements[-1] - self.agreements[-2]:.0%} an epoch"

    def _remember(self, epoch: Epoch) -> None:
        # Pixels of an image, or labels of a row, do not err independently: together they count as one row.
        counts = epoch.agreement * min(1.0, epoch.rows / max(epoch.agreement.sum(), 1.0))
        memory = FADE * np.asarray(self.memory) + counts
        self.memory = memory.tolist()
        self.rows += float(counts.sum())
        self.agreements.append(float(counts[1].sum() / max(counts.sum(), 1e-12)))
        self.agreement = float(memory[1].sum() / max(memory.sum(), 1e-12))

    def _learning(self) -> bool:
        return self.agreements[-1] - self.agreements[-3] >= 2 * LEARNING

    def _decide(self) -> None:
        contradictions = 1 - self.agreement
        enough = max(LEAST_RATE, NOISE_SHARE * contradictions)
        alarm = self.lower >= enough
        self.alarms = self.alarms + 1 if alarm else 0
        if self.alarms >= ALARMS:
            self.phase, self.trusted = PACED, self.agreement
            self.before = self.held_out[-1] if self.held_out else math.nan
            self.reason = f"{self._found()}: the {self.agreement:.0%} that agree are trusted"
            return
        if alarm:
            self.reason = f"{self._found()}: one look more"
        elif self.epochs >= LAST or self.upper < enough:
            self.phase, self.closed = PLAIN, self.epochs >= LAST
            self.reason = f"{self._found()}: overlap explains enough of the {contradictions:.0%} that contradict it"
        else:
            self.reason = f"{self._found()}: not settled after {self.epochs} epochs"

    def _review(self) -> None:
        """The paced network is the better witness, for it does not memorise what it holds back."""
        self.shares.append(self.rate / max(1 - self.agreement, 1e-9))
        if len(self.shares) < TRIAL:
            return
        share, worse = float(np.mean(self.shares)), self._worse_on_held_out()
        if share < NOISE_SHARE or worse:
            why = worse or f"wrong labels explain {share:.0%} of what contradicts the paced network"
            self.phase, self.trusted, self.closed = PLAIN, math.nan, True
            self.reason = f"paced, and taken back after {self.epochs} epochs: {why}"

    def _worse_on_held_out(self) -> str:
        """Held-out rows, noisy as they are: a pace that is right agrees with more of them than the look did."""
        now = float(np.mean(self.held_out)) if self.held_out else math.nan
        return f"{now:.1%} of the held-out labels agree, {self.before:.1%} before" if now < self.before else ""

    def _found(self) -> str:
        return f"labels contradict a sure network at a rate of {self.rate:.0%} ({self.lower:.0%} to {self.upper:.0%})"


@dataclass
class GapVerdict(PhaseVerdict):
    """Values: paced while a part of the losses lies far off the others, with a gap between."""

    alarms: int = 0

    kind: ClassVar[str] = "gap"

    def see(self, epoch: Epoch, validation: Validation | None = None) -> None:  # noqa: ARG002
        self.epochs += 1
        if self.epochs < FIRST:
            self.reason = f"still looking: {self.epochs} epochs decide nothing"
            return
        self.rate = self.lower = self.upper = far_share(epoch.losses)
        self.alarms = self.alarms + 1 if self.rate >= LEAST_RATE else 0
        if self.alarms >= ALARMS:
            self.phase, self.trusted = PACED, 1 - self.rate
            self.reason = f"{self.rate:.0%} of the losses lie far off the others, the rest is trusted"
        elif self.alarms == 0:
            self.phase, self.trusted = PLAIN, math.nan
            self.reason = "no part of the losses lies off the others: nothing is held back"


_STEP = 0.25  # a choice: of the histogram of log-losses
_FAR = 15.0  # theory: the hill must be this many medians up: 2.6 standard deviations for squared normal errors
_VALLEY = 0.5  # a choice: and the gap before it at most half as high


def far_share(losses: LossSketch) -> float:
    """The share of losses behind a gap, far above the bulk; 0 without a gap.

    >>> rng = np.random.default_rng(0)
    >>> clean, far = rng.normal(size=1000) ** 2, rng.normal(40.0, 5.0, size=100) ** 2
    >>> far_share(LossSketch.of(clean)), round(far_share(LossSketch.of(np.concatenate([clean, far]))), 2)
    (0.0, 0.09)
    """
    values, weight = losses.support()
    proper = (values > 0) & np.isfinite(values)
    median = losses.quantile(0.5)
    if not (proper.any() and 0 < median < math.inf):
        return 0.0
    place = (np.log(values[proper] / median) / _STEP).round().astype(int)
    start = int(-place.min())
    hills = np.convolve(np.bincount(place + start, weights=weight[proper]), [1, 4, 6, 4, 1], mode="same")
    far = start + int(math.log(_FAR) / _STEP)
    if far >= hills.size:
        return 0.0
    top = far + int(hills[far:].argmax())
    valley = start + int(hills[start : top + 1].argmin())
    if hills[valley] > _VALLEY * hills[top]:
        return 0.0
    return float(weight[proper][place + start > valley].sum() / weight.sum())
