"""The criterion: look at the rows as they pass, decide whether labels are wrong, set the pace once an epoch."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from array_api_compat import torch as xp
from torch import Tensor, nn

from ..arguments import integer, number
from ..pacing import Pacing, Quantile
from ..regularizers import Regularizer, Welsch, get
from .counts import Counts, Epoch, class_centers, world_size
from .lapse import BINS, WIDTH
from .rows import BatchRows, Criterion, reader_of
from .verdict import LOOK, PACED, PLAIN, GapVerdict, GivenVerdict, LapseVerdict, PhaseVerdict, Validation

# While looking, a row weighs the square root of the probability of its label: that learns like cross entropy and
# memorises more slowly. Power 1 halves the speed of learning on hard data, 0 memorises at once: seen on
# the prototype, not measured again.
_LOOKING = Welsch(), math.sqrt(2.0)
_LEAST_MEAN = 0.05  # numerical safety: no class is multiplied by more than 20


class SelfPacedLoss(nn.Module):
    r"""A loss that keeps a network from memorising wrong labels, without being told how many there are.

    Cross entropy, and three phases. *look*: the first epoch is plain; then rows weigh the square root of the
    probability of their label, and the criterion counts how often labels contradict the network at every confidence,
    before the row is learned from. *plain*: contradictions are where the network doubts, classes overlap: plain
    cross entropy. *paced*: labels contradict a network that is sure. Rows are weighted by the rule, half weight where
    the share of labels that the network could explain ends, re-read every epoch; each class keeps its total weight.

    Parameters
    ----------
    criterion : module or function, optional
        Cross entropy by default: logits [B, K, ...] and integer labels [B, ...] or probabilities [B, K, ...].
        ``nn.BCEWithLogitsLoss(reduction="none")`` for several yes-or-no labels. Anything else must return one loss
        per row (``nn.MSELoss(reduction="none")``): it is paced where a part of the losses lies far off the others.
    regularizer : name or Regularizer, default="welsch"
        The rule that weights rows while paced.
    pacing : "auto" or Pacing, default="auto"
        A `selfpaced.pacing.Pacing` takes the decision away: it sets lam from the losses of each epoch but the first.
    n : int, optional
        Rows of one epoch, all ranks together; a rough number will do. Without it call `step_epoch` after each epoch.
    n_classes : int, optional
        Only for a rank that gets no batch in the first epoch.
    ignore_index, weight, label_smoothing
        As in ``nn.CrossEntropyLoss``.
    trusted : float, optional
        The share of rows to trust, where it is known: paced from the second epoch on.
    validation : function, optional
        A second guard for labels: called without arguments after an epoch, it returns the accuracy (0 to 1) on
        held-out rows with their labels as they are. A pace after which fewer of them agree is taken back.

    Attributes
    ----------
    phase : str
        "look", "plain" or "paced".
    rate, rate_interval : float, (float, float)
        Estimated share of wrong labels, and between which bounds; nan before the first look.
    trusted : float
        Share of rows that the pace trusts.
    lam : float
        The pace; inf without one.
    termination : str
        Why it is in this phase.
    history : list of dict
        One record for each epoch: phase, agreement, rate, lower, upper, trusted, lam.

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
        n_classes: int | None = None,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        label_smoothing: float = 0.0,
        *,
        trusted: float | None = None,
        validation: Validation | None = None,
    ) -> None:
        super().__init__()
        if validation is not None and not callable(validation):
            raise TypeError(f"validation must be None or callable, got {validation!r}")
        self.n = None if n is None else integer("n", n, 1, "the number of training rows, an integer >= 1")
        self.n_classes = None if n_classes is None else integer("n_classes", n_classes, 2, "an integer >= 2")
        self.validation = validation
        self.regularizer = _checked_rule(regularizer)
        self.pacing = _checked_pacing(pacing, trusted)
        self._reader = reader_of(criterion, weight, ignore_index, label_smoothing)
        self._verdict: PhaseVerdict | None = None if self.pacing is None else GivenVerdict()
        self._counts: Counts | None = None
        self._factor: Tensor | None = None
        self._seen, self._carry, self._warned = 0, 0, False
        self.epoch, self.broken, self.lam = 0, 0, math.inf
        self.history: list[dict[str, Any]] = []

    # ------------------------------------------------------------------------------------------------ what is known

    @property
    def phase(self) -> str:
        return self._verdict.phase if self._verdict else LOOK

    @property
    def rate(self) -> float:
        return self._verdict.rate if self._verdict else math.nan

    @property
    def rate_interval(self) -> tuple[float, float]:
        return (self._verdict.lower, self._verdict.upper) if self._verdict else (math.nan, math.nan)

    @property
    def trusted(self) -> float:
        return self._verdict.trusted if self._verdict else math.nan

    @property
    def termination(self) -> str:
        return self._verdict.reason if self._verdict else "no epoch has ended yet"

    @property
    def evidence(self) -> tuple[np.ndarray, np.ndarray]:
        """Log-odds of the prediction in bins, and how many labels contradicted and agreed with it there."""
        memory = self._verdict.memory if isinstance(self._verdict, LapseVerdict) else np.zeros((2, BINS))
        return (np.arange(BINS) + 0.5) * WIDTH, np.asarray(memory)

    def extra_repr(self) -> str:
        return f"n={self.n}, phase={self.phase!r}, epoch={self.epoch}, rate={self.rate:.2f}"

    # ------------------------------------------------------------------------------------------------ every batch

    # The counts change from call to call: the network compiles, the criterion runs as it is.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """The weighted mean of the rows' losses; in eval mode the plain mean, and nothing is counted."""
        for name, given in (("output", output), ("target", target)):
            if not isinstance(given, Tensor):
                raise TypeError(f"{name} must be a tensor, got {type(given).__name__}")
        if len(output) == 0:
            return output.sum() * 0.0
        if not self.training:
            rows = self._reader.read(output, target, looking=False)
            return rows.loss.sum() / rows.mass.clamp_min(1e-12)
        rows = self._reader.read(output, target, looking=self._verdict is None or self._verdict.looking)
        with torch.no_grad():
            counts = self._prepare(output)
            weight = self._weights(rows)
            counts.add(rows)
        loss = rows.loss if weight is None else weight * rows.loss
        self._pass(len(output))
        return loss.sum() / rows.mass.clamp_min(1e-12)

    def _weights(self, rows: BatchRows) -> Tensor | None:
        """The weights of a batch at the present pace; None for all one."""
        if not math.isfinite(self.lam):
            return None
        rule = self.regularizer if self.phase == PACED else _LOOKING[0]
        # The bare formula: the public one looks for negative losses, and the host would wait for the answer.
        weight: Tensor = rule._weight(xp, rows.level, self.lam)
        if (largest := rule._max_weight(self.lam)) != 1.0:
            weight = weight / largest
        return weight if self._factor is None else weight * self._factor[rows.group if len(self._factor) > 1 else 0]

    def _prepare(self, output: Tensor) -> Counts:
        if self.n_classes not in (None, output.shape[1] if output.ndim > 1 else None):
            raise ValueError(f"n_classes is {self.n_classes}, but the logits have shape {tuple(output.shape)}")
        if self._verdict is None:
            answers = self._reader.n_answers(output)
            self._verdict = LapseVerdict(n_answers=answers) if answers else GapVerdict()
        if self._counts is None:
            self._counts = Counts(self._reader.n_groups(output), output.device)
        if self._counts.device != output.device:
            self._counts.place(self._counts.flat.to(output.device))
            self._factor = None if self._factor is None else self._factor.to(output.device)
        return self._counts

    def _pass(self, rows: int) -> None:
        self._seen += rows
        if self.n is None:
            return
        everywhere = rows * world_size()
        if everywhere > 2 * self.n:
            self._warn_once(
                f"one batch holds {everywhere} rows, but n={self.n}: n must be the number of rows in one epoch, "
                "or None with step_epoch() called after each"
            )
        self._carry += everywhere
        # To the nearest batch, and what is over or missing is carried on: neither a last batch that is dropped nor
        # ranks of n/2 rounded down shift the epochs by more than half a batch.
        if self._carry + everywhere / 2 >= self.n:
            self._carry -= self.n
            self._close()

    def _warn_once(self, message: str) -> None:
        if not self._warned:
            warnings.warn(message, UserWarning, stacklevel=4)
        self._warned = True

    # ------------------------------------------------------------------------------------------------ every epoch

    def step_epoch(self) -> None:
        """End an epoch by hand, where ``n`` was not given. Under torch.distributed every rank must call it."""
        if self.n is not None and self._seen and not 1 / 3 < self.n / (self._seen * world_size()) < 3:
            self._warn_once(f"n={self.n}, but step_epoch() was called after {self._seen * world_size()} rows")
        if self._seen or world_size() > 1:
            self._carry = 0
            self._close()

    def _close(self) -> None:
        if self._counts is None and self.n_classes is not None:
            self._prepare(torch.empty(0, self.n_classes))
        if self._counts is None or self._verdict is None:
            raise RuntimeError("a rank that had no batch yet cannot end an epoch: give it one, or give n_classes")
        with torch.no_grad():
            epoch = self._counts.close(self._seen)
            self._seen = 0
            self._report_broken(epoch)
            if epoch.losses.total > 0:
                self._verdict.see(epoch, self.validation)
                self._set_pace(epoch, self._verdict)
        self.epoch += 1
        self.history.append({"epoch": self.epoch, "lam": self.lam, **self._verdict.record()})

    def _report_broken(self, epoch: Epoch) -> None:
        if epoch.broken and not self.broken:
            warnings.warn(
                f"{epoch.broken} of {epoch.rows} rows had no finite loss and were left out: look for NaN in the "
                "inputs or targets, or lower the learning rate",
                UserWarning,
                stacklevel=4,
            )
        self.broken += epoch.broken

    def _set_pace(self, epoch: Epoch, verdict: PhaseVerdict) -> None:
        """The pace of the next epoch, and the factor that keeps the total weight of every class."""
        if verdict.phase == PLAIN or (verdict.phase == LOOK and not verdict.slows):
            self.lam, self._factor = math.inf, None
            return
        rule, self.lam = (self.regularizer, self._next_lam(epoch)) if verdict.phase == PACED else _LOOKING
        levels, counts = class_centers(), epoch.classes.astype(np.float64)
        if not len(counts):
            levels, total = epoch.losses.support()
            counts = total[None]
        weight = np.asarray(rule.relative_weight(levels, self.lam))
        rows = counts.sum(axis=1)
        mean = np.where(rows > 0, np.maximum(counts @ weight / np.maximum(rows, 1), _LEAST_MEAN), 1.0)
        device = None if self._counts is None else self._counts.flat.device
        self._factor = torch.as_tensor(1 / mean, dtype=torch.float32, device=device)

    def _next_lam(self, epoch: Epoch) -> float:
        if self.pacing is None:
            return Quantile(self.trusted, self.trusted).first(epoch.losses, self.regularizer)
        if not math.isfinite(self.lam):
            return self.pacing.first(epoch.losses, self.regularizer)
        following = self.pacing.advance(self.epoch, self.lam, epoch.losses, self.regularizer)
        return self.lam if following is None else following

    # ------------------------------------------------------------------------------------------------ checkpoints

    def get_extra_state(self) -> dict[str, Any]:
        """All of the state, mid-epoch too: loads with ``weights_only=True`` and continues bit for bit."""
        counts = self._counts
        return {
            "counts": None if counts is None else (counts.n_groups, counts.flat.clone()),
            "factor": None if self._factor is None else self._factor.clone(),
            "verdict": None if self._verdict is None else {"kind": self._verdict.kind, **asdict(self._verdict)},
            **{name: getattr(self, name) for name in ("_seen", "_carry", "_warned", "epoch", "broken", "lam")},
            "history": [dict(record) for record in self.history],
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        state = dict(state)
        counts, verdict, self._factor = state.pop("counts"), state.pop("verdict"), state.pop("factor")
        self._counts = None
        if counts is not None:
            self._counts = Counts(counts[0], counts[1].device)
            self._counts.place(counts[1].clone())
        self._verdict = None
        if verdict is not None:
            kinds: dict[str, type[PhaseVerdict]] = {
                kind.kind: kind for kind in (LapseVerdict, GapVerdict, GivenVerdict)
            }
            self._verdict = kinds[verdict["kind"]](**{name: verdict[name] for name in verdict if name != "kind"})
        for name, value in state.items():
            setattr(self, name, value)


def _checked_rule(regularizer: Any) -> Regularizer:
    rule = get(regularizer)
    if not isinstance(rule, Regularizer):
        raise ValueError(f"regularizer must weight each row by its own loss alone, got the grouped rule {rule.name!r}")
    return rule


def _checked_pacing(pacing: Any, trusted: float | None) -> Pacing | None:
    if trusted is not None:
        trusted = number("trusted", trusted, math.ulp(0), 1, "a share in (0, 1]")
        if not (isinstance(pacing, str) and pacing == "auto"):
            raise ValueError("give trusted or pacing, not both")
        return Quantile(trusted, trusted)
    if isinstance(pacing, str) and pacing == "auto":
        return None
    if not isinstance(pacing, Pacing):
        raise ValueError(f"pacing must be 'auto' or a Pacing of selfpaced.pacing, got {pacing!r}")
    return pacing
