"""The model of several annotators: true labels, one transition matrix per annotator, and a model's probabilities.

    P(votes of a row) = sum_j prior_j  prod_a T_a[j, vote_a]

The prior of a row is the class share or, with probabilities of a model, ``softmax(scale log p + bias)``: the model
counts as one more annotator, as strong as the votes say. The matrices are shrunk in two steps: the error rate of an
annotator towards that of all, and the matrix towards the common one at this error rate. The strength of both is
estimated, so annotators who are alike share one matrix, and others keep their own. All of it is fitted by expectation
and maximisation (Dawid and Skene, 1979).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import gammaln, softmax

from ._noise import SMALLEST_PROBABILITY
from ._votes import Votes

Floats = NDArray[np.floating[Any]]

STRENGTHS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0)  # theory: votes that a prior is worth
# Weak priors first, so that differences can show. benchmarks/audit.py, part annotators: without them the consensus of
# poor annotators is right in 68.3 % instead of 70.0 %, the others within 0.5 points.
FREE_ROUNDS, FREE_ERROR, FREE_MATRIX = 10, 5.0, 50.0
RIGHT = 2.0  # theory: pseudo-votes for the right label in the common matrix, one being spread over all labels
MAX_ROUNDS = 200  # cost: of expectation and maximisation
POSTERIOR_CHANGE = 1e-5  # numerical safety: largest change of a posterior at the end


@dataclass(frozen=True, eq=False)
class AnnotatorModel:
    """The fitted model."""

    posterior: Floats  # of each true label of every row, in view of all votes and of the model
    matrices: Floats  # transition matrix of each annotator
    common: Floats  # the matrix of all votes
    strength: float  # votes that the error rate of all annotators is worth when that of one is estimated
    scale: float  # factor on the logarithms of the model's probabilities; 0 without a model


def fit_annotators(votes: Votes, logits: Floats | None) -> AnnotatorModel:
    """Fit the model to votes and, if given, the log-probabilities of a model."""
    n_people, k = len(votes.annotators), len(votes.classes)
    counts = votes.counts()
    posterior = _start(counts, logits)
    parameters, strength = np.r_[1.0, np.zeros(k)], FREE_ERROR
    matrices: Floats = np.empty((n_people, k, k))
    common: Floats = np.empty((k, k))
    for step in range(MAX_ROUNDS):
        tables = _tables(votes, posterior)
        common = _common(tables.sum(axis=0))
        matrices, strength = _matrices(tables, common, free=step < FREE_ROUNDS)
        prior, parameters = _prior(posterior, logits, parameters, counts.sum(axis=1) > 0)
        new = _posterior(votes, matrices, prior)
        change = float(np.abs(new - posterior).max())
        posterior = new
        if change < POSTERIOR_CHANGE and step >= FREE_ROUNDS:
            break
    return AnnotatorModel(posterior, matrices, common, strength, 0.0 if logits is None else float(parameters[0]))


def _start(counts: Floats, logits: Floats | None) -> Floats:
    """Shares of the votes, with the model as one more vote."""
    total = counts + (1.0 / counts.shape[1] if logits is None else softmax(logits, axis=1))
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def _tables(votes: Votes, posterior: Floats) -> Floats:
    """Expected number of votes of each annotator by true and given label."""
    k = len(votes.classes)
    out = np.zeros((len(votes.annotators), k, k))
    np.add.at(out.transpose(0, 2, 1), (votes.annotator, votes.label), posterior[votes.row])
    return out


def _common(table: Floats) -> Floats:
    k = len(table)
    out = table + RIGHT * np.eye(k) + 1.0 / k
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _matrices(tables: Floats, common: Floats, free: bool) -> tuple[Floats, float]:
    """The matrix of every annotator, and how many votes the common error rate is worth."""
    k = len(common)
    total = tables.sum(axis=(1, 2))
    wrong = total - np.einsum("ajj->a", tables)
    mean = float((wrong.sum() + 1.0 / k) / (total.sum() + 1.0))
    binary = np.stack([wrong, total - wrong], axis=1)[:, None, :]
    strength = FREE_ERROR if free else _strength(binary, np.array([[mean, 1.0 - mean]])[None])
    error = np.clip((wrong + strength * mean) / (total + strength), SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)
    own = _at_error(common, error, mean)
    matrices = tables + (FREE_MATRIX if free else _strength(tables, own)) * own
    return np.asarray(matrices / matrices.sum(axis=2, keepdims=True)), strength


def _at_error(common: Floats, error: Floats, mean: float) -> Floats:
    """The common matrix at the error rate of every annotator: the odds of an error change, in all classes alike."""
    odds = error / (1.0 - error) * (1.0 - mean) / mean
    out = np.repeat(common[None], len(error), axis=0) * odds[:, None, None]
    diagonal = np.arange(len(common))
    out[:, diagonal, diagonal] = common[diagonal, diagonal]
    return np.asarray(out / out.sum(axis=2, keepdims=True))


def _strength(tables: Floats, means: Floats) -> float:
    """The strength of Dirichlet priors with these means under which the tables are most likely."""

    def likelihood(strength: float) -> float:
        prior = strength * means
        rows = gammaln(strength) - gammaln(tables.sum(axis=2) + strength)
        return float(rows.sum() + (gammaln(tables + prior) - gammaln(prior)).sum())

    return max(STRENGTHS, key=likelihood)


def _prior(
    posterior: Floats, logits: Floats | None, parameters: Floats, voted: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Log-prior of every row: class shares, or the model's probabilities at the scale that the votes support."""
    if logits is None:
        share = posterior[voted].mean(axis=0)
        return np.broadcast_to(np.log(np.maximum(share, SMALLEST_PROBABILITY)), posterior.shape), parameters
    target, z = posterior[voted], logits[voted]

    def loss(x: Floats) -> tuple[float, Floats]:
        logs = x[0] * z + x[1:]
        logs = logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)
        residual = np.exp(logs) - target
        grad = np.r_[np.vdot(residual, z), residual.sum(axis=0)] / len(z)
        held = np.r_[x[0] - 1.0, x[1:]] / len(z)  # a weak prior at the probabilities as they are
        return float(-(target * logs).sum() / len(z) + 0.5 * held @ np.r_[x[0] - 1.0, x[1:]]), grad + held

    bounds = [(0.0, None), *[(None, None)] * posterior.shape[1]]
    found = minimize(loss, parameters, jac=True, method="L-BFGS-B", bounds=bounds).x
    logs = found[0] * logits + found[1:]
    return np.asarray(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)), found


def _posterior(votes: Votes, matrices: Floats, prior: Floats) -> Floats:
    logs = np.array(prior)
    np.add.at(logs, votes.row, np.log(np.maximum(matrices[votes.annotator, :, votes.label], SMALLEST_PROBABILITY)))
    return np.asarray(softmax(logs, axis=1))


def information_gain(posterior: Floats, matrix: Floats) -> Floats:
    """Expected information, in nats, that one more vote by an ordinary annotator gives about each true label."""
    given = posterior @ matrix
    noise = -(matrix * np.log(np.maximum(matrix, SMALLEST_PROBABILITY))).sum(axis=1)
    entropy = -(given * np.log(np.maximum(given, SMALLEST_PROBABILITY))).sum(axis=1)
    return np.asarray(np.maximum(entropy - posterior @ noise, 0.0))
