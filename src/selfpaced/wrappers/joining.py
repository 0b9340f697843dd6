"""Whether the wrapped model joins the references: asked about a part of the cases first, about the rest while in
doubt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..label_noise import logits_from_proba, one_rate_likelihood
from ..selection import mean_and_error
from .cases import Array, Cases
from .reference_models import ReferenceModel

__all__ = ["Applicant", "Lead", "compared", "logs"]

# a choice, made on development data.
CLEARLY = (
    2.0  # standard errors by which the wrapped model must be the better reference, or the references better than it
)
FLOOR = 1e-3  # of votes, before their logarithm


class Applicant(ReferenceModel, Protocol):
    """A reference whose votes may be had in parts."""

    def in_turn(self, soft: Array) -> Iterator[tuple[Array, Array]]:
        """Which cases have been asked about so far, and votes; at last on all cases."""
        ...


@dataclass(frozen=True, eq=False)
class Lead:
    """The references beside the wrapped model.

    Attributes
    ----------
    score : ndarray of shape (n_cases,)
        Log-likelihood of each given label by the references, through one noise rate; NaN where the model was not asked.
    own_score : ndarray or None
        The same by the model.
    votes : ndarray or None
        Logarithms of the model's votes, on all cases that it was asked about.
    lead : float
        By how many standard errors the references are ahead.
    """

    score: Array
    own_score: Array | None = None
    votes: Array | None = None
    lead: float = 0.0

    @property
    def ahead(self) -> bool:
        """Whether the references are clearly better."""
        return self.lead > CLEARLY

    @property
    def behind(self) -> bool:
        """Whether the model is clearly better."""
        return self.lead < -CLEARLY


def compared(logits: Array, cases: Cases, model: Applicant | None = None) -> Lead:
    """Compare the references, by their common logits, with a model on rows that neither has seen.

    The model is not asked further where the references would be clearly ahead even if the rest spoke for neither
    side: of a
    share s of the cases that takes 1 / sqrt(s) times as many standard errors. Where it is ahead, votes on all cases are
    wanted anyway.

    Parameters
    ----------
    logits : ndarray of shape (n_cases, n_classes)
        Of the references.
    cases : Cases
        Given labels and weights.
    model : Applicant, optional
        The wrapped model.

    Returns
    -------
    Lead
    """
    if model is None:
        return Lead(one_rate_likelihood([logits], cases.codes, cases.weight)[0])
    for asked, votes in model.in_turn(cases.hard):
        own, weight = logs(votes), cases.weight[asked]
        pair = one_rate_likelihood([logits[asked], own[asked]], cases.codes[asked], weight)
        lead = mean_and_error(pair[0] - pair[1], weight).z
        if lead * np.sqrt(weight.sum() / cases.weight.sum()) > CLEARLY:
            break
    scores = np.full((2, len(asked)), np.nan)
    scores[:, asked] = pair
    return Lead(scores[0], scores[1], own, lead)


def logs(votes: Array) -> Array:
    """Logarithms of votes that add up to 1."""
    floored = np.exp(logits_from_proba(votes, FLOOR))
    return np.asarray(np.log(floored / floored.sum(axis=1, keepdims=True)))
