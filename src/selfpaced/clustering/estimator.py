"""Self-paced multi-view k-means as a scikit-learn clusterer."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..assessment import Assessment, AssessmentMixin, Values, fingerprint
from ..fitting import all_or_nothing, check_size, check_weight, interrupted_sentence, raise_interrupted
from ..parameters import KINDS, Rule
from ..robust import outlier_probability
from ..selection import Decision, path_of, sentence
from ..solver import Callback
from .embedding import SpectralEmbedding
from .kernels import Sweep, Views, distances, sweep
from .n_clusters import EXCELLENT, Count, count_clusters, mean_loss, numbers, usual_loss, view_trust
from .paced import Clustering, Plan, fit_paced, pace_of, resolve
from .views import (
    Distinct,
    Scaler,
    ViewInput,
    assemble,
    automatic_scaler,
    check_lengths,
    class_means,
    fit_scaler,
    missing_rows,
    working_dtype,
)

Floats = NDArray[Any]


class SelfPacedMultiViewKMeans(
    ViewInput, AssessmentMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    r"""Robust k-means for one or several views, with a weight for every sample in every view.

    Minimises, over labels :math:`c_i` and centres, the latent loss of every sample in every view,

    .. math:: \sum_i w_i \sum_v \phi(\lambda, \|x_i^v - \mu_{c_i}^v\|^2),

    whose slope is the weight of sample *i* in view *v*. The pace :math:`\lambda` is one for all views and
    restarts. It starts where a sample of median loss has half the full weight and grows by stages; all restarts
    run batched in shared matrix products, the weaker ones are dropped on the way, and the final one is the one
    of least latent objective. With a single view this is a robust k-means.

    Parameters
    ----------
    n_clusters : int, "auto" or a range of integers, default=8
        Number of clusters. "auto" (2 to the square root of the number of samples) or a range: the number on which
        halves of the samples, clustered apart, agree and have most in common; without excellent agreement, the number
        of the largest modularity of the neighbours graph, with a warning that it is unsure, see
        ``n_clusters_status_``. At most 2,000 samples take part in that choice.
    regularizer : str, Regularizer or None, default="welsch"
        Any elementwise rule of :mod:`selfpaced.regularizers` by name or instance, one made by ``from_loss``, or
        ``"mspl"`` (the logistic rule of multi-view self-paced learning). None is plain k-means.
    views : mapping or sequence, default=None
        For one array or data frame: view name -> its columns (names, indices or a slice), or the view name of
        every column. None: a single view. Not used when X is itself a list or dict of views.
    view_scaling : {"auto", "zscore", "variance", "unit-row", "none"}, default="auto"
        ``"zscore"`` gives every column unit variance and then every view total variance one; ``"variance"`` only
        the latter; ``"unit-row"`` gives every sample length one in every view. ``"auto"`` chooses for every view by
        its form: unit rows, then total variance one, for counts and tf-idf (non-negative, mostly zeros), z-scores for
        all others. With three views or more, each counts as far as its own clusters agree with those of the others.
    embedding : {None, "spectral"}, default=None
        Cluster per-view and joint spectral embeddings of nearest-neighbour graphs instead of the views.
    n_neighbors : int, default=10
        Neighbours of those graphs, and of those for spectral starts and for the number of clusters.
    n_init : int, default=20
        Restarts, from greedy k-means++. If there are several, and without an embedding, the best of them is compared
        at the last pace with starts at the spectral clusters of graphs of nearest neighbours (of all columns, and of
        the views on average; at most 1,000 samples).
    n_keep : int, default=5
        Restarts that outlive the first stages.
    pace : "auto", "paper", float or Pacing, default="auto"
        "auto" runs from the median loss of the best start, which has half weight at first, to the rule's own end (2.2
        times that for most); :class:`~selfpaced.pacing.Span` gives other ends and stages. "paper" follows the
        paper's schedule (half the samples first, lam times 1.05) until the mean weight stands still; a number is a
        fixed lam, in the unit of the scaled squared distances.
    max_iter : int, default=100
        Most sweeps at the last pace.
    tol : float, default=1e-5
        Relative change of the objective at which it has converged.
    outlier_threshold : float, default=3.5
        Samples whose log loss is this many robust standard deviations above the median are outliers.
    random_state : int, RandomState or None, default=None
        Seed of the restarts.
    callback : callable, default=None
        Called as ``callback(stage, solution)`` after every stage, see :func:`selfpaced.solver.walk`; a true answer
        ends the path.

    Attributes
    ----------
    labels_ : array of int (n,)
    n_clusters_ : int
        Number of clusters, chosen or given.
    n_clusters_status_ : {"given", "chosen", "unsure"}
        "unsure" if halves do not agree excellently on the chosen number (adjusted Rand index below 0.9).
    cluster_agreement_ : dict
        Number of clusters -> least agreement of halves of the samples (adjusted Rand index); empty if it was given.
    cluster_centers_ : array (k, d), or list or dict of them, as the views came
        In the units of the input (for ``"unit-row"`` of its unit rows).
    sample_weight_, sample_loss_ : array (n, V)
        Relative weight in [0, 1] and squared distance in scaled units, per sample and view; 0 for a missing view.
    view_weight_ : array (V,)
        Mean relative weight of every view, times its agreement with the others if ``view_scaling="auto"`` and
        without an embedding: near 0 for a view that has nothing in common with the others.
    view_names_ : list
        Names of the V views; an embedding adds ``"joint"``.
    view_scaling_ : dict
        View name -> the scaling that was used.
    outliers_ : array of bool (n,)
    lam_ : float
        The last pace.
    path_ : tuple of Candidate
        One per stage.
    inertia_ : float
        Weighted sum of squared distances in scaled units.
    objective_ : float
        The latent objective by which the restart was chosen.
    n_iter_ : int
        Sweeps over the data.
    termination_ : str
        How it ended.

    References
    ----------
    Fan, He, Liang, Hu: Self-Paced Learning: an Implicit Regularization Perspective, AAAI 2017.
    Xu, Tao, Xu: Multi-View Self-Paced Learning for Clustering, IJCAI 2015.

    Examples
    --------
    >>> from selfpaced import SelfPacedMultiViewKMeans
    >>> from selfpaced.datasets import make_multiview_digits
    >>> from sklearn.metrics import adjusted_rand_score
    >>> digits = make_multiview_digits()
    >>> model = SelfPacedMultiViewKMeans(n_clusters=10, n_init=5, random_state=0).fit(digits.views)
    >>> model.sample_weight_.shape
    (1797, 4)
    >>> adjusted_rand_score(digits.target, model.labels_) > 0.5
    True
    """

    _parameter_rules = {"n_clusters": Rule.asked(numbers), "regularizer": KINDS["rule or None"]}

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        regularizer: Any = "welsch",
        views: Any = None,
        view_scaling: str = "auto",
        embedding: str | None = None,
        n_neighbors: int = 10,
        n_init: int = 20,
        n_keep: int = 5,
        pace: Any = "auto",
        max_iter: int = 100,
        tol: float = 1e-5,
        outlier_threshold: float = 3.5,
        random_state: Any = None,
        callback: Callback | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.regularizer = regularizer
        self.views = views
        self.view_scaling = view_scaling
        self.embedding = embedding
        self.n_neighbors = n_neighbors
        self.n_init = n_init
        self.n_keep = n_keep
        self.pace = pace
        self.max_iter = max_iter
        self.tol = tol
        self.outlier_threshold = outlier_threshold
        self.random_state = random_state
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: ArrayLike | None = None,
    ) -> SelfPacedMultiViewKMeans:
        """Cluster the samples.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, d); or list or dict of them, one per view
            A row of NaN in a view means that the sample lacks that view. Where only some cells of a row are NaN, its
            distances are those of the other columns, scaled up to all of them.
        y : ignored
        sample_weight : array (n,), default=None
            Non-negative; samples of weight 0 get a label but no say.
        """
        tried = numbers(self.n_clusters)
        blocks = self._blocks(X, reset=True)
        for name, block in blocks.items():
            check_size(f"view {name!r}", block)
        n = check_lengths(blocks)
        weight = check_weight(sample_weight, n, relative=True)
        distinct = Distinct.of(blocks, weight)
        distinct.check_enough(max(tried, default=2), n)
        self._scalers = [self._scaler(name, block, weight) for name, block in blocks.items()]
        self.view_scaling_ = {scaler.name: scaler.scaling for scaler in self._scalers}
        self._dtype = working_dtype(blocks)
        data, _ = assemble(self._scalers, blocks, weight, self._dtype)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        self._embedding: SpectralEmbedding | None = None
        if len(tried) == 1:
            count = Count(tried[0], {})
        else:
            views = distinct.views(self._unscaled_columns(data, blocks, weight))
            count = count_clusters(views, tried, self.n_neighbors, rng)
        self.n_clusters_, self.cluster_agreement_ = count.n_clusters, count.agreement
        self.n_clusters_status_ = count.status
        trust = np.ones(len(blocks))
        if self.view_scaling == "auto" and self.embedding is None:
            trust = view_trust(distinct.views(data), self.n_clusters_, int(rng.integers(2**31)))
            self._scalers = [s.weighted(share) for s, share in zip(self._scalers, trust, strict=True)]
            data, _ = assemble(self._scalers, blocks, weight, self._dtype)
        if self.embedding is not None:
            self._embedding, data = SpectralEmbedding.fit(data, distinct, self.n_clusters_, self.n_neighbors)
        plan = self._plan(len(blocks))
        found = fit_paced(distinct.views(data), self.n_clusters_, plan, rng, self.callback)
        self._cost, self._centers = found.cost, [center[None] for center in found.centers]
        self._store(found, data, blocks, distinct, X)
        self.view_weight_[: len(trust)] *= trust
        self._warn(found)
        return self

    def _scaler(self, name: Hashable, block: Any, weight: Floats | None) -> Scaler:
        missing = missing_rows(name, block)
        if self.view_scaling == "auto":
            return automatic_scaler(name, block, missing, weight)
        return fit_scaler(name, block, self.view_scaling, missing, weight)

    def _unscaled_columns(self, data: Views, blocks: Mapping[Hashable, Any], weight: Floats | None) -> Views:
        """Views for the number of clusters: total variance one, but columns as they are."""
        if self.view_scaling != "auto":
            return data
        scalers = [
            fit_scaler(s.name, blocks[s.name], "variance", missing_rows(s.name, blocks[s.name]), weight)
            if s.scaling == "zscore"
            else s
            for s in self._scalers
        ]
        return assemble(scalers, blocks, weight, self._dtype)[0]

    def _plan(self, n_views: int) -> Plan:
        rule = resolve(self.regularizer)
        uneven = self.view_scaling in ("unit-row", "none") and self.embedding is None and n_views > 1
        pacing, typical = pace_of(rule, self.pace, uneven)
        return Plan(
            rule=rule,
            pacing=pacing,
            typical=typical,
            restarts=self.n_init,
            keep=self.n_keep,
            max_iter=self.max_iter,
            tol=self.tol,
            neighbors=0 if self._embedding is not None else self.n_neighbors,
            # Unit rows of an embedding are bounded: no gross outliers to guard the start against.
            robust=self._embedding is None and rule is not None,
        )

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the cluster of every sample, from all or some of the views.

        A dict may lack views, a list may hold None in their place, and a row of NaN is a view that the sample lacks.
        """
        data, places = self._prepare(X)
        return np.asarray(self._sweep(data, places).labels[0])

    def transform(self, X: Any) -> Floats:
        """Return the latent loss of every sample in every cluster, a mean over its views, of shape (n, n_clusters).

        Its smallest entry is the predicted cluster, except far from every centre, where all entries are equal.
        """
        data, places = self._prepare(X)
        norms = data.norms()
        total = np.zeros((data.n, self._centers[0].shape[1]))
        for v, place in enumerate(places):
            latent = self._cost.latent(distances(data.blocks[v], norms[v], self._centers[place][0])).T
            total += latent if data.present is None else latent * data.present[v][:, None]
        return total / (len(places) if data.present is None else data.present.sum(axis=0)[:, None])

    def score(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean of 1 - (latent loss of a sample) / (its latent loss in the next cluster).

        Between 0 and 1, larger is better. Unlike the loss it does not just grow with the number of clusters, so that
        a search over it can compare them; 0 for a single cluster.
        """
        losses = np.sort(self.transform(X), axis=1)
        weight = check_weight(sample_weight, len(losses), relative=True)
        if losses.shape[1] < 2:
            return 0.0
        apart = 1.0 - losses[:, 0] / np.maximum(losses[:, 1], np.finfo(float).tiny)
        return float(np.average(apart, weights=weight))

    def _assess(self, X: Any, y: Any) -> Assessment:  # noqa: ARG002
        data, places = self._prepare(X)
        losses = self._sweep(data, places).losses[:, 0]
        there = np.ones(losses.shape, bool) if data.present is None else data.present
        return self._assessment(losses, self._cost.weight(losses) * there, there)

    def _assessment(self, losses: Floats, weights: Floats, there: Floats, fingerprint: str = "") -> Assessment:
        """Samples far from their centre, by the mean of their losses over the views they have; arrays are (V, n)."""
        mean = mean_loss(losses, there)
        wrong = outlier_probability(self._usual.excess(mean), self._usual.spread, self._share)
        return Assessment(
            kind="samples",
            diagnosis=Values(mean, np.full_like(mean, self._usual.median), wrong),
            losses=losses.T / self._cost.unit,
            lam=self.lam_,
            rule=self._cost.rule,
            fingerprint=fingerprint,
            given_weight=weights.T,
        )

    @property
    def _n_features_out(self) -> int:
        return int(self._centers[0].shape[1])

    def _sweep(self, data: Views, places: list[int]) -> Sweep:
        return sweep(data, data.norms(), [self._centers[place] for place in places], self._cost, update=False)

    def _prepare(self, X: Any) -> tuple[Views, list[int]]:
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        check_lengths(blocks)
        data, places = assemble(self._scalers, blocks, dtype=self._dtype)
        return (data, places) if self._embedding is None else self._embedding.transform(data, places)

    def _store(
        self, found: Clustering, data: Views, blocks: Mapping[Hashable, Any], distinct: Distinct, X: Any
    ) -> None:
        """Fitted attributes from the solution; samples without weight are labelled by it too."""
        if distinct.complete:
            copy = distinct.copy
            labels, losses, weights = found.labels[copy], found.losses[:, copy], found.weights[:, copy]
        else:
            everyone = self._sweep(data, list(range(len(self._centers))))
            labels, losses = everyone.labels[0], everyone.losses[:, 0]
            weights = self._cost.weight(losses) * (1 if data.present is None else data.present)
        self.labels_, self.sample_loss_, self.sample_weight_ = labels, losses.T, weights.T
        there = np.ones(weights.shape, bool) if data.present is None else data.present
        weight = np.ones(data.n) if data.weight is None else data.weight
        self.view_weight_ = (weights @ weight) / (there @ weight)
        self.view_names_ = [*blocks, *(["joint"] if len(data.blocks) > len(blocks) else [])]
        loss = mean_loss(losses, there)
        self._usual = usual_loss(loss, data.weight, self.outlier_threshold)
        self.outliers_ = self._usual.excess(loss) > self.outlier_threshold * self._usual.spread
        self._share = float(np.average(self.outliers_, weights=weight))
        self.inertia_ = float(losses.sum(axis=0, dtype=np.float64) @ weight)
        self.objective_, self.lam_, self.n_iter_ = found.objective, found.cost.lam, found.sweeps
        self.assessment_ = self._assessment(losses, weights, there, fingerprint(X))
        self._describe(found, blocks)

    def _describe(self, found: Clustering, blocks: Mapping[Hashable, Any]) -> None:
        """Centres in the input's units, and the sentence about the end; a warning if it came too early."""
        centers = {}
        for scaler, center in zip(self._scalers, self._centers, strict=False):
            if self._embedding is None:
                centers[scaler.name] = scaler.invert(center[0])
            else:
                centers[scaler.name] = class_means(blocks[scaler.name], self.labels_, self.n_clusters_)
        self.cluster_centers_: Any = centers
        if self._kind != "dict":
            self.cluster_centers_ = list(centers.values()) if self._kind == "list" else centers[0]
        decision = Decision(len(found.trials) - 1, self._reason(found))
        self.path_, self.termination_ = path_of(found.trials, decision), sentence(found.trials, decision)
        if found.interrupted:
            self.termination_ = interrupted_sentence(found.trials[-1].label)

    def _reason(self, found: Clustering) -> str:
        where = "it was requested" if found.cost.rule is None else f"the end of the path at lam = {self.lam_:.4g}"
        how = "converged" if found.converged else f"stopped by max_iter = {self.max_iter}"
        many = Count(self.n_clusters_, self.cluster_agreement_)
        return f"{many}{where}, best of {self.n_init} restarts by latent objective, {how} after {self.n_iter_} sweeps"

    def _warn(self, found: Clustering) -> None:
        if found.interrupted:
            raise_interrupted(self)
        if not found.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} sweeps at the last pace; "
                "the best solution so far is kept. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if self.n_clusters_status_ == "unsure":
            best = self.cluster_agreement_[self.n_clusters_]
            warnings.warn(
                f"the number of clusters is unsure: with {self.n_clusters_} clusters, halves of the samples agree by "
                f"only {best:.2f} (adjusted Rand index; clear clusters reach {EXCELLENT}). Give n_clusters if you "
                "know it",
                ConvergenceWarning,
                stacklevel=4,
            )
        if len(np.unique(self.labels_)) < self.n_clusters_:
            warnings.warn(
                f"only {len(np.unique(self.labels_))} of n_clusters={self.n_clusters_} clusters hold samples: "
                "there may be too few distinct samples",
                ConvergenceWarning,
                stacklevel=4,
            )
