"""PRMF, an L1 factorization, and SelfPacedMF, which starts from it and finds outliers on the way."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..fitting import Progress, interrupted_sentence, raise_interrupted
from ..pacing import Fixed, Geometric, Pacing
from ..parameters import KINDS, check_pace
from ..regularizers import get
from ..robust import ScaleStop, noise_scale
from ..selection import Candidate, Decision, path_of, sentence
from ..solver import Callback
from .base import Factorization
from .engine import (
    HELD_OUT_ENTRIES,
    NO_MEANS,
    SCALE_ENTRIES,
    Engine,
    Levels,
    Means,
    WeightedSolve,
    from_csr,
    grid_of,
    resolve,
)
from .inputs import Observed
from .rank import MEANS_ONLY, NOT_CHECKED, RECOVERED, UNRELIABLE, FormChoice, choose_form, fit_quality, thinned
from .residuals import fit_cell_errors, gains, odd_raters, relative_gains
from .solve import FactorRun, Recipe, Solver
from .start import RIDGE_END, SMOOTHING, centred, random_factors

REFITS = 2  # a choice: fits against raters who push columns, see benchmarks/factorization.py, part attacks
LEAST_ROW_WEIGHT = 1e-3  # numerical safety: of the usual weight; rows without weight would count as missing


class PRMF(Factorization):
    r"""Probabilistic robust matrix factorization: L1 loss, L2 penalty, by iteratively reweighted least squares.

    Minimises :math:`\sum |y_{ij} - u_i^T v_j| + \tfrac{\rho}{2} (\|U\|_F^2 + \|V\|_F^2)`, the L1 loss smoothed below a
    quarter of the spread of the residuals. It is the paper's baseline and the start of :class:`SelfPacedMF`.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Number of components; "auto" takes the largest drop of the singular values under a strong ridge.
    ridge : float, default=0.005
        The penalty as a share of the smallest one that makes everything zero.
    continuation : bool, default=True
        Whether the ridge falls to its value from large ones, with spare factors at first. Without it most runs fail
        when more than 40 % of the entries are wrong.
    rescue : bool, default=False
        Refit starved rows and columns, as SelfPacedMF does.
    polish : int or bool, default=0
        Least-squares sweeps without outliers at the end, as SelfPacedMF does.
    max_iter : int, default=30
        Sweeps.
    max_rank : int, default=12
        The largest rank that "auto" looks for.
    backend, n_jobs, random_state, verbose
        As in :class:`SelfPacedMF`.

    Attributes
    ----------
    components_, row_factors_, entry_weight_, sample_loss_, outliers_, rank_, scale_, n_iter_, termination_
        As in :class:`SelfPacedMF`; the weights are all 1.

    References
    ----------
    Wang, Yao, Wang, Yeung: A Probabilistic Approach to Robust Matrix Factorization. ECCV 2012.

    Examples
    --------
    >>> from selfpaced import PRMF
    >>> from selfpaced.datasets import make_low_rank
    >>> made = make_low_rank(random_state=0)
    >>> PRMF(rank=4, random_state=0).fit(made.data).components_.shape
    (4, 100)
    """

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        ridge: float = RIDGE_END,
        continuation: bool = True,
        rescue: bool = False,
        polish: int | bool = 0,
        max_iter: int = 30,
        max_rank: int = 12,
        backend: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.ridge = ridge
        self.continuation = continuation
        self.rescue = rescue
        self.polish = polish
        self.max_iter = max_iter
        self.max_rank = max_rank
        self.backend = backend
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit_entries(self, recipe: Recipe, rank: int | None, observed: Observed) -> list[str]:
        engine, rng = resolve(self.backend, self.n_jobs), np.random.default_rng(self._seed)
        centre = centred(engine, from_csr(observed.matrix, observed.sample_weight))
        with Progress(self, total=self.max_iter + recipe.polish).running() as progress:
            solver = Solver(centre, recipe, progress.tick)
            if self.continuation or rank is None:
                factors = solver.warm_start(rank, rng)
            else:
                factors = random_factors(centre.entries, rank, rng)
                factors = solver.descend(factors, np.full(self.max_iter, solver.ridge))
            warm = solver.sweeps
            run = solver.follow(factors, self._seed)
        self._polished = bool(recipe.polish)
        self.n_iter_ = run.sweeps + warm
        self._remember(solver)
        levels, side = centre.levels, centre.entries.by_row
        del solver, centre
        self._keep(run, engine, side, observed, levels)
        reason = f"it was requested; {self.n_iter_} sweeps, rank {self.rank_}, noise scale {self.scale_:.3g}"
        self.path_ = path_of(run.trials, Decision(0, reason))
        self.termination_ = sentence(run.trials, Decision(0, reason))
        if run.interrupted:
            self.termination_ = interrupted_sentence("the L1 factorization so far")
            raise_interrupted(self)
        return []

    def _recipe(self) -> Recipe:
        polish = 8 if self.polish is True else self.polish
        return Recipe(
            regularizer=None,
            pacing=None,
            ridge=float(self.ridge),
            warm_sweeps=int(self.max_iter),
            rescue=bool(self.rescue),
            polish=int(polish),
            max_rank=int(self.max_rank),
        )

    def _adopt(self, run: FactorRun, solver: Solver, levels: Levels) -> PRMF:
        """The start of a path as a fitted estimator: factors, scale, transform; no weights of its own."""
        U, V, _ = solver.balanced(*run.plain)
        residuals = solver.engine.sampled_residuals(solver.entries, U, V)
        self._adopt_factors(U, V, levels, (solver.entries.empty_rows(), solver.entries.empty_columns()))
        self.scale_, self.lam_ = noise_scale(residuals, solver.floor), math.inf
        self._step = WeightedSolve(None, math.inf, solver.ridge, max(SMOOTHING * self.scale_, solver.floor))
        self._remember(solver)
        self._polished, self._usual_rows = False, None
        self.n_features_in_ = solver.entries.shape[1]
        return self


class SelfPacedMF(Factorization):
    r"""Robust matrix factorization with missing entries, by self-paced learning.

    Minimises over :math:`U, V` the latent objective

    .. math:: \sum_{(i,j)\ \text{observed}} \phi(\lambda, |y_{ij} - u_i^T v_j|)
              + \tfrac{\rho}{2} (\|U\|_F^2 + \|V\|_F^2)

    while the pace :math:`\lambda` opens: entries that fit well count first, gross errors last or never. The start is
    an L1 factorization with a falling ridge (:class:`PRMF`); the path stops by itself when entries about seven noise
    scales off would get half weight; rows and columns that the fit has lost are refitted from random subsets; and a
    least-squares polish without the outliers ends it.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Number of components. "auto" holds out a few per cent of the entries and takes the smallest rank that predicts
        them as well as the best; 0, the means alone, if components predict them no better.
    regularizer : str or Regularizer, default="mixture"
        Any rule of :mod:`selfpaced.regularizers`, also one made by ``from_loss``. It sees the absolute residual as
        the loss. Weights are taken relative to their maximum. Group rules balance the rows of the matrix.
    center : {"auto", "both", "rows", "columns"} or None, default="auto"
        Whether every row and every column has a mean of its own beside the components. "auto" decides between both and
        none by the held-out entries.
    pace : "auto", "paper", float or Pacing, default="auto"
        "auto": the loss of half weight grows by 1.44 per sweep until it is 6.7 noise scales
        (:class:`~selfpaced.robust.Opening`). "paper" starts at half the entries and grows lam by 1.05 to the same
        stop. A number is a fixed lam: half-quadratic optimisation. A :class:`~selfpaced.pacing.Pacing` is followed to
        its end; ``Graduated(bound)`` is graduated non-convexity.
    ridge : float or "auto", default="auto"
        The penalty of the components as a share of the smallest one that makes them zero (the spectral norm of the
        signs, means taken off), which makes it free of units. "auto" takes 0.005 unless a stronger one predicts the
        held-out entries better. Means are not penalised.
    init : {"warm", "random"}, default="warm"
        Start of the path: the L1 factorization, or random factors (for comparisons; not advised).
    rescue : bool, default=True
        Whether starved rows and columns are refitted.
    polish : int or bool, default=8
        Least-squares sweeps at the end, up to four times as many as long as the noise scale falls; 0 if outliers are
        hardly larger than the noise.
    warm_sweeps : int, default=28
        Sweeps of the warm start.
    max_sweeps : int, default=200
        Number of sweeps after which a path without a stop of its own ends, with a warning.
    tol : float, default=1e-4
        Relative change of the residuals at which the last pace has converged (for pacings that end by themselves).
    reweight_rows : int or "auto", default="auto"
        Fits to add, in each of which every row counts by its ``row_gain_`` over the usual one, 1 at most: against
        raters who push items. Each takes as long as the first fit. "auto" adds 2 to ratings (``bounds`` are given, or
        values in equal steps) if some column has twice as many rows of less than half the usual gain as others have.
    bounds : tuple of two floats, optional
        The range of the values, such as ``(1, 5)``: :meth:`predict` stays within it.
    max_rank : int, optional
        The largest rank that "auto" looks for; by default what the entries of a usual row or column can support, 64 at
        most. A rank that comes out as large as this is a warning.
    backend : {"auto", "numba", "numpy"}, default="auto"
        "auto" uses numba if it is installed. Both give the same result.
    n_jobs : int, optional
        Threads of the compiled kernels; None is 1, -1 all cores. The result does not depend on it.
    callback : callable, optional
        Called as ``callback(stage, solution)`` after every stage, see :func:`selfpaced.solver.walk`;
        ``solution.model`` has the factors ``U`` and ``V``. A true answer ends the path.
    random_state : int, RandomState or None
        Seed of the starts and of the rescue.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    components_ : ndarray of shape (rank_, n_columns)
        The column factors, orthogonal, largest first.
    row_factors_ : ndarray of shape (n_rows, rank_)
        The row factors. The fitted matrix is ``row_factors_ @ components_`` and the means.
    center_ : {"both", "rows", "columns"} or None
        Which means are part of the model.
    mean_ : float
    row_means_, column_means_ : ndarray of shape (n_rows,) and (n_columns,)
        How far every row and column is above or below ``mean_``; zeros if they are no part of the model.
    quality_ : {"recovered", "means only", "unreliable", "not checked"}
        Compares held-out predictions of a converged fit with those of the means: the components predict better; they
        do not; or independent fits disagree. "not checked" if rank, ridge and center were all given, or if there are
        too few entries.
    rank_path_ : tuple of Candidate
        The means alone and every rank tried, with the biweight score of the held-out entries; empty if not checked.
    entry_weight_ : same layout as the input
        Weight of every observed entry in [0, 1]; NaN where nothing was observed.
    sample_loss_ : same layout as the input
        The absolute residual of every observed entry.
    outliers_ : structured array
        Likely errors, the entries that are more probably wrong than right: ``row``, ``column``, ``value``,
        ``expected``, ``weight``, largest residual first; rows and columns by their labels if they have any.
        :meth:`assess` has the second level, entries worth a look.
    row_weight_, column_weight_ : ndarray
        The mean weight of every row's and column's entries; NaN without entries.
    row_gain_, column_gain_ : ndarray
        By which raters can be ranked: how much better a row's entries are predicted from each other, by columns fitted
        to other rows, than by the row's own mean. About 1 is all, 0 or less is nothing; NaN without entries.
    row_labels_, column_labels_ : ndarray or None
        Ids of a long frame, or index and columns of a labelled one; None: rows and columns are their positions.
    low_rank_, sparse_ : array
        The fitted matrix with its means, and what the outliers add to it.
    rank_ : int
    scale_ : float
        Standard deviation of the noise.
    lam_ : float
        The last pace.
    path_ : tuple of Candidate
        One record per pace, the plain start first; the score is minus the noise scale.
    plain_ : PRMF
        The start of the path, as a fitted estimator.
    n_iter_ : int
        All sweeps, those of the warm start included, those of the choice of rank, ridge and means not.
    n_rescued_ : int
        Rows and columns that were refitted.
    missing_rows_, missing_columns_ : ndarray of int
        Those without any entry; their factors are zero.
    termination_ : str
        What was chosen and why.

    References
    ----------
    Fan, He, Liang, Hu: Self-Paced Learning: an Implicit Regularization Perspective. AAAI 2017.
    Wang, Yao, Wang, Yeung: A Probabilistic Approach to Robust Matrix Factorization. ECCV 2012.

    Examples
    --------
    >>> from selfpaced import SelfPacedMF
    >>> from selfpaced.datasets import make_low_rank
    >>> made = make_low_rank(random_state=0)            # 40 % missing, a third of the rest grossly wrong
    >>> model = SelfPacedMF(random_state=0).fit(made.data)
    >>> model.rank_
    4
    >>> bool(((model.reconstruct() - made.truth) ** 2).mean() ** 0.5 < 0.06)
    True
    >>> first = model.outliers_[0]
    >>> bool(made.outlier_mask[first["row"], first["column"]])
    True
    """

    _parameter_rules = {"max_rank": KINDS["integer or None"], "ridge": KINDS["number or auto"]}

    def __init__(
        self,
        rank: int | str = "auto",
        regularizer: Any = "mixture",
        *,
        center: str | None = "auto",
        pace: Any = "auto",
        ridge: float | str = "auto",
        init: str = "warm",
        rescue: bool = True,
        polish: int | bool = 8,
        warm_sweeps: int = 28,
        max_sweeps: int = 200,
        tol: float = 1e-4,
        reweight_rows: int | str = "auto",
        bounds: tuple[float, float] | None = None,
        max_rank: int | None = None,
        backend: str = "auto",
        n_jobs: int | None = None,
        callback: Callback | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.regularizer = regularizer
        self.center = center
        self.pace = pace
        self.ridge = ridge
        self.init = init
        self.rescue = rescue
        self.polish = polish
        self.warm_sweeps = warm_sweeps
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.reweight_rows = reweight_rows
        self.bounds = bounds
        self.max_rank = max_rank
        self.backend = backend
        self.n_jobs = n_jobs
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def _fit_entries(self, recipe: Recipe, rank: int | None, observed: Observed) -> list[str]:
        doubts = self._fit_once(recipe, rank, observed)
        more = self.reweight_rows
        if isinstance(more, str):
            more = REFITS if self._pushed(observed) else 0
        for done in range(1, more + 1):
            doubts = self._fit_once(recipe, rank, self._weighted_by_gain(observed), done)
        return doubts

    def _pushed(self, observed: Observed) -> bool:
        """Whether the entries are ratings, and raters of some column are predicted worse than others; uses a sample."""
        matrix, weights = observed.matrix, observed.sample_weight
        if self.bounds is None and grid_of(matrix.data[:: max(matrix.data.size // SCALE_ENTRIES, 1)]) is None:
            return False
        if matrix.data.size <= SCALE_ENTRIES:
            return odd_raters(self._side, self.row_gain_, self.n_features_in_)
        size = max(matrix.shape[0] * SCALE_ENTRIES // matrix.data.size, 1)
        drawn = np.sort(np.random.default_rng(self._seed).choice(matrix.shape[0], size, replace=False))
        side = from_csr(*thinned(matrix, weights, drawn, np.arange(matrix.shape[1])), both=False).by_row
        rows, columns = self._lines()
        some = replace(rows, factors=rows.factors[drawn], means=rows.means[drawn])
        found = gains(side, some, columns, self.mean_, self.scale_, self._seed)
        return odd_raters(side, found, matrix.shape[1])

    def _fit_once(self, recipe: Recipe, rank: int | None, observed: Observed, again: int = 0) -> list[str]:
        """Choose the form, walk the path and set the fitted attributes."""
        engine, means = resolve(self.backend, self.n_jobs), self._means()
        with Progress(self, total=self.warm_sweeps + 11 + recipe.polish).running() as progress:
            choice = self._choice(engine, observed, rank, means)
            guarded = False
            if choice is not None:
                rank, means, guarded = choice.form.rank, (choice.form.means,), choice.form.guarded
                room = choice.room if self.rank == "auto" else 0
                recipe = replace(recipe, ridge=choice.form.ridge, room=room)
            entries = from_csr(observed.matrix, observed.sample_weight)
            centre = centred(replace(engine, means=means[-1]), entries, guarded)
            side = entries.by_row
            del entries
            solver = Solver(centre, recipe, progress.tick, self.callback)
            factors = solver.grown_start(rank, np.random.default_rng(self._seed))
            warm = solver.sweeps
            run = solver.follow(factors, self._seed)
        self._polished, self.n_iter_, self.n_rescued_ = bool(recipe.polish), run.sweeps + warm, run.rescued
        levels = centre.levels
        self.plain_ = self._plain(run, solver, levels)
        self._remember(solver)
        del solver, centre  # the entries by column go before the weights come: peak memory
        held_out = 0.0 if choice is None else fit_cell_errors(choice.form.errors).scale
        return self._tell(run, choice, self._keep(run, engine, side, observed, levels, held_out), again)

    def _weighted_by_gain(self, observed: Observed) -> Observed:
        """The entries, those of rows of less than the usual gain with less weight."""
        share = np.maximum(relative_gains(self.row_gain_), LEAST_ROW_WEIGHT)
        weight = np.repeat(share, np.diff(observed.matrix.indptr)).astype(observed.matrix.dtype)
        given = observed.sample_weight
        return replace(observed, sample_weight=weight if given is None else given * weight)

    def _choice(
        self, engine: Engine, observed: Observed, rank: int | None, means: tuple[Means, ...]
    ) -> FormChoice | None:
        """Rank, ridge and means by held-out entries, unless all are given or there are too few entries."""
        given = rank is not None and self.ridge != "auto" and len(means) == 1
        if given or observed.matrix.data.size < HELD_OUT_ENTRIES:
            return None
        form = (rank, None if isinstance(self.ridge, str) else float(self.ridge), means)
        # a stream of its own: the fit to all entries is the same whether the form was found or given
        rng = np.random.default_rng([self._seed, 1])
        return choose_form(engine, (observed.matrix, observed.sample_weight), form, self.max_rank, rng)

    def _tell(self, run: FactorRun, choice: FormChoice | None, outliers: int, refits: int) -> list[str]:
        """Set path, quality and closing sentence; returns what is to be warned of."""
        quality = None
        self.quality_ = NOT_CHECKED
        self.rank_path_: tuple[Candidate, ...] = ()
        if choice is not None:
            quality = fit_quality(choice, self.reconstruct(*choice.places[:2]))
            self.quality_, self.rank_path_ = quality.status, path_of(choice.trials, Decision(choice.index, ""))
        found = "found" if self.rank == "auto" else "given"
        own = "rows and columns" if self.center_ == "both" else self.center_
        where = "" if math.isinf(run.lam) else f"at lam = {run.lam:.4g} "
        again = f", the last of {refits + 1} fits" if refits else ""
        counts = (
            f"Likely errors: {outliers}; rows and columns refitted: {self.n_rescued_}; sweeps: {self.n_iter_}{again}"
        )
        reason = (
            f"{where}{run.reason}. Rank {self.rank_} was {found}{f', with means of {own}' if own else ''}; the noise "
            f"scale is {self.scale_:.3g}. {counts}.{'' if quality is None else f' Quality: {quality}.'}"
        )
        decision = Decision(len(run.trials) - 1, reason)
        if not self._side.values.any():
            decision, self.lam_ = Decision(0, "every observed entry is zero"), math.inf
        self.path_, self.termination_ = path_of(run.trials, decision), sentence(run.trials, decision)
        if run.interrupted:
            self.termination_ = interrupted_sentence(run.trials[-1].label)
            raise_interrupted(self)
        doubts = []
        if not run.converged:
            doubts.append(f"the path ended early: {run.reason}; use the default pace, or raise max_sweeps")
        if quality is not None and quality.status != RECOVERED:
            doubts.append(f"{quality}: {_ADVICE[quality.status]}")
        if choice is not None and choice.at_cap:
            doubts.append(
                f"the chosen rank, {self.rank_}, is the largest that was tried: raise max_rank, or give the rank"
            )
        return doubts

    def _means(self) -> tuple[Means, ...]:
        """What ``center`` allows, the simpler one last."""
        both = Means(rows=True, columns=True)
        allowed = {
            "auto": (both, NO_MEANS),
            "both": (both,),
            "rows": (Means(rows=True),),
            "columns": (Means(columns=True),),
            None: (NO_MEANS,),
        }
        return allowed[self.center]

    def _recipe(self) -> Recipe:
        if self.init == "random" and self.rank == "auto":
            raise ValueError("rank must be a number if init='random': the warm start finds the rank; got 'auto'")
        polish = 8 if self.polish is True else self.polish
        return Recipe(
            regularizer=get(self.regularizer),
            pacing=_pacing(check_pace(self.pace)),
            ridge=RIDGE_END if isinstance(self.ridge, str) else float(self.ridge),
            warm_sweeps=int(self.warm_sweeps),
            warm=self.init == "warm",
            max_sweeps=int(self.max_sweeps),
            tol=float(self.tol),
            rescue=bool(self.rescue),
            polish=int(polish),
            max_rank=12 if self.max_rank is None else int(self.max_rank),
        )

    def _plain(self, run: FactorRun, solver: Solver, levels: Levels) -> PRMF:
        rank = max(solver.engine.means.rank(run.fit.V), 1)
        plain = PRMF(rank, ridge=solver.recipe.ridge, backend=self.backend, n_jobs=self.n_jobs)
        return plain._adopt(run, solver, levels)


_ADVICE = {
    MEANS_ONLY: "components predict held-out entries no better than the means of rows and columns",
    UNRELIABLE: "too many entries may be wrong for this rank, or too few observed; do not rely on the fit",
}


def _pacing(pace: str | float | Pacing) -> Pacing | None:
    """The pacing that ``pace`` asks for; None is the default."""
    if isinstance(pace, float):
        return Fixed(pace)
    if isinstance(pace, str):
        return Geometric(stop=ScaleStop()) if pace == "paper" else None
    return pace
