"""Cross-fitted wrappers of estimators that are fitted on a Dask cluster, such as those of XGBoost and LightGBM."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..assessment import Assessment
from ..fingerprint import content_keys, mixed
from ..fitting import all_or_nothing
from ..label_noise import NoiseModel, logits_from_proba
from .crossfit import SAMPLE, LabelNoiseModel, ValueNoiseModel, cross_fit
from .dask_stages import RepeatedStages
from .dask_table import DaskTable, columns_of, is_frame, table
from .table import Block, drawn


class Part(NamedTuple):
    """Blocks of a table, or the rows of one half in them, as Dask arrays of known chunks."""

    blocks: list[Any]
    X: Any
    y: Any
    weight: Any

    @classmethod
    def of(cls, table: DaskTable, blocks: Sequence[Any], sizes: Any) -> Part:
        """Of delayed blocks of these sizes; those without rows are left out."""
        used = [(block, int(n)) for block, n in zip(blocks, sizes, strict=True) if n]

        def array(place: int, shape: tuple[int, ...], kind: Any) -> Any:
            return da.concatenate([da.from_delayed(block[place], (n, *shape), dtype=kind) for block, n in used])

        y = array(1, (), np.float64 if table.classes is None else np.intp)
        weight = array(2, (), np.float64) if table.weighted else None
        return cls([block for block, _ in used], array(0, (table.n_features,), table.dtype), y, weight)


class Halves(NamedTuple):
    """Rows split by their content, so that copies of a row are in the same half."""

    table: DaskTable
    seed: int
    sizes: NDArray[np.intp]  # rows of each half in every block
    mass: NDArray[np.floating[Any]]  # weight of every class in each half; of values, of all rows

    @classmethod
    def of(cls, table: DaskTable, seed: int) -> Halves:
        """One pass."""
        count = dask.delayed(_counted, pure=False, traverse=False)
        sizes, mass = zip(*dask.compute(*[count(part, seed, len(table.mass)) for part in table.parts]), strict=True)
        return cls(table, seed, np.array(sizes), np.sum(mass, axis=0))

    def part(self, half: int) -> Part:
        """One half, by tasks of its own: Dask must not meet a key again that it has fused with others before."""
        pick = dask.delayed(_picked, pure=False, traverse=False)
        return Part.of(self.table, [pick(own, self.seed, half) for own in self.table.parts], self.sizes[:, half])

    def sample(self) -> tuple[Block, NDArray[np.intp]]:
        """Some rows, by what they hold, with the weight that each stands for; and which half they are in."""
        n_classes = 0 if self.table.classes is None else len(self.table.classes)
        sample = drawn(self.table, self.seed, SAMPLE, n_classes)
        order = np.argsort(sample.rows)
        rows, weight = self.table.take(sample.rows[order]), sample.sample_weight
        if sparse.issparse(rows.X):
            raise ValueError("X must have dense blocks for a wrapped estimator, got sparse ones")
        return rows._replace(weight=None if weight is None else weight[order]), half_of(rows.X, self.seed)


def half_of(X: Any, seed: int) -> NDArray[np.intp]:
    """In which half rows are: not told by the same bits that draw the sample."""
    return (mixed(content_keys(X), seed + 1) & np.uint64(1)).astype(np.intp)


class _CrossFitWrapper(BaseEstimator):
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
            Rows; a table holds its labels or values. Features may be missing if the wrapped estimator takes that.
        y, sample_weight : dask array or Series, or str
            As :func:`selfpaced.dask.table` takes them; not if X is a table.

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
            asked, found = ("labels", "values") if labels else ("values", "labels")
            raise ValueError(f"X must be a table of {asked}, got one of {found}")
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
        """Decide by models of halves, and fit the kept kind to all rows."""
        sample = halves.sample() if halves.mass.all() else None

        def fitted(*given: Any) -> list[Any]:
            name = "weighted fit" if given else "plain fit"
            return [stages.run(f"{name} of half {k + 1}", partial(self._fitted, halves, (k,), *given)) for k in (0, 1)]

        def predicted(models: Any) -> tuple[Block, Any]:
            assert sample is not None
            rows, half = sample
            return rows, stages.run("predictions of the sample", partial(self._unseen, models, rows, half))

        kept = cross_fit(self._noise_model, halves.table.classes, halves.mass, fitted, predicted)
        given = (kept.models, kept.noise_model) if kept.weighted else ()
        name = "weighted fit" if given else "plain fit"
        every = tuple(np.flatnonzero(halves.sizes.any(axis=0)).tolist())  # one half may have no rows
        self.estimator_ = stages.run(name, partial(self._fitted, halves, every, *given))
        self.fold_estimators_ = [self.estimator_] * 2 if kept.models is None else kept.models
        self.seed_, self.noise_model_ = halves.seed, kept.noise_model
        self.lam_, (self.noise_rate_, self.noise_rate_interval_) = kept.noise_model.lam, kept.noise_model.rate
        self.path_, self.termination_ = kept.path, kept.termination
        self.repeated_ = tuple(stages.repeated)

    def _fitted(self, halves: Halves, which: tuple[int, ...], models: Any = None, noise_model: Any = None) -> Any:
        """The wrapped estimator, fitted to one half or to both; weights are made of (rows, models, pace) each time."""
        used = [halves.part(half) for half in which]
        weights = [part.weight for part in used]
        if models is not None:
            weights = [self._weight(halves.part(half), models[1 - half], noise_model) for half in which]
        given = {} if weights[0] is None else {"sample_weight": da.concatenate(weights)}
        X, y = da.concatenate([part.X for part in used]), da.concatenate([part.y for part in used])
        return clone(self.estimator).fit(X, y, **given)

    def _weight(self, part: Part, model: Any, noise_model: Any) -> Any:
        """The weights of rows by a model that has not seen them, times their own."""
        said = self._ask(model, part.X).to_delayed().ravel().tolist()
        call, known = dask.delayed(_assessed, pure=False, traverse=False), _shared(noise_model)
        blocks = zip(part.blocks, said, part.X.chunks[0], strict=True)
        found = [da.from_delayed(call(block, own, known).weight, (n,), dtype=np.float64) for block, own, n in blocks]
        weight = da.concatenate(found)
        return weight if part.weight is None else weight * part.weight

    def _unseen(self, models: Any, rows: Block, half: Any) -> Any:
        """Predictions of rows in memory by the models of the other half."""
        said = dask.compute(*[self._ask(model, da.from_array(rows.X)) for model in models])
        return _by_the_other(half, *said).astype(np.float64)

    def _ask(self, model: Any, X: Any, method: str = "") -> Any:
        """Predictions in blocks of whole rows: some come in one block for every column."""
        X = columns_of(self, X)
        said = getattr(model, method or self._asked)(X.to_dask_array() if is_frame(X) else X)
        if not isinstance(said, da.Array):
            raise TypeError(
                f"estimator must predict Dask arrays as Dask arrays, as those of xgboost.dask do, got "
                f"{type(said).__name__} from {type(self.estimator).__name__}"
            )
        return said.rechunk({1: -1}) if said.ndim == 2 else said

    def assessments(self, rows: DaskTable) -> list[Any]:
        """What is held of the rows of every block: delayed assessments, None for blocks without rows.

        Each row is assessed by the model of the half that it is not in: rows of the fit by one that has not seen them.
        """
        check_is_fitted(self, "estimator_")
        X = Part.of(rows, rows.parts, rows.sizes).X
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


class CrossFitClassifier(ClassifierMixin, _CrossFitWrapper):
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
        The label-noise model, and whether rows were weighed by it.
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
    :func:`selfpaced.suspects` and :func:`selfpaced.label_issues` list the rows of Dask collections or of a table, each
    assessed by a model that has not seen it.
    """

    _noise_model, _asked = LabelNoiseModel, "predict_proba"

    def predict(self, X: Any) -> Any:
        """The most probable label of every row, as a Dask array."""
        check_is_fitted(self, "estimator_")
        codes = self._ask(self.estimator_, X, "predict")
        return codes.map_blocks(_named, self.classes_, dtype=self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """The probability of every clean label, as a Dask array."""
        check_is_fitted(self, "estimator_")
        said = self._ask(self.estimator_, X)
        return said.map_blocks(_clean, self.noise_model_.channel, dtype=np.float64)


class CrossFitRegressor(RegressorMixin, _CrossFitWrapper):
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
        0.5, the probability of being wrong from which on rows mostly are, if they were weighed; ``inf`` is the plain
        model.
    """

    _noise_model, _asked = ValueNoiseModel, "predict"

    def predict(self, X: Any) -> Any:
        """The value of every row, as a Dask array."""
        check_is_fitted(self, "estimator_")
        return self._ask(self.estimator_, X, "predict")


def _shared(noise_model: Any) -> Any:
    """A noise_model as one task that those of all blocks ask: some are large."""
    return dask.delayed(noise_model.without_rows(), pure=False, traverse=False)


# ----------------------------------------------------------------------------------------------- on the workers


def _counted(block: Block, seed: int, n_classes: int) -> tuple[Any, Any]:
    half = half_of(block.X, seed)
    codes = block.y if n_classes > 1 else np.zeros(len(half), dtype=np.intp)
    mass = np.bincount(half * n_classes + codes, block.weight, minlength=2 * n_classes)
    return np.bincount(half, minlength=2), mass.reshape(2, n_classes)


def _picked(block: Block, seed: int, half: int) -> Block:
    return block.rows(np.flatnonzero(half_of(block.X, seed) == half))


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
