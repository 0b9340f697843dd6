"""A wrapper that makes any regressor robust against gross errors in the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils import column_or_1d, get_tags, indexable

from ..assessment import Assessment, Values, look_by_residuals
from ..fitting import check_size, check_values, trusting
from ..parameters import KINDS, check_pace, speaking_of
from ..regularizers import Regularizer
from ..value_noise import assess_values
from ._default_values import fit_default_values
from ._paced import fit_paced_values, sigma_of
from ._routing import Array
from ._wrapper import Found, Task, Wrapper

__all__ = ["SelfPacedRegressor"]


class SelfPacedRegressor(RegressorMixin, Wrapper):
    r"""Wrap any regressor so that gross errors in the target do not spoil it.

    By default, held-out predictions of two halves are the reference. An assessment of the residuals tells gross errors
    from what the model misfits: skewed targets, uneven spread and repeated values are no errors, nor are far values if
    most rows like them have far values, too. The model is then fitted once, without the rows that are more probably
    wrong than right. Boosting that knows absolute error is fitted with it. For other models that memorise, boosting by
    absolute error is a second reference, and the nearer of the two is used. No share of outliers is asked for.

    If ``pace``, ``regularizer`` or ``cross_fit`` is set, and for models of little capacity (linear ones), the algorithm
    of the paper runs instead: the model's residuals :math:`r_i` give the weights
    :math:`v_i = \phi'(\lambda, r_i^2) / \phi'(\lambda, 0)` of a self-paced regularizer, whose pace follows from a
    robust scale of the residuals, and the model is fitted again with these.

    Parameters
    ----------
    estimator : regressor or None, default=None
        Anything with scikit-learn's ``fit`` and ``predict``, Pipelines included; None is
        :class:`~sklearn.ensemble.HistGradientBoostingRegressor`. Weights are passed to ``sample_weight``, in a Pipeline
        to that of its last step; without it, rows are selected (and ``termination_`` says so).
    regularizer : "auto", str or Regularizer, default="auto"
        Any elementwise rule of :mod:`selfpaced.regularizers`; the loss is the squared residual. "auto" is "hard" if a
        pace is given.
    pace : "auto", "paper", float or Pacing, default="auto"
        "auto", if a rule is given: the pace that is efficient for the residuals. "paper": half the rows first, lam
        times 1.05 per round, until the rule is efficient for the residuals; a round is a cross-fit, so this is slow for
        large models. A number is a fixed lam. A :class:`~selfpaced.pacing.Pacing` is followed to its end.
    tune : bool, default=True
        Whether boosting with its default loss (histogram and gradient boosting, LightGBM, XGBoost) is fitted by
        absolute error, and forests with leaves of two rows. Absolute error predicts the median, so targets with one
        value repeated often (zero) keep the squared error. Only parameters that are at their defaults are changed;
        ``tuned_params_`` and ``termination_`` name them.
    cross_fit : "auto" or bool, default="auto"
        With a pace: whether residuals come from models that have not seen the row. "auto" cross-fits if the plain model
        is clearly better on rows it has seen, because such a model memorises outliers.
    cv : "auto", int, splitter or iterable, default="auto"
        How rows are held out. "auto" is two halves, or five folds with a pace. Folds follow from the content of rows.
    efficiency : float, default=0.95
        With a pace: precision on clean normal errors, relative to no weights at all, at which it stops.
    keep_plain : bool, default=False
        Also fit the plain model and keep it as ``plain_``: one more fit. With a pace it is always kept.
    random_state : int, RandomState or None, default=None
        Seed of splits, reference models, and wrapped models without a seed of their own. None is a fixed seed: a fit
        repeats exactly.
    n_jobs : int or None, default=None
        Folds fitted at the same time.
    verbose : int, default=0
        Log a line per stage. Callbacks of scikit-learn (``set_callbacks``) are told about every stage, too.

    Attributes
    ----------
    estimator_ : regressor
        The chosen model.
    plain_ : regressor
        The plain model, if it was fitted; the same object as ``estimator_`` if it was chosen.
    sample_weight_ : ndarray of shape (n_samples,)
        Weight of each row in [0, 1].
    sample_residual_, sample_loss_ : ndarray of shape (n_samples,)
        Residuals by which the rows were assessed, and their squares.
    assessment_ : Assessment
        All of this in one object, as :func:`selfpaced.suspects` reads it; ``assess(X, y)`` gives it for any rows.
    lam_ : float
        The pace; ``inf`` for the plain model; without a pace, the probability of being wrong, 0.5, above which rows
        were excluded.
    regularizer_, loss_unit_ : Regularizer, float
        The rule that made ``sample_weight_`` from ``sample_loss_ / loss_unit_``.
    scale_ : float
        Sigma of the good residuals.
    noise_rate_, noise_rate_interval_ : float, tuple of float
        Estimated share of gross errors, with an interval of about 95 %.
    misfit_check_ : ValueAssessment
        How the values were assessed: which are grossly wrong, and what share the model only misfits
        (:mod:`selfpaced.value_noise`).
    tuned_params_ : dict
        Parameters of the wrapped model that were changed, see ``tune``.
    path_ : tuple of Candidate
        Every candidate. With a pace, the score by which the last and the plain one were compared is minus the mean
        Tukey loss, in the sigma of the last one's residuals (``nan`` if a round was not compared).
    termination_ : str
        What was chosen, and why.
    n_features_in_, feature_names_in_
        As in the wrapped model.

    References
    ----------
    Fan, He, Liang, Hu. Self-paced learning: an implicit regularization perspective. AAAI 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from selfpaced import SelfPacedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(400, 1))
    >>> truth = np.sin(X[:, 0])
    >>> y = truth + 0.1 * rng.normal(size=400)
    >>> y[:80] += 5  # every fifth row is wrong
    >>> tree = DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
    >>> model = SelfPacedRegressor(tree, keep_plain=True).fit(X, y)
    >>> error = [float(np.abs(one.predict(X) - truth).mean()) for one in (model, model.plain_)]
    >>> error[0] < 0.1 < 0.9 < error[1], round(model.noise_rate_, 1)
    (True, 0.2)
    """

    _default_estimator = HistGradientBoostingRegressor
    _parameter_rules = {**Wrapper._parameter_rules, "estimator": KINDS["regressor or None"]}

    def __init__(
        self,
        estimator: Any = None,
        regularizer: str | Regularizer = "auto",
        *,
        pace: Any = "auto",
        tune: bool = True,
        cross_fit: bool | str = "auto",
        cv: Any = "auto",
        efficiency: float = 0.95,
        keep_plain: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.regularizer = regularizer
        self.pace = pace
        self.tune = tune
        self.cross_fit = cross_fit
        self.cv = cv
        self.efficiency = efficiency
        self.keep_plain = keep_plain
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # here, because the tags of RegressorMixin replace those of the wrapper
        tags.regressor_tags = get_tags(self._base).regressor_tags or tags.regressor_tags
        return tags

    def _checked_target(self, y: Any) -> tuple[Array, Array | None]:
        if y is None:
            raise ValueError("This SelfPacedRegressor estimator requires y to be passed, but the target y is None.")
        target = column_or_1d(check_values(y), warn=True)
        with speaking_of("y", "numbers, one for each row"):
            target = target if target.dtype.kind == "f" else target.astype(np.float64)
        if not np.isfinite(target).all():
            raise ValueError("y must be finite; got NaN or infinity. Input y contains NaN or infinity.")
        check_size("y", target)
        return np.asarray(target), None

    def _fit(self, task: Task) -> Found:
        found = None if self._has_pace else fit_default_values(task, tune=self.tune, keep_plain=self.keep_plain)
        if found is not None:
            return found
        return fit_paced_values(task, self._rule, check_pace(self.pace), self.cross_fit, float(self.efficiency))

    def _store(self, found: Found, task: Task, mark: str) -> None:
        chosen, made = found.chosen, found.chosen.fit
        residuals, sigma = made.residuals, sigma_of(task, made.residuals)
        checked = found.noise or assess_values(task.y, task.y - residuals, sigma, sample_weight=task.prior)
        self.assessment_ = Assessment(
            "values",
            Values(task.y, task.y - residuals, checked.wrong, checked.misfit, checked.sentence),
            checked.wrong if checked.applied else made.rule.losses(residuals),
            chosen.lam,
            made.rule.regularizer,
            mark,
            held_out=found.cross,
            trusted=task.trusted,
            look=look_by_residuals(residuals),
        )
        self.sample_weight_ = trusting(chosen.weight, task.trusted)
        self.sample_residual_, self.sample_loss_ = residuals, np.square(residuals)
        self.regularizer_, self.loss_unit_ = made.rule.regularizer, made.rule.unit
        self.scale_, self.misfit_check_ = sigma, checked
        self.noise_rate_, self.noise_rate_interval_ = checked.rate, checked.interval

    def _assessed_rows(self, X: Any, y: Any) -> tuple[Any, Array]:
        X, y = indexable(X, y)
        return X, self._checked_target(y)[0].astype(np.float64)

    def _assess(self, X: Any, y: Array) -> Assessment:
        expected = np.asarray(self.estimator_.predict(X), dtype=float).reshape(-1)
        checked = self.misfit_check_
        wrong = checked.probability(y, expected, X)
        losses = wrong if checked.applied else np.square(y - expected) / self.loss_unit_
        diagnosis = Values(y, expected, wrong, checked.misfit, checked.sentence)
        return Assessment("values", diagnosis, losses, self.lam_, self.regularizer_, look=self.assessment_.look)
