"""The default path of a wrapped classifier: references, the posterior of every label, one fit to soft labels."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.utils import check_random_state

from ..fitting import Progress
from ..label_noise import NoiseModel
from ..selection import Decision, Trial
from .cases import Cases, cases_of, numeric_table
from .joining import Applicant
from .label_path import LabelFit
from .labels import Reading, scaled_to
from .outputs import as_logits, output_kind, read_output, rival_loss
from .posterior import Posterior, posterior_of
from .reference_models import (
    BaggedReference,
    ForestReference,
    LogisticReference,
    ModelReference,
    ReferenceModel,
    bagged,
)
from .routing import weight_route
from .soft_labels import Fitted, SoftFit
from .wrapping import seeded

__all__ = ["MIN_ROWS", "SoftProblem", "run_soft"]

MIN_ROWS = 40  # a choice: below, a fold is too small to assess by
LEAST = 0.05  # noise rate below which what looks wrong is taken for overlap of classes: a choice
FOLDS = 5  # a choice: of references that have no rows to spare
HALVINGS = 2  # cost: deals into halves in which a wrapped model that is the only reference votes
SOFT = "the fit to soft labels"


@dataclass(frozen=True, eq=False)
class SoftProblem:
    """What the default path needs to know.

    Attributes
    ----------
    X : array-like
        Rows.
    fitted : SoftFit
        The wrapped estimator, and how it is fitted to given and soft labels.
    progress : Progress
        Who hears of it.
    groups : array-like or None
        Rows that are held out together.
    asked : "auto", "self", classifier or sequence of such
        Who assesses.
    cv : "auto", int or splitter
        How references hold rows out.
    keep_plain : bool
        Whether the plain model is fitted although another may be chosen.
    """

    X: Any
    fitted: SoftFit
    progress: Progress
    groups: Any = None
    asked: Any = "auto"
    cv: Any = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    keep_plain: bool = False

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.fitted.labels.size)

    def cases(self) -> Cases:
        """The distinct rows."""
        return cases_of(self.X, self.fitted.codes, self.n_classes, self.fitted.prior, self.groups, self.fitted.trusted)

    def plain(self) -> Fitted:
        """The plain model, with votes out of the bag where it has such."""
        asked = self.fitted.estimator
        keeps = bagged(asked)
        fitted = self.fitted if keeps is None else replace(self.fitted, estimator=keeps)
        with self.progress.stage("plain fit"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
            plain = fitted.fit(self.X, np.eye(self.n_classes)[fitted.codes])
        if keeps is not None:
            plain.model.set_params(oob_score=asked.oob_score)
        return plain

    # ------------------------------------------------------------------------------------------------- references

    def references(self, cases: Cases, plain: Fitted | None = None) -> tuple[list[ReferenceModel], Applicant | None]:
        """Whoever assesses these cases, and who may join them; a plain model that is known may have votes to
        spare."""
        rng = check_random_state(0 if self.random_state is None else self.random_state)
        if isinstance(self.asked, str) and self.asked == "auto":
            table = numeric_table(self.X, cases.first, cases.n_used)
            if table is None:
                return [self._own(cases, rng, HALVINGS)], None
            readers, own = self._readers(table, cases, rng), self._own(cases, rng)
            return readers, BaggedReference(plain.model, cases, own) if plain is not None and self.spares(
                cases
            ) else own
        several = self.asked if isinstance(self.asked, list | tuple) else [self.asked]
        return [
            self._own(cases, rng, HALVINGS) if isinstance(one, str) else self._other(one, cases, rng) for one in several
        ], None

    def spares(self, cases: Cases) -> bool:
        """Whether members of the plain model leave out rows that are nobody else's copies, to vote on them."""
        apart = self.groups is None and _automatic(self.cv) and cases.n_units == len(self.fitted.codes)
        asked = isinstance(self.asked, str) and self.asked == "auto"
        return apart and asked and bagged(self.fitted.estimator) is not None

    def _readers(self, table: Any, cases: Cases, rng: Any) -> list[ReferenceModel]:
        """Reference models of a table of numbers; a wide and sparse one is for the regression alone."""
        given = None if _automatic(self.cv) else self._folds(cases, rng)
        logistic = LogisticReference(table, cases, self._folds(cases, rng, FOLDS) if given is None else given)
        if sparse.issparse(table):
            return [logistic]
        seeds = rng.randint(np.iinfo(np.int32).max, size=2).tolist()
        return [
            ForestReference("forest", DecisionTreeRegressor, table, cases, given, seeds[0], self.n_jobs),
            ForestReference("extra trees", ExtraTreeRegressor, table, cases, given, seeds[1], self.n_jobs),
            logistic,
        ]

    def _own(self, cases: Cases, rng: Any, halvings: int = 1) -> ModelReference:
        """The wrapped model on halves of the rows: against noise, half-trained models are the better witnesses."""
        deals = [self._folds(cases, rng, 2) for _ in range(halvings if _automatic(self.cv) else 1)]
        return ModelReference("the model itself", self.X, cases, self.fitted, deals, self.n_jobs)

    def _other(self, estimator: Any, cases: Cases, rng: Any) -> ModelReference:
        model = seeded(estimator, self.random_state)
        fitted = replace(self.fitted, estimator=model, route=weight_route(model), fit_params={})
        return ModelReference(type(estimator).__name__, self.X, cases, fitted, [self._folds(cases, rng)], self.n_jobs)

    def _folds(self, cases: Cases, rng: Any, folds: int = FOLDS) -> Any:
        y = self.fitted.labels[self.fitted.codes]
        return cases.folds(folds if _automatic(self.cv) else self.cv, rng, self.groups, self.X, y)


def _automatic(cv: Any) -> bool:
    return isinstance(cv, str) and cv == "auto"


# --------------------------------------------------------------------------------------------------- the path


@dataclass(frozen=True, eq=False)
class SoftFound:
    """What the default path has found: the fit as the wrapper stores it, and the models."""

    found: LabelFit
    chosen: Fitted
    plain: Fitted | None
    reference_models: dict[str, float]


def run_soft(problem: SoftProblem) -> SoftFound:
    """Ask the references, and fit the model to what they say; the plain model is kept where there is no sign of noise.

    Parameters
    ----------
    problem : SoftProblem
        The data and the wrapped estimator.

    Returns
    -------
    SoftFound
    """
    plain = problem.plain() if problem.keep_plain else None
    if problem.n_classes < 2:
        return _unassessed(problem, plain, "there is only one class")
    cases = problem.cases()
    alone = int(np.bincount(cases.codes[: cases.n_used]).max()) < 2  # every class has one row: nobody can be held out
    if cases.n_units < MIN_ROWS or alone:
        why = f"{cases.n_units} rows of {problem.n_classes} classes are too few to assess noise on unseen rows"
        return _unassessed(problem, plain, why)
    if plain is None and problem.spares(cases):
        plain = problem.plain()
    if plain is None:
        return _assessed(problem, cases, None)
    try:
        return _assessed(problem, cases, plain)
    except KeyboardInterrupt:  # the plain model is complete
        ended = _unassessed(problem, plain, "no candidate could be completed")
        return replace(ended, found=replace(ended.found, interrupted=True))


def _assessed(problem: SoftProblem, cases: Cases, plain: Fitted | None) -> SoftFound:
    began = time.perf_counter()
    with problem.progress.stage("references"):
        posterior = posterior_of(cases, *problem.references(cases, plain))
    reading = _reading(posterior, cases, time.perf_counter() - began)
    codes, n = problem.fitted.codes, len(problem.fitted.codes)
    score, own = (None if each is None else each[cases.of_row] for each in (posterior.score, posterior.own_score))
    first = Trial(math.inf, "plain", own, np.ones(n), 0.0, reading)
    if posterior.rate < LEAST and not posterior.ahead:
        plain = plain or problem.plain()
        return _found(problem, [first], Decision(0, _words(posterior)), reading, plain, plain, posterior)
    rate = max(
        posterior.rate, LEAST
    )  # references who know more than the model make it smoother: benchmarks/references.py
    began, soft = time.perf_counter(), problem.fitted.confirmed(posterior.soft(rate).posterior(reading.clean, codes))
    with problem.progress.stage("final fit"):
        model = problem.fitted.fit(problem.X, soft)
    weight, cost = soft[np.arange(n), codes], reading.cost + time.perf_counter() - began
    trial = Trial(_even(rate, problem.n_classes), SOFT, score, weight, cost, reading)
    why = f"{_words(posterior)}; {problem.fitted.words}"
    return _found(problem, [first, trial], Decision(1, why), reading, model, plain, posterior)


def _words(posterior: Posterior) -> str:
    """What the references say of the labels."""
    rate, (low, high) = posterior.channel.noise_rate, posterior.channel.interval
    if posterior.rate < LEAST:
        overlap = (
            f"the references put the share of wrong labels at {posterior.rate:.1%}, which overlapping classes explain"
        )
        return f"{overlap}, but foretell labels of unseen rows better than the model" if posterior.ahead else overlap
    if posterior.silent:
        return (
            f"the references foretell labels so poorly that nobody can say how many are wrong ({low:.0%} to {high:.0%})"
        )
    if low > 0.0:
        return f"{rate:.0%} of the labels are wrong by the reference models ({low:.0%} to {high:.0%})"
    return f"perhaps {rate:.0%} of the labels are wrong by the reference models, or none ({low:.0%} to {high:.0%})"


def _even(rate: float, n_classes: int) -> float:
    """The loss at which a label is as probably wrong as right."""
    rate = min(max(rate, 1e-9), 1.0 - 1e-9)
    return float(np.log1p((1.0 - rate) * (n_classes - 1) / rate))


def _reading(posterior: Posterior, cases: Cases, cost: float) -> Reading:
    clean = posterior.clean[cases.of_row]
    losses = rival_loss(clean, cases.codes[cases.of_row])
    logits = np.log(np.maximum(clean, np.finfo(float).tiny))
    return Reading(logits - logits.mean(axis=1, keepdims=True), None, None, posterior.channel, losses, cost=cost)


def _found(
    problem: SoftProblem, trials: Sequence[Trial], decision: Decision, reading: Reading, chosen: Fitted,
    plain: Fitted | None, posterior: Posterior,
) -> SoftFound:  # fmt: skip
    model = chosen.model if decision.index else None
    channel = _scaled(problem, reading, chosen)
    found = LabelFit(model, trials, decision, channel, reading.channel, cross=True)
    return SoftFound(found, chosen, plain, posterior.reference_models)


def _scaled(problem: SoftProblem, reading: Reading, chosen: Fitted) -> NoiseModel:
    """Probabilities of the chosen model stand as they are; decisions get the scale of the references' probabilities."""
    kind = output_kind(chosen.model)
    if kind == "predict_proba":
        return reading.channel
    raw = read_output(chosen.model, problem.X, kind=kind, labels=chosen.labels)
    scale = scaled_to(as_logits(raw, kind), reading.channel.proba(reading.clean), problem.fitted.prior)
    doubt = reading.channel.suspicion
    return replace(reading.channel, scale=scale, suspicion=None if doubt is None else replace(doubt, scale=scale))


def _unassessed(problem: SoftProblem, plain: Fitted | None, why: str) -> SoftFound:
    """The plain model, where there is too little data (or time) to assess anything else."""
    plain = plain or problem.plain()
    n, k = len(problem.fitted.codes), problem.n_classes
    identity = NoiseModel.identity(k)
    reading = Reading(np.zeros((n, k)), None, None, identity, np.zeros(n))
    only = Trial(math.inf, "plain", None, np.ones(n), fit=reading)
    return SoftFound(LabelFit(None, [only], Decision(0, why), identity, identity), plain, plain, {})
