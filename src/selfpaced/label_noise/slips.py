"""Labels of one or two rows beside classes of many: set aside as suspects; the others are learned as without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Array
from .channel import NoiseChannel

__all__ = ["N_HELD", "UNLIKELY", "Slips"]

N_HELD = 3  # a choice: rows that a class must have for any to be held out
SLIP = 0.9  # a choice: probability of being wrong of a label that one or two rows have where others have many
UNLIKELY = 50.0  # numerical safety: nats by which a label that was set aside is behind those that were learned
OTHERS = 20  # a choice: rows of the median class from which on one or two rows are no class


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
    def of(cls, mass: NDArray[Any], confirmed: NDArray[Any] | None = None) -> Slips | None:
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
    def doubted(self) -> Array:
        """Of every class, the least probability of a label of it being wrong."""
        return np.where(self.rare, SLIP, 0.0)

    @property
    def learned(self) -> NDArray[np.intp]:
        """The other classes."""
        return np.flatnonzero(~self.rare)

    @property
    def places(self) -> NDArray[np.intp]:
        """Of every class, its place among those that are learned; 0 of slips, which are left out."""
        return np.where(self.rare, 0, np.cumsum(~self.rare) - 1)

    def columns(self, learned: NDArray[Any], fill: Any) -> NDArray[Any]:
        """A column for every class, from those of the learned ones.

        >>> Slips(np.array([False, True, False])).columns(np.array([[1.0, 2.0]]), 0.0).tolist()
        [[1.0, 0.0, 2.0]]
        """
        every = np.empty((len(learned), len(self.rare)), dtype=learned.dtype)
        every[:, self.rare] = fill
        every[:, self.learned] = learned
        return every

    def softened(self, posterior: Array, clean: Array, codes: NDArray[np.intp]) -> Array:
        """Probabilities of true labels where given ones that were set aside are doubted, in favour of what is clean."""
        doubt = self.doubted[codes][:, None]
        given = np.eye(len(self.rare))[codes]
        return np.asarray(np.where(doubt > 0, (1 - doubt) * given + doubt * clean, posterior))

    def channel(self, channel: NoiseChannel) -> NoiseChannel:
        """A channel of the learned classes as one of all; from and to slips nothing goes astray."""
        doubt = channel.suspicion
        return replace(
            channel,
            bias=self.columns(channel.bias[None], channel.bias.mean())[0],
            transition=self._transition(channel.transition),
            suspicion=None if doubt is None else replace(doubt, transition=self._transition(doubt.transition)),
        )

    def _transition(self, transition: Array) -> Array:
        every = np.eye(len(self.rare))
        every[np.ix_(self.learned, self.learned)] = transition
        return every
