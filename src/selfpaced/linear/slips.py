"""Logistic regression beside slips of the pen: their rows are left out, and the fit is widened to all classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..engines import ClassWeightedTable, Table
from ..label_noise import UNLIKELY, Slips
from .objective import Vector
from .training import LogisticFit

__all__ = ["left_out", "widened"]


def left_out(slips: Slips, table: Table) -> Table:
    """The table without their rows."""
    return ClassWeightedTable(table, np.where(slips.rare, 0.0, 1.0), slips.places)


def widened(slips: Slips, fit: LogisticFit) -> LogisticFit:
    """A fit of the learned classes as one of all; labels that were set aside are never expected."""
    lam = fit.latent.lam
    if np.ndim(lam):
        lam, own = np.full(len(slips.rare), fit.lam), lam
        lam[slips.learned] = own
    return replace(
        fit,
        plain=_parameters(slips, fit.plain, 1.0),
        params=_parameters(slips, fit.params, fit.channel.scale),
        latent=replace(fit.latent, lam=lam),
        channel=slips.channel(fit.channel),
        judging=None if fit.judging is None else slips.channel(fit.judging),
    )


def _parameters(slips: Slips, params: Vector, scale: float) -> Vector:
    n_learned = len(slips.learned)
    own = params.reshape(1 if n_learned == 2 else n_learned, -1)
    every = np.zeros((len(slips.rare), own.shape[1]))
    every[slips.learned] = np.vstack([-own / 2, own / 2]) if n_learned == 2 else own
    every[slips.rare, -1] = -UNLIKELY / min(scale, 1.0)
    return every.ravel()
