"""What a block of rows contributes to a logistic regression, and the objective that adds it up.

Every function here is a pure function of a block and a few small arguments; its results add up. Where blocks lie, and
who computes, is the table's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..distributed import Block, Sums, Table
from ..label_noise import NoiseModel
from ._loss import Latent, Objective, Vector, loss_of_scores


def gradient(block: Block, x: Vector, latent: Latent, n_classes: int, fit_intercept: bool) -> Sums:
    """Latent losses and their gradient, summed; no penalty."""
    return Sums(_objective(block, n_classes, fit_intercept).at(latent).sums(x))


def held_gradient(
    block: Block, x: Vector, latent: Latent, weighed_at: Vector, n_classes: int, fit_intercept: bool
) -> Sums:
    """The same of the plain loss, under the weights that rows have at other parameters."""
    own = _objective(block, n_classes, fit_intercept)
    weight = latent.weight(own.losses(weighed_at), block.y)
    return Sums(own.weighted(weight if block.weight is None else weight * block.weight).sums(x))


def latent_sum(block: Block, x: Vector, latent: Latent, n_classes: int) -> float:
    """The latent losses alone, summed."""
    losses = _objective(block, n_classes).losses(x)
    latents = losses if latent.plain else latent.of_loss(losses, block.y)[0]
    return float(latents.sum() if block.weight is None else block.weight @ latents)


def clean_shares(block: Block, x: Vector, shift: Vector, channel: NoiseModel, n_classes: int) -> Sums:
    """Probabilities of the clean classes, summed, and the weight they are summed with."""
    proba = channel.proba(_objective(block, n_classes).scores(x) + shift)
    weight = np.ones(len(proba)) if block.weight is None else block.weight
    return Sums((weight @ proba, float(weight.sum())))


def _objective(block: Block, n_classes: int, fit_intercept: bool = True) -> Objective:
    return Objective([block.X], block.y, n_classes, sample_weight=block.weight, fit_intercept=fit_intercept)


@dataclass(frozen=True, eq=False)
class TableObjective:
    """The objective of all rows of a table: `Objective`, whose passes the table makes.

    Attributes
    ----------
    table : Table
        The rows, labels as codes.
    n_classes : int
        Number of classes.
    total : float
        Weight of all rows.
    ridge, fit_intercept
        As in `Objective`.
    latent : Latent
        The loss.
    weighed_at : ndarray or None
        Parameters at which ``latent`` weighs the rows, whose plain loss is then minimised; None: the latent loss is.
    """

    table: Table
    n_classes: int
    total: float
    ridge: float = 0.0
    fit_intercept: bool = True
    latent: Latent = field(default_factory=Latent)
    weighed_at: Vector | None = None

    @property
    def n_outputs(self) -> int:
        """Scores of a row: one of two classes."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.n_outputs * (self.table.n_features + 1)

    def at(self, latent: Latent) -> TableObjective:
        """The same rows under another latent loss."""
        return replace(self, latent=latent, weighed_at=None)

    def held(self, latent: Latent, params: Vector) -> TableObjective:
        """The plain loss of the same rows, weighed once and for all at these parameters."""
        return replace(self, latent=latent, weighed_at=params)

    def penalised(self, ridge: float) -> TableObjective:
        """The same rows under another penalty."""
        return replace(self, ridge=ridge)

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        """Value and gradient at the parameters ``x``."""
        if self.weighed_at is None:
            found = self.table.reduce(gradient, x, self.latent, self.n_classes, self.fit_intercept)
        else:
            options = (self.weighed_at, self.n_classes, self.fit_intercept)
            found = self.table.reduce(held_gradient, x, self.latent, *options)
        coef = x.reshape(self.n_outputs, -1)[:, :-1]
        value, grad = found[0] / self.total, (found[1] / self.total).reshape(self.n_outputs, -1)
        grad[:, :-1] += self.ridge * coef
        return value + self.penalty(x) / self.total, grad.ravel()

    def penalty(self, x: Vector) -> float:
        """Half the squared norm of the coefficients, in the units of summed losses."""
        coef = x.reshape(self.n_outputs, -1)[:, :-1]
        return 0.5 * self.ridge * self.total * float(np.vdot(coef, coef))

    def latent_value(self, latent: Latent, x: Vector) -> float:
        """The latent losses of all rows, summed, and the penalty."""
        return float(self.table.reduce(latent_sum, x, latent, self.n_classes)) + self.penalty(x)


def row_losses(block: Block, x: Vector, latent: Latent, n_classes: int) -> Any:
    """Log-loss and weight of every row, side by side."""
    losses = loss_of_scores(_objective(block, n_classes).scores(x), block.y)
    return np.column_stack([losses, latent.weight(losses, block.y)])
