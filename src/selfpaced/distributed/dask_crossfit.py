"""Cross-fitted wrappers of estimators that are fitted on a Dask cluster, such as those of XGBoost and LightGBM."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..assessment import Assessment
from ..fitting import all_or_nothing
from ..label_noise import NoiseModel, logits_from_proba
from ..selection import Decision, Trial, path_of, sentence
from . import Block
from .dask_halves import Halves, Piece, features_of, half_of
from .dask_stages import RepeatedStages
from .dask_table import DaskTable, table
from .noise_models import LabelNoiseModel, ValueNoiseModel


class _Wrapper(BaseEstimator):
    """What classifier and regressor share: two halves, a pace, a choice on unseen rows, one fit of all rows."""

    _noise_model: Any
    _asked: str
    classes_: Any

    def __init__(self, estimator: Any, *, random_state: Any = 0) -> None:
        self.estimator = estimator
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model and weigh the rows.

        There is a complete model only at the end: an error or Ctrl-C before leaves the wrapper as it was.

        Parameters
        ----------
        X : DaskTable, dask array or dask DataFrame
            Rows; a table holds its labels or values. Features may be missing where the wrapped estimator takes that.
        y, sample_weight : dask array or Series, or str
            As :func:`selfpaced.dask.table` takes them; not where X is a table.

        Returns
        -------
        self
        """
        labels = self._noise_model is LabelNoiseModel
        if not hasattr(self.estimator, self._asked):
            raise TypeError(f"estimator must have {self._asked}, got {type(self.estimator).__name__}")
        stages = RepeatedStages()
        rows = X if isinstance(X, DaskTable) else table(X, y, sample_weight, labels=labels, gaps=True)
        if (rows.classes is None) == labels:
            raise ValueError(f"X must be a table of {'labels' if labels else 'values'}, got one of the other")
        seed = int(check_random_state(self.random_state).randint(1 << 31))
        halves = Halves.of(rows, seed)
        self.n_features_in_ = rows.n_features
        if rows.names is not None:
            self.feature_names_in_ = np.asarray(rows.names, dtype=object)
        if rows.classes is not None:
            self.classes_ = rows.classes
        self._run(halves, stages)
        return self

    def _run(self, halves: Halves, stages: RepeatedStages) -> None:
        """The path, by models of halves: of unseen rows what is wrong, weights by it, and whether they help."""
        if not halves.mass.all():
            noise_model = self._noise_model.silent(halves.table.classes, halves.mass)
            self._end(halves, stages, None, noise_model, [Trial(math.inf, "plain")], Decision(0, noise_model.reason))
            return
        seen, half = halves.sample()
        models = self._both(halves, stages, "plain fit")
        before = stages.run("plain models asked", partial(self._unseen, models, seen, half))
        noise_model = self._noise_model.of(halves.table.classes, seen, before)
        trials, decision = [Trial(math.inf, "plain")], Decision(0, noise_model.reason)
        if not noise_model.reason:
            paced = noise_model.weighing()
            weighted = self._both(halves, stages, "weighted fit", models, paced)
            after = stages.run("weighted models asked", partial(self._unseen, weighted, seen, half))
            trials, decision = paced.choose(seen, before, after)
            if decision.index:
                models, noise_model = weighted, paced
        self._end(halves, stages, models, noise_model, trials, decision, seen.weight)

    def _end(
        self, halves: Halves, stages: RepeatedStages, models: Any, noise_model: Any, trials: Any, decision: Decision,
        sample_weight: Any = None,
    ) -> None:  # fmt: skip
        """The kept kind of model, of all rows, and what is known of it."""
        given = (models, noise_model) if decision.index else ()
        name = "weighted fit" if decision.index else "plain fit"
        self.estimator_ = stages.run(name, partial(self._fitted, halves, (0, 1), *given))
        self.fold_estimators_ = [self.estimator_] * 2 if models is None else models
        self.seed_, self.noise_model_ = halves.seed, noise_model
        self.lam_, (self.noise_rate_, self.noise_rate_interval_) = noise_model.lam, noise_model.rate
        self.path_ = path_of(trials, decision, sample_weight)
        self.termination_, self.repeated_ = sentence(trials, decision), tuple(stages.repeated)

    def _both(self, halves: Halves, stages: RepeatedStages, name: str, *given: Any) -> list[Any]:
        """A model of each half."""
        return [stages.run(f"{name} of half {k + 1}", partial(self._fitted, halves, (k,), *given)) for k in (0, 1)]

    def _fitted(self, halves: Halves, parts: tuple[int, ...], models: Any = None, noise_model: Any = None) -> Any:
        """The wrapped estimator, fitted to one half or to both; weights are made of (rows, models, pace) each time."""
        used = [halves.pieces(half) for half in parts]
        every = [piece for pieces in used for piece in pieces]
        own = None
        if models is not None:
            own = [
                assessed.weight
                for half, pieces in zip(parts, used, strict=True)
                for assessed in self._assessed_pieces(halves, pieces, models[1 - half], noise_model)
            ]
        weight = halves.weight(every, own)
        given = {} if weight is None else {"sample_weight": weight}
        return clone(self.estimator).fit(halves.features(every), halves.target(every), **given)

    def _assessed_pieces(self, halves: Halves, pieces: list[Piece], model: Any, noise_model: Any) -> list[Any]:
        """Delayed assessments of blocks, by a model that has not seen their rows."""
        said = self._ask(model, halves.features(pieces)).to_delayed().ravel().tolist()
        call, known = dask.delayed(_assessed, pure=False, traverse=False), _shared(noise_model)
        return [call(piece.block, own, known) for piece, own in zip(pieces, said, strict=True)]

    def _unseen(self, models: Any, rows: Block, half: Any) -> Any:
        """What the models of the other half say of rows that are here."""
        said = dask.compute(*[self._ask(model, da.from_array(rows.X)) for model in models])
        return _by_the_other(half, *said).astype(np.float64)

    def _ask(self, model: Any, X: Any) -> Any:
        return _whole_rows(getattr(model, self._asked)(X))

    def assessments(self, rows: DaskTable) -> list[Any]:
        """What is held of the rows of every block: delayed assessments, None for blocks without rows.

        Each row is assessed by the model of the half that it is not in: rows of the fit by one that has not seen them.
        """
        check_is_fitted(self, "estimator_")
        pieces = [Piece(part, int(n)) for part, n in zip(rows.parts, rows.sizes, strict=True) if n]
        X = features_of(rows, pieces)
        said = zip(*[self._ask(model, X).to_delayed().ravel().tolist() for model in self.fold_estimators_], strict=True)
        call, known = dask.delayed(_assessed_by_the_other, pure=False, traverse=False), _shared(self.noise_model_)
        return [
            call(part, *next(said), self.seed_, known) if n else None
            for part, n in zip(rows.parts, rows.sizes, strict=True)
        ]

    def assessment_of_one(self, rows: DaskTable) -> Assessment:
        """An assessment of the first row, made here, that shows what those of blocks look like."""
        block = rows.take(np.arange(1))
        said = np.zeros(1) if rows.classes is None else np.full((1, len(rows.classes)), 1 / len(rows.classes))
        found: Assessment = self.noise_model_.assessed(block, said)
        return found

    def _features(self, X: Any) -> Any:
        """Columns of a frame as they were in the fit, and arrays as they are."""
        if hasattr(X, "columns") and hasattr(X, "partitions"):
            X = X[list(self.feature_names_in_)].to_dask_array()
        return X


class CrossFitClassifier(ClassifierMixin, _Wrapper):
    """Fit any Dask classifier with less weight for rows whose label is probably wrong.

    Rows are split into two halves by their content. A model of each half predicts the other half, and a sample of
    these predictions gives the label-noise model. Weighted models of both halves are compared with the plain ones on
    rows they have not seen, and the better kind is fitted to all rows. The cost is three plain fits, or two if no
    noise is detected. If a worker dies, its stage is repeated from the models of the stage before.

    This is not the algorithm of :class:`selfpaced.SelfPacedClassifier`, which fits soft labels.

    Parameters
    ----------
    estimator : estimator
        With ``fit(X, y, sample_weight)`` and ``predict_proba(X)`` of Dask arrays, such as
        ``xgboost.dask.DaskXGBClassifier`` and ``lightgbm.DaskLGBMClassifier``. It gets labels as numbers from 0 on.
    random_state : int, RandomState or None, default=0
        Splits the rows into halves and draws the sample.

    Attributes
    ----------
    estimator_, fold_estimators_ : estimator, list of estimator
        The model of all rows, and those of both halves.
    classes_ : ndarray
        The labels.
    noise_model_ : LabelNoiseModel
        The noise channel, and whether rows were weighed by it.
    lam_ : float
        The noise rate by which rows were weighed; ``inf`` is the plain model.
    noise_rate_, noise_rate_interval_ : float, tuple of float
        Estimated share of wrong labels.
    path_ : tuple of Candidate
        The plain and the weighted model, with their scores on unseen rows.
    termination_ : str
        What was kept, and why.
    repeated_ : tuple of str
        Stages that were done again because workers had died.

    Notes
    -----
    Weights, losses and suspects are those of :func:`selfpaced.dask.weights`, :func:`selfpaced.dask.losses` and
    :func:`selfpaced.dask.suspects`, with the table as their second argument.
    """

    _noise_model, _asked = LabelNoiseModel, "predict_proba"

    def predict(self, X: Any) -> Any:
        """The most probable label of every row, as a Dask array."""
        check_is_fitted(self, "estimator_")
        codes = self.estimator_.predict(self._features(X))
        return codes.map_blocks(_named, self.classes_, dtype=self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """The probability of every clean label, as a Dask array."""
        check_is_fitted(self, "estimator_")
        said = self._ask(self.estimator_, self._features(X))
        return said.map_blocks(_clean, self.noise_model_.channel, dtype=np.float64)


class CrossFitRegressor(RegressorMixin, _Wrapper):
    """Fit any Dask regressor with less weight for grossly wrong values.

    As :class:`CrossFitClassifier`, with :mod:`selfpaced.value_noise` in place of the label-noise model: it tells gross
    errors from values that the model merely fits badly.

    Parameters
    ----------
    estimator : estimator
        With ``fit(X, y, sample_weight)`` and ``predict(X)`` of Dask arrays, such as
        ``xgboost.dask.DaskXGBRegressor`` and ``lightgbm.DaskLGBMRegressor``.
    random_state : int, RandomState or None, default=0
        Splits the rows into halves and draws the sample.

    Attributes
    ----------
    estimator_, fold_estimators_, noise_rate_, noise_rate_interval_, path_, termination_, repeated_
        As those of :class:`CrossFitClassifier`.
    noise_model_ : ValueNoiseModel
        The assessment, and whether rows were weighed by it.
    lam_ : float
        0.5, the probability of being wrong from which on rows mostly are, where they were weighed; ``inf`` is the plain
        model.
    """

    _noise_model, _asked = ValueNoiseModel, "predict"

    def predict(self, X: Any) -> Any:
        """The value of every row, as a Dask array."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(self._features(X))


def _whole_rows(said: Any) -> Any:
    """Predictions in blocks of whole rows: some come in one block for every column."""
    return said.rechunk({1: -1}) if said.ndim == 2 else said


def _shared(noise_model: Any) -> Any:
    """A noise_model as one task that those of all blocks ask: some are large."""
    return dask.delayed(noise_model.without_rows(), pure=False, traverse=False)


# ----------------------------------------------------------------------------------------------- on the workers


def _by_the_other(half: Any, first: Any, second: Any) -> Any:
    """Predictions of the model of the other half, by that in which rows are."""
    return np.where(half.reshape((-1,) + (1,) * (np.ndim(first) - 1)) == 0, second, first)


def _assessed(block: Block, said: Any, noise_model: Any) -> Assessment:
    found: Assessment = noise_model.assessed(block, np.asarray(said, dtype=np.float64))
    return found


def _assessed_by_the_other(block: Block, first: Any, second: Any, seed: int, noise_model: Any) -> Assessment:
    return _assessed(block, _by_the_other(half_of(block.X, seed), first, second), noise_model)


def _named(codes: Any, classes: Any) -> Any:
    return classes[np.asarray(codes).astype(np.intp)]


def _clean(proba: Any, channel: NoiseModel) -> Any:
    return channel.proba(logits_from_proba(proba))


__all__ = ["CrossFitClassifier", "CrossFitRegressor"]
