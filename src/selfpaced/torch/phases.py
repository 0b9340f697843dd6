"""The decision, epoch by epoch on the host: look on, try, plain, or paced."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..robust.scales import MAD_TO_SIGMA
from ..sketch import LossSketch
from .counts import EpochCounts
from .memory import TrialCounts
from .noise_rate import BINS, fit_agreement

LOOK, TRIAL, PLAIN, PACED = "look", "trial", "plain", "paced"

# Chosen on a few runs with seeds 0 to 5, neighbours not tried one by one; benchmarks/networks.py measures them on seeds
# from 100 on, which were not looked at before.
FIRST, LAST = 4, 16  # epochs: the first decision, and the last
FIRST_ROWS = 5_000  # ... and the first not before so many rows: a network that knows nothing proves nothing
LEARNING = 0.035  # agreement gained in an epoch above which the network is still learning: wait
ALARMS = 2  # looks in a row that must say noise
LEAST_RATE = 0.03  # wrong labels below which nothing is done
# Share of all contradictions that wrong labels must explain: at the lower bound for an alarm, at the upper bound for
# looking on, and at the best rate, mean of the paced epochs, for staying paced (overlap reaches 0.31 there, noise 0.5).
NOISE_SHARE = 0.45
CONFIRM = 4  # paced epochs before they may take the pace back
FADE = 0.5  # what the counts of an epoch still weigh one epoch later
OPENING = 0.3  # of the remaining way that the trusted share goes in a paced epoch
# Share of the contradictions that are certainly not wrong labels: from the first on the trusted share opens, at the
# second it opens to all rows that are not wrong by the estimated rate.
OPEN_FROM, OPEN_FULLY = 0.2, 0.35
# The trial. Rare groups: this share of the control rows that contradicted most must agree, and of all control rows so
# many times more must have gained agreement than lost it. It ends when this share of the treated ones agrees and less
# than half as many of the control ones, after some epochs if hardly any does, and at the latest after so many.
EXPLAINED, GAINED = 0.25, 1.5
MEMORISED, IDLE, IDLE_EPOCHS, TRIAL_EPOCHS = 0.5, 0.02, 4, 10

_TELLS = {
    "none": "no epoch has ended yet",
    "early": "still looking: {epochs} epochs and {rows:.0f} rows are too few to decide",
    "learning": "still looking: the network still learns {gain:.0%} an epoch",
    "alarm": "{found}: one more epoch must confirm it",
    "unsettled": "{found}: not decided after {epochs} epochs",
    "overlap": "{found}: overlap of the classes explains enough of the {contradict:.0%} that contradict it",
    "noise": "{found}: {trusted:.0%} of the rows are trusted",
    "trial": "{found}: a quarter of the rows is held back for {trial} epochs to see whether the others explain them",
    "rare groups": "labels that contradicted the network were explained by other rows: rare groups, not label noise",
    "not confirmed": "paced, and taken back after {epochs} epochs: wrong labels explain {share:.0%} of what "
    "contradicts the paced network",
    "held-out": "paced, and taken back after {epochs} epochs: {now:.1%} of the held-out labels agree, "
    "{before:.1%} before",
    "given": "the pace was given",
    "values early": "still looking: absolute errors for the first {epochs} epochs",
    "values": "weights fall with the residual, one half at 2.5 robust standard deviations; {rate:.0%} of the rows are "
    "outliers",
    "beyond reach": "{rate:.0%} of the rows lie far off the others: too many to tell which part is right; absolute "
    "errors are minimised",
    "between groups": "the fit lies between two groups of rows: too many to tell which part is right; absolute errors "
    "are minimised",
    "no gap": "no part of the losses lies far above the others: all rows count in full",
    "gap": "{rate:.0%} of the losses lie far above the others; the rest is trusted",
}
_FOUND = "labels contradict a confident network at a rate of {rate:.0%} ({lower:.0%} to {upper:.0%})"


@dataclass
class Phases:
    """What is known and decided; plain numbers, so that a checkpoint holds them."""

    phase: str = LOOK
    epochs: int = 0
    rate: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    trusted: float = math.nan
    agreement: float = math.nan
    status: str = "none"

    kind: ClassVar[str]

    @property
    def asks_agreement(self) -> bool:
        """Whether it needs the agreement of labels with the network."""
        return False

    def see(self, epoch: EpochCounts, trial: TrialCounts | None, can_try: bool) -> None:
        """Take an epoch's counts in, and decide if it is time."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """What the history keeps of an epoch."""
        names = ("phase", "agreement", "rate", "lower", "upper", "trusted")
        return {name: getattr(self, name) for name in names}

    @property
    def sentence(self) -> str:
        """Why it is in this phase."""
        facts = {**vars(self), **self.facts()}
        return _TELLS[self.status].format(found=_FOUND.format(**facts), **facts)

    def facts(self) -> dict[str, Any]:
        """Further numbers of the sentence."""
        return {}


@dataclass
class GivenPhases(Phases):
    """The pace was given: there is nothing to decide."""

    kind: ClassVar[str] = "given"

    def see(self, epoch: EpochCounts, trial: TrialCounts | None, can_try: bool) -> None:  # noqa: ARG002
        self.epochs += 1
        self.phase, self.status = PACED, "given"


@dataclass
class LabelPhases(Phases):
    """Labels: paced if they contradict a network that is sure, as long as the paced network confirms it."""

    n_answers: int = 2
    rows: float = 0.0
    alarms: int = 0
    closed: bool = False
    goal: float = math.nan
    trial: int = 0
    before: float = math.nan
    agreements: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    memory: list[list[float]] = field(default_factory=lambda: [[0.0] * BINS, [0.0] * BINS])

    kind: ClassVar[str] = "labels"

    @property
    def asks_agreement(self) -> bool:
        return not self.closed

    def see(self, epoch: EpochCounts, trial: TrialCounts | None, can_try: bool) -> None:
        self.epochs += 1
        if self.closed:
            return
        self._remember(epoch)
        if self.phase == TRIAL and trial is not None:
            self._try(trial)
            return
        if self.epochs < FIRST or self.rows < FIRST_ROWS:
            self.status = "early"
            return
        curve = fit_agreement(np.asarray(self.memory), self.n_answers)
        if self.trial == 0:  # rows that were memorised in a trial hide a part of the rate
            self.rate, self.lower, self.upper = curve.rate, curve.lower, curve.upper
        if not math.isnan(epoch.held_out):
            self.held_out = [*self.held_out, epoch.held_out][-2:]
        if self.phase == PACED:
            self.trusted += OPENING * (self.goal - self.trusted)
            self._confirm(curve.rate)
        elif self.epochs >= LAST or not self._learning():
            self._decide(can_try)
        elif self.phase == LOOK:
            self.status = "learning"

    def _remember(self, epoch: EpochCounts) -> None:
        # Pixels of an image, or labels of a row, do not err independently: together they count as one row.
        assert epoch.agreement is not None
        counts = epoch.agreement * min(1.0, epoch.rows / max(epoch.agreement.sum(), 1.0))
        memory = FADE * np.asarray(self.memory) + counts
        self.memory = memory.tolist()
        self.rows += float(counts.sum())
        self.agreements.append(float(counts[1].sum() / max(counts.sum(), 1e-12)))
        self.agreement = float(memory[1].sum() / max(memory.sum(), 1e-12))

    def _learning(self) -> bool:
        return self.agreements[-1] - self.agreements[-3] >= 2 * LEARNING

    def _decide(self, can_try: bool) -> None:
        enough = max(LEAST_RATE, NOISE_SHARE * (1 - self.agreement))
        alarm = self.lower >= enough
        self.alarms = self.alarms + 1 if alarm else 0
        if self.alarms >= ALARMS:
            self._start(TRIAL if can_try else PACED)
        elif alarm:
            self.status = "alarm"
        elif self.epochs >= LAST or self.upper < enough:
            self.phase, self.closed, self.status = PLAIN, self.epochs >= LAST, "overlap"
        elif self.phase == LOOK:
            self.status = "unsettled"

    def _start(self, phase: str) -> None:
        """Trust as many rows as agree, and open towards all that are not wrong by the estimated rate."""
        self.phase, self.status = phase, "noise" if phase == PACED else "trial"
        self.trusted = self.goal = self.agreement
        self.before = self.held_out[-1] if self.held_out else math.nan
        contradict = max(1 - self.agreement, 1e-9)
        certain = 1 - self.upper / contradict  # of the contradictions are no wrong labels
        opens = min(1.0, max(0.0, (certain - OPEN_FROM) / (OPEN_FULLY - OPEN_FROM)))
        self.goal += opens * max(0.0, contradict - self.rate)

    def _try(self, counts: TrialCounts) -> None:
        """Rows that nobody learned from agree in the end if others explain them; wrong labels do not."""
        self.trial += 1
        idle = self.trial >= IDLE_EPOCHS and counts.treated < IDLE
        memorised = counts.treated >= MEMORISED and counts.control < counts.treated / 2
        if counts.control >= EXPLAINED and counts.gained >= GAINED * counts.lost:
            self.phase, self.closed, self.trusted, self.status = PLAIN, True, math.nan, "rare groups"
        elif memorised or idle or self.trial >= TRIAL_EPOCHS:
            self.phase, self.status = PACED, "noise"

    def _confirm(self, rate: float) -> None:
        """The paced network is the better reference, for it does not memorise what it holds back."""
        self.shares.append(rate / max(1 - self.agreement, 1e-9))
        if len(self.shares) < CONFIRM:
            return
        # Held-out rows, noisy as they are: a pace that is right agrees with more of them than the look did.
        worse = bool(self.held_out) and float(np.mean(self.held_out)) < self.before
        unconfirmed = self.trial == 0 and float(np.mean(self.shares)) < NOISE_SHARE  # a trial has confirmed it already
        if worse or unconfirmed:
            self.phase, self.trusted, self.closed = PLAIN, math.nan, True
            self.status = "held-out" if worse else "not confirmed"

    def facts(self) -> dict[str, Any]:
        gain = self.agreements[-1] - self.agreements[-2] if len(self.agreements) > 1 else math.nan
        return {
            "contradict": 1 - self.agreement,
            "gain": gain,
            "share": float(np.mean(self.shares)) if self.shares else math.nan,
            "now": float(np.mean(self.held_out)) if self.held_out else math.nan,
        }


WELSCH_TUNING = 2.985  # theory: 95 % efficiency of Welsch's weights for normal errors
FAR = 4.0  # theory: robust standard deviations that 1 in 16,000 normal residuals exceeds
# theory: half the share of normal residuals within a quarter of a standard deviation; fewer rows than that lie near a
# fit that runs between two groups.
NEAR, NEAR_SHARE = 0.25, 0.1
TOO_MANY = 0.3  # benchmarks/networks.py: with 40 % of the rows shifted the wrong part may win, with 20 % it does not
FALLING = 0.8  # a choice: a median squared residual below this part of the last epoch's is still falling


@dataclass
class ResidualPhases(Phases):
    """Values: absolute errors at first, then Welsch's weights at the running scale of the residuals."""

    half: float = math.nan  # squared residual of half weight
    median: float = math.inf  # squared residual, last epoch

    kind: ClassVar[str] = "residuals"

    def see(self, epoch: EpochCounts, trial: TrialCounts | None, can_try: bool) -> None:  # noqa: ARG002
        self.epochs += 1
        before, self.median = self.median, epoch.losses.quantile(0.5)
        falling = self.phase == LOOK and self.epochs < LAST and self.median < FALLING * before
        if self.epochs < FIRST or falling or not 0 < self.median < math.inf:
            self.status = "values early"
            return
        variance = MAD_TO_SIGMA**2 * self.median
        values, weight = epoch.losses.support()
        share = weight / weight.sum()
        self.rate = self.lower = self.upper = float(share[values > FAR**2 * variance].sum())
        self.half = math.log(2) * WELSCH_TUNING**2 * variance
        between = float(share[values < NEAR**2 * variance].sum()) < NEAR_SHARE
        if between or self.rate > TOO_MANY:
            self.phase, self.trusted = LOOK, math.nan
            self.status = "between groups" if between else "beyond reach"
        else:
            self.phase, self.trusted, self.status = PACED, 1 - self.rate, "values"


@dataclass
class GapPhases(Phases):
    """Losses of the user's own: paced while a part of them lies far above the others, with a gap between."""

    alarms: int = 0

    kind: ClassVar[str] = "gap"

    def see(self, epoch: EpochCounts, trial: TrialCounts | None, can_try: bool) -> None:  # noqa: ARG002
        self.epochs += 1
        if self.epochs < FIRST:
            return
        self.rate = self.lower = self.upper = far_share(epoch.losses)
        self.alarms = self.alarms + 1 if self.rate >= LEAST_RATE else 0
        if self.alarms >= ALARMS:
            self.phase, self.trusted, self.status = PACED, 1 - self.rate, "gap"
        elif self.alarms == 0:
            self.phase, self.trusted, self.status = PLAIN, math.nan, "no gap"


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


KINDS: dict[str, type[Phases]] = {kind.kind: kind for kind in (LabelPhases, ResidualPhases, GapPhases, GivenPhases)}
