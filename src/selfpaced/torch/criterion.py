"""The criterion: count the rows as they pass, decide whether labels are wrong, set the pace once an epoch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..pacing import Pacing
from ..parameters import check_integer, check_number
from ..regularizers import Regularizer
from . import state
from .compiled import observe, register
from .counts import TOGETHER, Counts, EpochCounts, Exchange, world_size
from .noise_rate import LOG_ODDS, LOGIT_BINS
from .pace import Pace, checked_pacing, checked_rule
from .phases import PACED, PLAIN, TRIAL, FixedPhases, LabelPhases, Phases, ResidualPhases
from .rows import RowMemory, checked_ids, is_treated
from .targets import BatchRows, ClassTargets, Criterion, ValueTargets, targets_of

Validation = Callable[[], float]
Callback = Callable[[dict[str, Any]], None]


class SelfPacedLoss(nn.Module):
    r"""A loss that keeps a network from memorising wrong labels, without being told how many there are.

    Cross entropy in three phases. *look*: the first epoch is plain; then rows weigh the square root of the probability
    of their label, while the criterion counts how often labels contradict the network at every confidence. *plain*:
    labels contradict the network where it is unsure, so classes overlap, and all rows weigh 1. *paced*: labels
    contradict a network that is sure. Rows are weighted by the rule: half weight at the loss below which the trusted
    share of the rows lies. That share starts at the labels that agree and opens towards all that are not wrong; each
    class keeps its total weight.

    Parameters
    ----------
    criterion : module or function, optional
        Cross entropy by default: logits [B, K, ...] and integer labels [B, ...] or probabilities [B, K, ...].
        ``nn.BCEWithLogitsLoss(reduction="none")`` for several yes-or-no labels. ``nn.MSELoss(reduction="none")``,
        L1, Huber and SmoothL1 for values: rows are weighted by their residual. Anything else must return one loss per
        row; all rows weigh 1 unless ``trusted`` or ``pacing`` is given.
    regularizer : name or Regularizer, default="welsch"
        The rule that weights rows while paced.
    pacing : "auto" or Pacing, default="auto"
        A `selfpaced.pacing.Pacing` replaces the decision: it sets lam from the losses of each epoch but the first.
    n : int, optional
        Rows of one epoch, all ranks together; a rough number will do. Without it call `step_epoch` after each epoch.
    ignore_index, weight, label_smoothing
        As in ``nn.CrossEntropyLoss``.
    reduction : {"mean", "sum", "none"}, default="mean"
        As in ``nn.CrossEntropyLoss``, of the weighted losses.
    trusted : float, optional
        The share of rows to trust, if it is known: paced from the second epoch on.
    validation : function, optional
        Called without arguments after each epoch, it returns the accuracy (0 to 1) on held-out rows, with their labels
        as they are. For networks that memorise labels within a few epochs, as with bags of words: if fewer held-out
        labels agree for two epochs, while more training labels do, rows are paced at once. Keep the network of the
        epoch whose ``held_out`` is best: see the guide.
    on_epoch : function, optional
        Called after each epoch with its record, see ``history``: for loggers.

    Attributes
    ----------
    phase : str
        "look", "trial", "plain" or "paced".
    rate, rate_interval : float, (float, float)
        Estimated share of wrong labels, and its bounds; nan before the first estimate.
    trusted : float
        Share of rows that the pace trusts.
    lam : float
        The pace; inf without one.
    termination : str
        Why it is in this phase.
    history : list of dict
        One record for each epoch: epoch, phase, agreement, rate, lower, upper, trusted, lam, and held_out, what
        ``validation`` returned.

    Notes
    -----
    If calls give ``ids``, in one process, a trial comes before the pace: a quarter of the rows is held back for six to
    ten epochs. If the network comes to predict their labels all the same, the contradicted rows are rare groups, and
    all weights stay 1.

    Rows that need no gradient are not counted: validation under ``torch.no_grad()`` gets the plain loss.

    Examples
    --------
    >>> import torch
    >>> criterion = SelfPacedLoss(n=1000)
    >>> logits, labels = torch.zeros(8, 3, requires_grad=True), torch.arange(8) % 3
    >>> loss = criterion(logits, labels)
    >>> round(loss.item(), 4), criterion.phase
    (1.0986, 'look')
    """

    def __init__(
        self,
        criterion: Criterion | None = None,
        regularizer: str | Regularizer = "welsch",
        pacing: str | Pacing = "auto",
        n: int | None = None,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
        *,
        trusted: float | None = None,
        validation: Validation | None = None,
        on_epoch: Callback | None = None,
    ) -> None:
        nn.Module.__init__(self)
        for name, function in (("validation", validation), ("on_epoch", on_epoch)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be None or callable, got {function!r}")
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
        self.n = None if n is None else check_integer("n", n, 1, "the number of training rows, an integer >= 1")
        self.reduction, self.validation, self.on_epoch = reduction, validation, on_epoch
        self.regularizer = checked_rule(regularizer)
        self.pacing = checked_pacing(pacing, trusted)
        self._targets = targets_of(criterion, weight, ignore_index, label_smoothing, by_residual=self.pacing is None)
        self._pace = Pace(self.regularizer, self.pacing)
        self._phases = _phases_of(self._targets, self.pacing)
        self._counts: Counts | None = None
        self._memory: RowMemory | None = None
        self._exchange, self._pending = Exchange(), None
        self._number = register(self)
        # Steps of this rank, and its rows since the last epoch: attributes of a module are slow to set.
        self._progress = SimpleNamespace(step=0, seen=0, carry=0.0)
        self._warned = False
        self.epoch, self.broken = 0, 0
        self.history: list[dict[str, Any]] = []
        if isinstance(self._targets, ClassTargets) and type(self) is SelfPacedLoss:
            # skorch and others ask whether a criterion is CrossEntropyLoss to know that outputs are logits
            self.__class__ = SelfPacedCrossEntropyLoss
            self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    _pending: EpochCounts | None

    # ------------------------------------------------------------------------------------------------ what is known

    @property
    def phase(self) -> str:
        return self._phases.phase

    @property
    def rate(self) -> float:
        return self._phases.rate

    @property
    def rate_interval(self) -> tuple[float, float]:
        return self._phases.lower, self._phases.upper

    @property
    def trusted(self) -> float:
        return self._phases.trusted

    @property
    def lam(self) -> float:
        return self._pace.lam

    @property
    def termination(self) -> str:
        return self._phases.sentence

    @property
    def evidence(self) -> tuple[np.ndarray, np.ndarray]:
        """Log-odds of the prediction in bins, and how many labels contradicted and agreed with it there."""
        memory = self._phases.memory if isinstance(self._phases, LabelPhases) else np.zeros((2, LOGIT_BINS))
        return LOG_ODDS, np.asarray(memory)

    def weights(self) -> NDArray[np.float32]:
        """Weights of the rule in [0, 1] at every row's last pass, by row number; nan for rows never seen.

        Needs ``ids`` in every call, see `selfpaced.torch.WithIndex`. Under torch.distributed: rows of this rank.
        """
        if self._memory is None:
            raise RuntimeError("weights() needs row numbers: call criterion(output, target, ids), see WithIndex")
        return self._memory.weights()

    def extra_repr(self) -> str:
        return f"n={self.n}, phase={self.phase!r}, epoch={self.epoch}, rate={self.rate:.2f}"

    # ------------------------------------------------------------------------------------------------ every batch

    def forward(self, output: Tensor, target: Tensor, ids: Tensor | None = None) -> Tensor:
        """Return the weighted mean of the rows' losses.

        Without gradient, or in eval mode, it is the plain mean and nothing is counted.

        Parameters
        ----------
        output, target : Tensor
            As the wrapped criterion takes them.
        ids : Tensor of int64 [B], optional
            Row numbers of the batch, on the CPU, as `selfpaced.torch.WithIndex` gives them.
        """
        if not (isinstance(output, Tensor) and isinstance(target, Tensor)):
            name, given = ("target", target) if isinstance(output, Tensor) else ("output", output)
            raise TypeError(f"{name} must be a tensor, got {type(given).__name__}")
        batch = output.shape[0] if output.ndim else 1
        if not batch:
            return output.sum() * 0.0
        targets, weight = self._targets, None
        rows = targets.read(output, target)
        if self.training and rows.loss.requires_grad:
            groups = targets.n_groups(output), targets.n_answers(output)
            if torch.compiler.is_compiling():
                mask = rows.level.new_ones((), dtype=torch.bool).expand_as(rows.level)
                used, asked = (mask if part is None else part for part in (rows.used, rows.asked))
                parts = rows.level, used, asked, rows.group, rows.logits, ids
                weight = observe(*parts, batch, *groups, self._number)
            else:
                with torch.no_grad():
                    weight = self._observe(rows, ids, batch, *groups)
        return self._reduced(rows, weight, output, target)

    def _reduced(self, rows: BatchRows, weight: Tensor | None, output: Tensor, target: Tensor) -> Tensor:
        if self.reduction == "none":
            loss = rows.loss if weight is None else weight * rows.loss
            dense = isinstance(self._targets, ClassTargets) and target.shape == output.shape
            shape = output.shape[:1] + output.shape[2:] if dense else target.shape
            return loss.reshape(shape) if loss.numel() == math.prod(shape) else loss
        if self.reduction == "mean":
            mass = rows.mass.clamp_min(1e-12) if isinstance(rows.mass, Tensor) else rows.mass
            if weight is None:
                return rows.loss.sum() / mass
            weight = weight / mass  # before the product: that is one operation less to differentiate
        return rows.loss.sum() if weight is None else torch.dot(weight.to(rows.loss.dtype), rows.loss)

    def _observe(self, rows: BatchRows, ids: Tensor | None, batch: int, n_groups: int, n_answers: int) -> Tensor | None:
        """Weights of a batch, None for all one; the batch is counted, and an epoch may end."""
        self._progress.step += 1
        if self._pending is not None:
            self._settle()
        counts = self._counts
        if counts is None or counts.width != n_groups or counts.device != rows.level.device:
            counts = self._prepare(n_groups, n_answers, rows.level.device)
        weight = self._pace.weights(rows, self._phases)
        if ids is not None:
            self._remember(rows, weight, ids, batch)
        weight = self._pace.balanced(weight, rows.group)
        if self._phases.phase == TRIAL and ids is not None:
            treated = is_treated(ids).to(rows.level.device)
            used = ~treated if rows.used is None else rows.used & ~treated
            rows, weight = rows._replace(used=used, asked=used), treated.to(rows.level.dtype)
        counts.add(rows, self._confidence)
        self._pass(batch)
        return weight

    def _remember(self, rows: BatchRows, weight: Tensor | None, ids: Tensor, batch: int) -> None:
        ids = checked_ids(ids, batch)
        if self._memory is None:
            self._memory = RowMemory(rows.level.device)
        memory = self._memory
        if memory.weight.device != rows.level.device:
            memory.to(rows.level.device)
        agrees = None
        if rows.level.shape[0] > batch:  # pixels of an image, or labels of a row
            weight = None if weight is None else weight.reshape(batch, -1).mean(1)
        elif rows.logits is not None and rows.group is not None and self._confidence and self.phase != PACED:
            agrees = (rows.logits.argmax(1) if rows.logits.ndim > 1 else rows.logits > 0) == rows.group
        memory.add(ids, rows.level.new_ones(batch) if weight is None else weight, agrees)
        if self.epoch == 0 or memory.n_waiting >= TOGETHER:
            memory.write()
        # The loader has restarted. Samplers with replacement repeat rows within an epoch, but not whole batches.
        if self.n is not None and self.epoch == 0 and memory.n_repeats > 1 and self.n > 3 * memory.n_different:
            seen, different = self._progress.seen, memory.n_different
            self._warn_about_n(f"{seen} rows have passed, {different} of them different")

    @property
    def _confidence(self) -> Any:
        """How agreement with the network is read, as long as it is asked for."""
        asked = isinstance(self._phases, LabelPhases) and not self._phases.closed
        return self._targets.confidence if asked else None

    def _prepare(self, n_groups: int, n_answers: int, device: torch.device) -> Counts:
        if self._counts is None:
            self._counts = Counts(n_groups, n_answers, device)
        if self._counts.width != n_groups:
            raise ValueError(
                f"this criterion has counted outputs of width {self._counts.width} and now gets {n_groups}: "
                "give each head a SelfPacedLoss of its own"
            )
        if self._counts.device != device:
            self._counts.place(self._counts.flat(self._confidence).to(device))
            factor = self._pace.factor
            self._pace.factor = None if factor is None else factor.to(device)
        return self._counts

    def _pass(self, rows: int) -> None:
        self._progress.seen += rows
        if self.n is None:
            return
        share = self.n / world_size()
        if rows > 2 * share:
            self._warn_about_n(f"one batch holds {rows} rows")
        self._progress.carry += rows
        # To the nearest batch, and what is over or missing is carried on: neither a last batch that is dropped nor
        # ranks of n/2 rounded down shift the epochs by more than half a batch.
        if self._progress.carry + rows / 2 >= share and self._pending is None:
            self._progress.carry = self._progress.carry - share if self._progress.carry < 2 * share else 0.0
            self._pending = self._counted()
            if world_size() == 1:
                self._settle()

    def _warn_about_n(self, seen: str) -> None:
        """Warn once."""
        if not self._warned:
            rule = "n must be the number of rows in one epoch, or None with step_epoch() called after each"
            warnings.warn(f"{seen}, but n={self.n}: {rule}", UserWarning, stacklevel=2)
        self._warned = True

    # ------------------------------------------------------------------------------------------------ every epoch

    def step_epoch(self) -> None:
        """End an epoch by hand, if ``n`` was not given. Under torch.distributed every rank must call it."""
        if self.n is not None and self._progress.seen and not 1 / 3 < self.n / (self._progress.seen * world_size()) < 3:
            self._warn_about_n(f"step_epoch() was called after {self._progress.seen * world_size()} rows")
        if self._pending is not None:
            self._settle(wait=True)
        if self._progress.seen or world_size() > 1:
            self._progress.carry = 0.0
            self._pending = self._counted()
            self._settle(wait=True)

    def _counted(self) -> EpochCounts:
        """The counts of this rank since its last epoch."""
        rows, self._progress.seen = self._progress.seen, 0
        if self._counts is None:
            return EpochCounts()
        held_out = math.nan if self.validation is None else _accuracy(self.validation())
        with torch.no_grad():
            return self._counts.close(rows, self._confidence, held_out)

    def _settle(self, wait: bool = False) -> None:
        """End the epoch if the counts of all ranks are there."""
        epoch = self._pending
        assert epoch is not None
        if world_size() > 1:
            if not self._exchange.posted:
                self._exchange.post(epoch, self._progress.step)
            epoch = self._exchange.wait() if wait else self._exchange.ready(self._progress.step)
        if epoch is not None:
            self._pending = None
            self._close(epoch)

    def _close(self, epoch: EpochCounts) -> None:
        if epoch.counted is None:
            return
        if self._counts is None and epoch.classes is not None:  # a rank without a batch so far
            self._prepare(len(epoch.classes), epoch.n_answers, torch.device("cpu"))
        self._report_broken(epoch)
        if self._memory is not None:
            self._memory.write()
        if epoch.losses.total > 0 or self.phase == TRIAL:
            before = self.phase
            trial = self._memory.trial_counts() if before == TRIAL and self._memory else None
            can_try = self._memory is not None and self._memory.has_agreement and world_size() == 1
            self._phases.see(epoch, trial, can_try)
            if self.phase == TRIAL and before != TRIAL and self._memory:
                self._memory.begin_trial()
            self._pace.set(epoch, self._phases, self.epoch, None if self._counts is None else self._counts.device)
        self.epoch += 1
        known = {"epoch": self.epoch, "lam": self.lam, "held_out": epoch.held_out}
        self.history.append({**known, **self._phases.record()})
        if self.on_epoch is not None:
            self.on_epoch(dict(self.history[-1]))

    def _report_broken(self, epoch: EpochCounts) -> None:
        if epoch.broken and not self.broken:
            warnings.warn(
                f"{epoch.broken} of {epoch.rows} rows had no finite loss and were left out: look for NaN in the "
                "inputs or targets, or lower the learning rate",
                UserWarning,
                stacklevel=4,
            )
        self.broken += epoch.broken

    # ------------------------------------------------------------------------------------------------ checkpoints

    def __setstate__(self, contents: dict[str, Any]) -> None:
        super().__setstate__(contents)  # type: ignore[no-untyped-call]
        self._number = register(self)  # copies are criteria of their own

    def get_extra_state(self) -> Tensor:
        """All of the state as one tensor of bytes, mid-epoch too: a training continues from it bit for bit."""
        return state.pack(self)

    def set_extra_state(self, packed: Tensor) -> None:
        """Continue from a checkpoint."""
        state.unpack(self, packed)


class SelfPacedCrossEntropyLoss(SelfPacedLoss, nn.CrossEntropyLoss):
    """The form of ``SelfPacedLoss()`` for labels, which is also a CrossEntropyLoss."""


def _phases_of(targets: nn.Module, pacing: Pacing | None) -> Phases:
    """What decides the phases: labels, residuals, or nothing."""
    if pacing is not None:
        return FixedPhases()
    if isinstance(targets, ValueTargets):
        return ResidualPhases() if targets.by_residual else FixedPhases(following=PLAIN)
    return LabelPhases()


def _accuracy(returned: Any) -> float:
    value = returned.item() if isinstance(returned, Tensor) and returned.numel() == 1 else returned
    return check_number("validation()", value, 0, 1, "the accuracy on held-out rows, in [0, 1]")
