"""Does a function deserve the name? The paper's assumptions and conditions, tested numerically."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Regularizer
from .custom import from_loss
from .grouped import GroupRegularizer

Floats = NDArray[np.floating[Any]]
_DIFFERENCE = 1e-7  # numerical safety: rounding of float64 differences, far below any real violation


@dataclass(frozen=True)
class Condition:
    """One assumption of the paper and whether it holds; where it fails, ``lam`` and ``loss`` are an example."""

    name: str
    statement: str
    holds: bool
    lam: float | None = None
    loss: float | None = None
    detail: str = ""

    def __bool__(self) -> bool:
        return self.holds


@dataclass(frozen=True)
class Report:
    """The conditions of a rule; true if all hold; prints as a table."""

    rule: str
    form: str
    conditions: tuple[Condition, ...]

    def __bool__(self) -> bool:
        return all(self.conditions)

    @property
    def failures(self) -> tuple[Condition, ...]:
        """The conditions that do not hold."""
        return tuple(condition for condition in self.conditions if not condition)

    def __getitem__(self, name: str) -> Condition:
        for condition in self.conditions:
            if condition.name == name:
                return condition
        raise KeyError(f"no condition {name!r}: there are {', '.join(c.name for c in self.conditions)}")

    def __str__(self) -> str:
        rows = [("condition", "statement", "result")]
        for c in self.conditions:
            at = (
                "" if c.lam is None else f" at lam = {c.lam:.4g}" + ("" if c.loss is None else f", loss = {c.loss:.4g}")
            )
            rows.append((c.name, c.statement, "holds" if c else f"FAILS{at}: {c.detail}"))
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        body = [f"{name:<{widths[0]}}  {text:<{widths[1]}}  {result}" for name, text, result in rows]
        result = "all conditions hold" if self else f"{len(self.failures)} of {len(self.conditions)} conditions fail"
        return "\n".join([f"{self.rule} in the {self.form} form: {result}", *body])


def check(rule: Any, form: str = "loss") -> Report:
    """Test a rule against the paper: H1-H3 and conditions 1-5 of Definition 1, or H1-H4 in the quadratic form.

    Parameters
    ----------
    rule : Regularizer, GroupRegularizer, name or callable
        A callable is a latent loss ``phi(loss, lam)`` and goes through :func:`from_loss`.
    form : {"loss", "quadratic"}
        Definition 1 or Definition 2. A callable is read in this form.

    Returns
    -------
    Report
        Truthy if everything holds. Rules with a jump or a kink fail smoothness, and say where.

    Examples
    --------
    >>> bool(check("welsch"))
    True
    >>> check(lambda loss, lam: (loss + lam) ** 0.5 - 1)["H1 zero"].holds   # L1-L2 as the paper prints it
    False
    """
    if form not in ("loss", "quadratic"):
        raise ValueError(f"form must be 'loss' or 'quadratic', got {form!r}")
    if isinstance(rule, str):
        from . import get

        rule = get(rule)
    if isinstance(rule, GroupRegularizer):
        return Report(repr(rule), form, tuple(_group_conditions(rule)))
    if not isinstance(rule, Regularizer):
        rule = from_loss(rule, form=form)  # type: ignore[arg-type]
    label = rule.name if rule.name else repr(rule)
    with np.errstate(all="ignore"):
        conditions = (*_assumptions(rule, form), *_definition(rule))
    return Report(label, form, conditions)


def _grid(rule: Regularizer) -> tuple[Floats, Floats]:
    low, high = rule.lam_range
    lams = np.geomspace(0.05, 20, 13) if high == np.inf else low + (high - low) * np.linspace(0.03, 0.97, 13)
    return lams, np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 481)])


def _checked(name: str, statement: str, bad: Any, lams: Any, losses: Any, size: Any, detail: str) -> Condition:
    """A condition that fails where ``bad`` (lam x loss) is true, with the worst such place as the example."""
    bad = np.asarray(bad)
    if not bad.any():
        return Condition(name, statement, True)
    worst = np.unravel_index(np.argmax(np.where(bad, np.nan_to_num(size, nan=np.inf), -np.inf)), bad.shape)
    value = float(np.asarray(size)[worst])
    loss = float(losses[worst[1]]) if losses is not None else None
    return Condition(name, statement, False, float(lams[worst[0]]), loss, detail.format(value))


def _assumptions(rule: Regularizer, form: str) -> Iterator[Condition]:
    lams, losses = _grid(rule)
    phi = np.stack([rule._latent(np, losses, float(lam)) for lam in lams])
    weight = np.stack([rule._weight(np, losses, float(lam)) for lam in lams])
    scale = np.abs(phi).max(axis=1, keepdims=True) * 1e-12 + 1e-15
    yield _checked(
        "H1 zero", "phi(0) = 0", np.abs(phi[:, :1]) > scale, lams, losses, np.abs(phi[:, :1]), "it is {:.3g}"
    )
    drop = -np.diff(phi, axis=1)
    fails = ~(drop <= scale)
    yield _checked("H1 increasing", "phi increases", fails, lams, losses[1:], drop, "it falls by {:.3g}")
    flat = np.ptp(phi, axis=1, keepdims=True)
    yield _checked("H1 not zero", "phi is not identically 0", ~(flat > 0), lams, None, -flat, "it is constant")
    yield _concave(
        phi, lams, losses, "H2 concave", "phi(sqrt t) is concave" if form == "quadratic" else "phi is concave"
    )
    smooth = "H3 smooth" if form == "quadratic" else "H2 smooth"
    yield _smooth(rule, lams, losses, smooth)
    far = np.stack([rule._latent(np, np.array([1e100]), float(lam)) / 1e100 for lam in lams])
    limit = "H4 limit" if form == "quadratic" else "H3 limit"
    text = "phi(t)/t^2 -> 0" if form == "quadratic" else "phi(l)/l -> 0"
    start = np.maximum(weight[:, :1], 1e-300)
    yield _checked(limit, text, ~(far <= 1e-6 * start), lams, np.array([1e100]), far, "it is {:.3g} there")


def _concave(phi: Floats, lams: Floats, losses: Floats, name: str, statement: str) -> Condition:
    slopes = np.diff(phi, axis=1) / np.diff(losses)
    rise = np.diff(slopes, axis=1)
    # A difference quotient of phi carries phi's rounding, divided by the step; a formula written without care for
    # cancellation, as users write them, has more of it: 1e-5 of the steepest slope is forgiven.
    noise = 8 * np.finfo(float).eps * np.abs(phi[:, 1:]) / np.diff(losses)
    allowed = noise[:, 1:] + noise[:, :-1] + 1e-5 * np.abs(slopes).max(axis=1, keepdims=True)
    return _checked(name, statement, ~(rise <= allowed), lams, losses[1:-1], rise, "its slope rises by {:.3g}")


def _smooth(rule: Regularizer, lams: Floats, losses: Floats, name: str) -> Condition:
    """C1: no jump of the weight. Bisect the steepest drop of every lam down to neighbouring numbers."""
    jumps, places = [], []
    for lam in lams:
        grid = losses
        for _ in range(12):
            weight = rule._weight(np, grid, float(lam))
            step = int(np.argmax(np.abs(np.diff(weight))))
            jump = float(np.abs(np.diff(weight))[step]) / max(float(np.max(weight)), 1e-300)
            grid = np.linspace(grid[step], grid[step + 1], 33)
        jumps.append(jump)
        places.append(float(grid[0]))
    worst = int(np.argmax(jumps))
    if not jumps[worst] > 1e-3:
        return Condition(name, "phi is continuously differentiable", True)
    detail = f"the weight jumps by {jumps[worst]:.3g} of its maximum"
    return Condition(name, "phi is continuously differentiable", False, float(lams[worst]), places[worst], detail)


def _definition(rule: Regularizer) -> Iterator[Condition]:
    lams, losses = _grid(rule)
    losses = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 81)])
    phi = np.stack([rule._latent(np, losses, float(lam)) for lam in lams])
    weight = np.stack([rule._weight(np, losses, float(lam)) for lam in lams])
    largest = weight.max(axis=1, keepdims=True)
    trial = np.clip(np.linspace(0.02, 1, 50) * largest, 0, None)
    psi = np.stack([rule._dual(np, v, float(lam)) for v, lam in zip(trial, lams, strict=True)])
    at = np.stack([rule._dual(np, v, float(lam)) for v, lam in zip(weight, lams, strict=True)])
    tolerance = _DIFFERENCE * (1 + np.abs(phi))
    reached = np.where(weight > 0, weight * losses, 0.0) + at
    # an unbounded dual meets a vanishing weight far out: there the equality says nothing
    gap = np.where(np.isfinite(reached), np.abs(reached - phi), 0.0)
    yield _checked("1 conjugate", "phi = min_v v l + psi(v)", ~(gap <= tolerance), lams, losses, gap, "off by {:.3g}")
    best = np.stack([(v[:, None] * losses + p[:, None]).min(axis=0) for v, p in zip(trial, psi, strict=True)])
    excess = np.where(np.isfinite(reached), reached, phi) - best
    text = "no other v does better than the weight"
    yield _checked("2 minimizer", text, ~(excess <= tolerance), lams, losses, excess, "another v is better by {:.3g}")
    bad = ~((weight >= 0) & np.isfinite(weight))
    yield _checked("3 bounded", "0 <= weight < inf", bad, lams, losses, -weight, "the weight is minus {:.3g}")
    rise = np.diff(weight, axis=1)
    fails = ~(rise <= 1e-9 * largest)
    yield _checked(
        "4 decreasing", "the weight falls with the loss", fails, lams, losses[1:], rise, "it rises by {:.3g}"
    )
    wrong = -rule.opens * np.diff(weight, axis=0)
    fails = ~(wrong <= 1e-9 * np.maximum(largest[1:], largest[:-1]))
    yield _checked("5 monotone", "the weight is monotone in lam", fails, lams[1:], losses, wrong, "it turns by {:.3g}")


def _group_conditions(rule: GroupRegularizer) -> Iterator[Condition]:
    """The rule against brute force on small random problems: does the weight minimise its own objective?"""
    rng = np.random.default_rng(0)
    worst, example = 0.0, (0.0, 0.0)
    monotone, decreasing = True, True
    for _ in range(200):
        size, lam = int(rng.integers(1, 6)), float(rng.uniform(0.2, 2))
        losses, groups = rng.exponential(1.5, size), np.zeros(size)
        weight = rule.weight(losses, lam, groups)
        reached = float(weight @ losses) + float(rule.dual(weight, lam, groups)[0])
        best = min(
            float(np.array(v) @ losses) + float(rule.dual(np.array(v), lam, groups)[0])
            for v in itertools.product((0.0, 1.0), repeat=size)
        )
        if reached - best > worst:
            worst, example = reached - best, (lam, float(losses.max()))
        decreasing &= bool((np.diff(weight[np.argsort(losses)]) <= 1e-12).all())
        monotone &= bool((rule.weight(losses, lam * 1.3, groups) >= weight - 1e-12).all())
    statement = "no 0/1 selection does better than the weight"
    if worst <= 1e-9:
        yield Condition("2 minimizer", statement, True)
    else:
        yield Condition("2 minimizer", statement, False, *example, f"another selection is better by {worst:.3g}")
    yield Condition("4 decreasing", "in a group the weight falls with the loss", decreasing)
    yield Condition("5 monotone", "the weight is monotone in lam", monotone)
