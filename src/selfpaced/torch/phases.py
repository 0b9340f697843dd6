"""The decision, epoch by epoch on the host: look on, try, plain, or paced."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..formatting import percent
from ..robust.scales import MAD_TO_SIGMA
from .counts import EpochCounts
from .noise_rate import LOGIT_BINS, fit_agreement

LOOK, TRIAL, PLAIN, PACED = "look", "trial", "plain", "paced"

# Chosen on a few runs with seeds 0 to 5, neighbours not tried one by one; benchmarks/networks.py measures them on seeds
# from 100 on, which were not looked at before.
FIRST_DECISION, LAST_DECISION = 4, 16  # epochs: the first decision, and the last
FIRST_ROWS = 5_000  # ... and the first not before so many rows: a network that knows nothing proves nothing
# Agreement gained in an epoch above which the network is still learning: wait. If held-out rows lose as much and agree
# less than training rows by as much, it memorises.
LEARNING = 0.035
NEGLIGIBLE_RATE = 0.03  # wrong labels below which nothing is done
# Share of all contradictions that wrong labels must explain: at the lower bound for an alarm, at the upper bound for
# looking on, and at the best rate, mean of the paced epochs, for staying paced (overlap reaches 0.31 there, noise 0.5).
NOISE_SHARE = 0.45
FADE = 0.5  # what the counts of an epoch, and its trusted share, still weigh one epoch later
# Share of the contradictions that are certainly not wrong labels: from the first on the trusted share opens, at the
# second it opens to all rows that are not wrong by the estimated rate.
OPEN_FROM, OPEN_FULLY = 0.2, 0.35
# The trial decides from the first of these epochs on, and at the latest at the second. Chosen on seeds 0 to 9 of rare
# groups, and 0 to 4 of digits and mfeat: five epochs are too few for groups of five rows.
TRIAL_EPOCHS = 6, 10
# Share of the contradicting control rows that must come to agree, net of those that cease to, for rare groups: 0.05 is
# reached by tables with label noise whose network still learns, groups of five rows reach 0.14.
EXPLAINED_SHARE = 0.1

_TELLS = {
    "none": "no epoch has ended yet",
    "early": "no decision yet: {epochs} epochs and {rows:.0f} rows are too few to decide",
    "learning": "no decision yet: agreement with the labels still grows by {gain} an epoch",
    "alarm": "{found}: one more epoch must confirm it",
    "unsettled": "{found}: not decided after {epochs} epochs",
    "overlap": "{found}: overlap of the classes explains enough of the {contradict} that contradict it",
    "agreement": "{agreement} of the labels agree with the network: they are right, or it has memorised them; "
    "validation= tells which",
    "noise": "{found}: {trusted} of the rows are trusted",
    "trial": "{found}: a quarter of the rows is held back for {trial} epochs to see whether the others explain them",
    "rare groups": "labels that contradicted the network were explained by other rows: rare groups, not label noise",
    "not confirmed": "pacing was undone after {epochs} epochs: wrong labels explain only {share} of what "
    "contradicts the paced network",
    "memorised": "the network memorises labels: {goal} of the held-out ones agree, fewer than before and than in "
    "training; that share of the rows is trusted; keep the network of the epoch with the best held-out accuracy",
    "given": "the pace was given",
    "values early": "no decision yet: absolute errors for the first {epochs} epochs",
    "values": "weights fall with the residual, one half at 3.7 robust standard deviations; {rate} of the rows are "
    "outliers",
    "beyond reach": "{rate} of the rows lie far from the others: too many to tell which part is right; absolute "
    "errors are minimised",
    "between groups": "the fit lies between two groups of rows: too many to tell which part is right; absolute errors "
    "are minimised",
    "own loss": "your own loss does not show which rows are wrong: all weigh 1 unless trusted= or pacing= is given",
}
_FOUND = "labels contradict a confident network at a rate of {rate} ({lower} to {upper})"


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

    def see(self, epoch: EpochCounts, trial: tuple[int, int, int] | None, can_try: bool) -> None:
        """Take an epoch's counts in, and decide if it is time."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """What the history keeps of an epoch."""
        return {name: getattr(self, name) for name in ("phase", "agreement", "rate", "lower", "upper", "trusted")}

    @property
    def sentence(self) -> str:
        """Why it is in this phase."""
        facts = {**vars(self), **self.facts()}
        facts = {
            name: percent(fact) if isinstance(fact, float) and name != "rows" else fact for name, fact in facts.items()
        }
        return _TELLS[self.status].format(found=_FOUND.format(**facts), **facts)

    def facts(self) -> dict[str, Any]:
        """Further numbers of the sentence."""
        return {}


@dataclass
class FixedPhases(Phases):
    """Nothing to decide: the pace was given, or a loss of the user's own has neither labels nor residuals."""

    following: str = PACED

    def see(self, epoch: EpochCounts, trial: tuple[int, int, int] | None, can_try: bool) -> None:  # noqa: ARG002
        self.epochs += 1
        self.phase, self.status = self.following, "given" if self.following == PACED else "own loss"


@dataclass
class LabelPhases(Phases):
    """Labels: paced if they contradict a network that is sure, as long as the paced network confirms it."""

    rows: float = 0.0
    alarm: bool = False
    closed: bool = False
    goal: float = math.nan
    limit: float = math.nan  # of the goal, however many labels the paced network comes to agree with
    trial: int = 0
    confirmed: bool = False  # by held-out rows or by a trial
    agreements: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    memory: list[list[float]] = field(default_factory=lambda: [[0.0] * LOGIT_BINS, [0.0] * LOGIT_BINS])

    def see(self, epoch: EpochCounts, trial: tuple[int, int, int] | None, can_try: bool) -> None:
        self.epochs += 1
        if self.closed:
            return
        self._remember(epoch)
        if not math.isnan(epoch.held_out):
            self.held_out.append(epoch.held_out)
        if self.phase in (LOOK, PLAIN) and self._memorises():
            self.phase, self.status, self.confirmed = PACED, "memorised", True
            self.trusted = self.goal = self.limit = self.held_out[-1]
            return
        if self.phase == TRIAL and trial is not None:
            self._try(*trial)
            return
        if self.phase == PACED:
            self.goal = max(self.goal, min(self.agreements[-1], self.limit))
            self.trusted = FADE * self.trusted + (1 - FADE) * self.goal
        if self.confirmed:  # rows that were memorised, or held back in a trial, would hide a part of the rate
            return
        if self.epochs < FIRST_DECISION or self.rows < FIRST_ROWS:
            self.status = "early"
            return
        curve = fit_agreement(np.asarray(self.memory), epoch.n_answers)
        self.rate, self.lower, self.upper = curve.rate, curve.lower, curve.upper
        if self.phase == PACED:
            self._confirm()
        elif self.epochs >= LAST_DECISION or not self._learning():
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

    def _memorises(self) -> bool:
        """For two epochs fewer held-out labels agree than before, and than training labels."""
        if len(self.held_out) < 3:
            return False
        fallen = max(self.held_out) - LEARNING
        below = self.held_out[-1] <= min(fallen, self.agreements[-1] - LEARNING)
        return below and self.held_out[-2] < max(self.held_out)

    def _learning(self) -> bool:
        return self.agreements[-1] - self.agreements[-3] >= 2 * LEARNING

    def _decide(self, can_try: bool) -> None:
        enough = max(NEGLIGIBLE_RATE, NOISE_SHARE * (1 - self.agreement))
        alarm = self.lower >= enough
        confirmed, self.alarm = alarm and self.alarm, alarm
        if confirmed:
            self._start(TRIAL if can_try else PACED)
        elif alarm:
            self.status = "alarm"
        elif self.epochs >= LAST_DECISION or self.upper < enough:
            self.phase, self.closed = PLAIN, self.epochs >= LAST_DECISION
            self.status = "overlap" if self.agreement < 1 - NEGLIGIBLE_RATE else "agreement"
        elif self.phase == LOOK:
            self.status = "unsettled"

    def _start(self, phase: str) -> None:
        """Trust as many rows as agree; open towards all that are not wrong, at once or as the paced network learns."""
        self.phase, self.status = phase, "noise" if phase == PACED else "trial"
        self.trusted = self.goal = self.agreement
        contradict = max(1 - self.agreement, 1e-9)
        certain = 1 - self.upper / contradict  # of the contradictions are no wrong labels
        opens = min(1.0, max(0.0, (certain - OPEN_FROM) / (OPEN_FULLY - OPEN_FROM)))
        self.goal += opens * max(0.0, contradict - self.rate)
        # Below the upper bound by the width of the interval: labels that the network memorises lower the estimate.
        self.limit = 1 - self.upper - (self.upper - self.lower)

    def _try(self, gained: int, lost: int, contradicted: int) -> None:
        """Rows that are held back come to agree if others explain them; wrong labels do not."""
        self.trial += 1
        first, last = TRIAL_EPOCHS
        # two standard errors of a sign test
        enough = max(2 * math.sqrt(gained + lost), EXPLAINED_SHARE * contradicted)
        if self.trial >= first and gained - lost > enough:
            self.phase, self.closed, self.trusted, self.status = PLAIN, True, math.nan, "rare groups"
        elif self.trial >= last or (self.trial >= first and gained <= lost):
            self.phase, self.status, self.confirmed = PACED, "noise", True

    def _confirm(self) -> None:
        """The paced network is the better reference, for it does not memorise what it holds back."""
        self.shares.append(self.rate / max(1 - self.agreement, 1e-9))
        if len(self.shares) >= FIRST_DECISION and float(np.mean(self.shares)) < NOISE_SHARE:
            self.phase, self.trusted, self.closed, self.status = PLAIN, math.nan, True, "not confirmed"

    def facts(self) -> dict[str, Any]:
        gain = self.agreements[-1] - self.agreements[-2] if len(self.agreements) > 1 else math.nan
        return {
            "contradict": 1 - self.agreement,
            "gain": gain,
            "share": float(np.mean(self.shares)) if self.shares else math.nan,
        }


# In robust standard deviations: Welsch's weights of this tuning have 99 % efficiency for normal errors. 4 costs 2 % on
# clean values, 5 loses what they gain over absolute errors if values are swapped (seeds 0 to 7).
FAR_RESIDUAL = 4.5
TOO_MANY = 0.3  # benchmarks/networks.py: with 40 % of the rows shifted the wrong part may win, with 20 % it does not


@dataclass
class ResidualPhases(Phases):
    """Values: absolute errors at first, then Welsch's weights at the running scale of the residuals."""

    half: float = math.nan  # squared residual of half weight

    def see(self, epoch: EpochCounts, trial: tuple[int, int, int] | None, can_try: bool) -> None:  # noqa: ARG002
        self.epochs += 1
        median = epoch.losses.quantile(0.5)  # of the squared residuals
        if self.epochs < FIRST_DECISION or not 0 < median < math.inf:
            self.status = "values early"
            return
        variance = MAD_TO_SIGMA**2 * median
        values, weight = epoch.losses.support()
        share = weight / weight.sum()
        self.rate = self.lower = self.upper = float(share[values > FAR_RESIDUAL**2 * variance].sum())
        self.half = math.log(2) * FAR_RESIDUAL**2 * variance
        # A fit that runs between two groups has few rows near it: less than half of what normal residuals would have.
        between = float(share[values < variance / 16].sum()) < math.erf(0.25 / math.sqrt(2)) / 2
        if between or self.rate > TOO_MANY:
            self.phase, self.trusted = LOOK, math.nan
            self.status = "between groups" if between else "beyond reach"
        else:
            self.phase, self.trusted, self.status = PACED, 1 - self.rate, "values"


KINDS: dict[str, type[Phases]] = {kind.__name__: kind for kind in (LabelPhases, ResidualPhases, FixedPhases)}
