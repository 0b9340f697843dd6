"""Labels of one or two rows beside classes of many: set aside as suspects; the others are learned as without them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..engines import ClassWeightedTable, Table
from ..judgement import Array
from ..label_noise import NoiseChannel
from .folds import N_HELD
from .objective import Codes, Vector
from .training import LogisticFit

SLIP = 0.9  # a choice: probability of being wrong of a label that one or two rows have where others have many
OTHERS = 20  # a choice: rows of the median class from which on one or two rows are no class
UNLIKELY = 50.0  # numerical safety: nats by which a label that was set aside is behind those that were learned


@dataclass(frozen=True, eq=False)
class Slips:
    """Which classes are slips of the pen.

    Attributes
    ----------
    rare : ndarray of bool
        Of every class, whether it is one.
    """

    rare: NDArray[np.bool_]

    @classmethod
    def of(cls, mass: Array, confirmed: Array | None = None) -> Slips | None:
        """Classes of one or two rows, unless a person has confirmed one of these; None where there are none.

        >>> Slips.of(np.array([60.0, 1.0, 80.0])).doubted.tolist()
        [0.0, 0.9, 0.0]
        >>> Slips.of(np.array([3.0, 1.0, 2.0]))  # here every class is small
        """
        rare = (mass > 0) & (mass < N_HELD)
        if confirmed is not None:
            rare &= confirmed == 0
        return cls(rare) if rare.any() and np.median(mass) >= OTHERS else None

    @property
    def doubted(self) -> Vector:
        """Of every class, the least probability of a label of it being wrong."""
        return np.where(self.rare, SLIP, 0.0)

    @property
    def learned(self) -> NDArray[np.intp]:
        """The other classes."""
        return np.flatnonzero(~self.rare)

    @property
    def places(self) -> Codes:
        """Of every class, its place among those that are learned; 0 of slips, which are left out."""
        return np.where(self.rare, 0, np.cumsum(~self.rare) - 1)

    def left_out(self, table: Table) -> Table:
        """The table without their rows."""
        return ClassWeightedTable(table, np.where(self.rare, 0.0, 1.0), self.places)

    def widened(self, fit: LogisticFit) -> LogisticFit:
        """A fit of the learned classes as one of all; labels that were set aside are never expected."""
        lam = fit.latent.lam
        if np.ndim(lam):
            lam, own = np.full(len(self.rare), fit.lam), lam
            lam[self.learned] = own
        return replace(
            fit,
            plain=self._parameters(fit.plain, 1.0),
            params=self._parameters(fit.params, fit.channel.scale),
            latent=replace(fit.latent, lam=lam),
            channel=self._channel(fit.channel),
        )

    def _parameters(self, params: Vector, scale: float) -> Vector:
        n_learned = len(self.learned)
        own = params.reshape(1 if n_learned == 2 else n_learned, -1)
        every = np.zeros((len(self.rare), own.shape[1]))
        every[self.learned] = np.vstack([-own / 2, own / 2]) if n_learned == 2 else own
        every[self.rare, -1] = -UNLIKELY / min(scale, 1.0)
        return every.ravel()

    def _channel(self, channel: NoiseChannel) -> NoiseChannel:
        bias = np.full(len(self.rare), channel.bias.mean())
        bias[self.learned] = channel.bias
        doubt = channel.suspicion
        return replace(
            channel,
            bias=bias,
            transition=self._transition(channel.transition),
            suspicion=None if doubt is None else replace(doubt, transition=self._transition(doubt.transition)),
        )

    def _transition(self, transition: Array) -> Array:
        every = np.eye(len(self.rare))
        every[np.ix_(self.learned, self.learned)] = transition
        return every


__all__ = ["Slips"]
