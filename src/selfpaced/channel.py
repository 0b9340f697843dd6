"""The label-noise channel: from out-of-fold logits to clean probabilities and a noise rate.

A model trained on noisy labels, however robustly, is calibrated for nobody: its logits have some arbitrary
scale, and the labels at hand are not the ones that matter.  The channel model says what the labels at hand are,

    P(given = y | z) = sum_j softmax(tau z + beta)_j T_jy ,

clean probabilities seen through a transition matrix ``T`` (``T[j, y]``: a true ``j`` recorded as ``y``).  Its
parameters are fitted by likelihood on out-of-fold logits, so no clean label is ever needed.  Three nested
models (scale and one noise rate; also a bias; also one rate per class pair) are averaged with Akaike weights.

The average is taken over parameters, not over probabilities: a weighted geometric mean of softmax models is the
softmax of the averaged parameters, so the result stays one linear map of the logits and decision, probability
and predicted label can never disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

__all__ = ["Channel", "confident_error", "fit_channel", "logits_from_proba"]

Array = NDArray[np.floating[Any]]

_MAX_RATE = 0.48  # binary: beyond 1/2 the classes have swapped names
_MAX_PAIRWISE = 30  # classes: above, K^2 rates cannot be told apart from one
_LEVEL = 1.959963984540054  # 95 %
_BINS = 128


@dataclass(frozen=True)
class Channel:
    """A fitted noise channel.

    Parameters
    ----------
    scale : float
        Factor ``tau`` on the logits (an inverse temperature).
    bias : ndarray of shape (n_classes,)
        Shift ``beta`` added to the scaled logits.
    transition : ndarray of shape (n_classes, n_classes)
        ``transition[j, y]`` is the probability that a true ``j`` was recorded as ``y``.
    noise_rate : float
        Estimated share of wrong labels.
    interval : tuple of float
        95 % interval of the noise rate: sampling error within each averaged model and disagreement between them.
    model_weights : tuple of float
        Akaike weights of the models (scale; scale and bias; class-conditional).
    """

    scale: float
    bias: Array
    transition: Array
    noise_rate: float
    interval: tuple[float, float]
    model_weights: tuple[float, ...]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.bias)

    def proba(self, logits: ArrayLike) -> Array:
        """Probability of each CLEAN class, shape (n, n_classes), for logits as given to `fit_channel`."""
        return _softmax(self.scale * _as_matrix(logits) + self.bias)

    def given_proba(self, logits: ArrayLike) -> Array:
        """Probability of each GIVEN label: clean probabilities sent through the channel."""
        return self.proba(logits) @ self.transition

    def noise_probability(self, logits: ArrayLike, y: ArrayLike) -> Array:
        """Posterior probability that the given label ``y`` (codes 0 .. n_classes - 1) is wrong."""
        codes = np.asarray(y, dtype=np.intp)
        joint = self.proba(logits) * self.transition[:, codes].T
        kept = joint[np.arange(len(codes)), codes]
        return 1.0 - kept / np.maximum(joint.sum(axis=1), np.finfo(float).tiny)

    def without_bias(self) -> Channel:
        """The same channel for logits to which ``bias / scale`` has already been added."""
        return replace(self, bias=np.zeros_like(self.bias))

    @classmethod
    def identity(cls, n_classes: int) -> Channel:
        """The channel that changes nothing: no noise, logits taken at their word."""
        return cls(1.0, np.zeros(n_classes), np.eye(n_classes), 0.0, (0.0, 1.0), (1.0, 0.0, 0.0))


def logits_from_proba(proba: ArrayLike, floor: float = 1e-3) -> Array:
    """Logits of predicted probabilities, floored so that a vote of 0 does not claim infinite certainty."""
    return np.log(np.maximum(np.asarray(proba, dtype=float), floor))


def confident_error(
    logits: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, share: float = 1 / 3
) -> tuple[float, float]:
    """Noisy error of the most confident predictions: a noise gauge that needs no fit.

    Where a model is sure, its own mistakes are rare, so what disagrees there is mostly label noise.

    Parameters
    ----------
    logits : array-like of shape (n,), (n, 1) or (n, n_classes)
        Out-of-fold logits (binary: the margin of the second class, or two columns).
    y : array-like of shape (n,)
        Given labels as codes.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    share : float
        Share of rows that counts as confident.

    Returns
    -------
    overall, by_class : float
        The error over all confident rows, and its mean over the predicted classes (one third of each).

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced.channel import confident_error
    >>> margin = np.r_[np.linspace(-3, -1, 30), np.linspace(1, 3, 30)]
    >>> y = (margin > 0).astype(int)
    >>> y[0] = 1
    >>> round(confident_error(margin, y)[0], 2)
    0.05
    """
    z = _as_matrix(logits)
    codes = np.asarray(y, dtype=np.intp)
    weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    top = np.partition(z, z.shape[1] - 2, axis=1)
    gap = top[:, -1] - top[:, -2]
    predicted = z.argmax(axis=1)
    wrong = (predicted != codes) * weight
    overall = _error_of_surest(gap, wrong, weight, share)
    errors = [
        _error_of_surest(gap[rows], wrong[rows], weight[rows], share)
        for rows in (np.flatnonzero(predicted == c) for c in range(z.shape[1]))
        if len(rows) >= 10
    ]
    return overall, float(np.mean(errors)) if errors else 0.5


def _error_of_surest(gap: Array, wrong: Array, weight: Array, share: float) -> float:
    order = np.argsort(-gap, kind="stable")
    total = np.cumsum(weight[order])
    count = min(int(np.searchsorted(total, share * total[-1])) + 1, len(order))
    return float(wrong[order[:count]].sum() / max(total[count - 1], np.finfo(float).tiny))


def fit_channel(
    logits: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    class_conditional: bool = True,
    shift: bool = True,
) -> Channel:
    """Fit the noise channel to out-of-fold logits and noisy labels.

    Parameters
    ----------
    logits : array-like of shape (n,), (n, 1) or (n, n_classes)
        OUT-OF-FOLD logits (binary: the margin of class 1, or two columns).  In-sample logits of a flexible
        model make every label look right.
    y : array-like of shape (n,)
        Given labels as codes 0 .. n_classes - 1.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    class_conditional : bool
        Also consider a rate per class (pair of classes when there are more than two).
    shift : bool
        Also consider a bias.  With False predictions keep their ranking and only their scale is fitted.

    Returns
    -------
    Channel

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced.channel import fit_channel
    >>> rng = np.random.default_rng(0)
    >>> z = 4 * rng.standard_normal(4000)
    >>> y = (rng.random(4000) < 1 / (1 + np.exp(-z))).astype(int)
    >>> flipped = rng.random(4000) < 0.2
    >>> channel = fit_channel(0.5 * z, np.where(flipped, 1 - y, y))
    >>> bool(abs(channel.noise_rate - 0.2) < 0.03), bool(channel.interval[0] < 0.2 < channel.interval[1])
    (True, True)
    >>> bool(abs(channel.scale - 2) < 0.5)
    True
    """
    z = _as_matrix(logits)
    codes = np.asarray(y, dtype=np.intp)
    if len(z) != len(codes):
        raise ValueError(f"logits and y must have the same length; got {len(z)} and {len(codes)}")
    if not np.isfinite(z).all():
        raise ValueError("logits must be finite; take logits_from_proba() of probabilities that reach 0 or 1")
    weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    n_classes = z.shape[1]
    if len(codes) == 0 or weight.sum() <= 0 or np.ptp(z - z.mean(axis=1, keepdims=True)) == 0:
        return Channel.identity(n_classes)
    weight = weight * (len(weight) / weight.sum())
    if n_classes == 2:
        models = _fit_binary(z[:, 1] - z[:, 0], codes, weight, class_conditional, shift)
    else:
        models = _fit_multiclass(z, codes, weight, class_conditional and n_classes <= _MAX_PAIRWISE)
    return _average(models)


@dataclass(frozen=True)
class _Model:
    """One fitted channel model; ``evidence`` is its log-likelihood less the number of its parameters."""

    scale: float
    bias: Array
    transition: Array
    evidence: float
    rate: float
    error: float


def _average(models: list[_Model]) -> Channel:
    evidence = np.array([m.evidence for m in models])
    w = np.exp(evidence - evidence.max())
    w /= w.sum()
    rate = float(sum(a * m.rate for a, m in zip(w, models, strict=True)))
    # Variance of a model average (Buckland 1997): within each model plus between them.
    spread = np.sqrt(sum(a * (m.error**2 + (m.rate - rate) ** 2) for a, m in zip(w, models, strict=True)))
    return Channel(
        scale=float(sum(a * m.scale for a, m in zip(w, models, strict=True))),
        bias=np.sum([a * m.bias for a, m in zip(w, models, strict=True)], axis=0),
        transition=np.sum([a * m.transition for a, m in zip(w, models, strict=True)], axis=0),
        noise_rate=rate,
        interval=(float(max(0.0, rate - _LEVEL * spread)), float(min(1.0, rate + _LEVEL * spread))),
        model_weights=tuple(float(a) for a in w),
    )


# ---------------------------------------------------------------------------------------------- two classes


def _bins(margin: Array, y: NDArray[np.intp], weight: Array) -> tuple[Array, Array, Array]:
    """Mean margin, weight and weight of class 1 in quantile bins; equal margins always share a bin."""
    values, inverse = np.unique(margin, return_inverse=True)
    mass = np.bincount(inverse, weight)
    ones = np.bincount(inverse, weight * y)
    before = np.cumsum(mass) - mass
    index = np.minimum((before * (_BINS / mass.sum())).astype(np.intp), _BINS - 1)
    m = np.bincount(index, mass, minlength=_BINS)
    used = m > 0
    x = np.bincount(index, mass * values, minlength=_BINS)[used] / m[used]
    return x, m[used], np.bincount(index, ones, minlength=_BINS)[used]


# model, log scale, rate of class 0, rate of class 1: several starts, because the likelihood has two basins
# (a flat sigmoid without noise, a steep one with noise).
_STARTS = (
    ("scale", 0.4, 0.03, 0.03),
    ("scale", 1.4, 0.3, 0.3),
    ("bias", 0.4, 0.03, 0.03),
    ("bias", 1.4, 0.3, 0.3),
    ("class", 1.1, 0.3, 0.05),
    ("class", 1.1, 0.05, 0.3),
    ("class", 0.7, 0.1, 0.1),
    ("class", 1.4, 0.3, 0.3),
)


class _BinaryLikelihood:
    """Negative log-likelihood of several starts at once, parameters (log scale, bias, rate logits 0 and 1).

    Priors: log scale ~ N(0, 1) at margins scaled to mean 2, bias ~ N(0, 1).
    """

    def __init__(self, x: Array, mass: Array, ones: Array) -> None:
        self.x, self.mass, self.ones = x, mass, ones

    def forward(self, p: Array) -> tuple[Array, ...]:
        scale = np.exp(np.clip(p[:, :1], -4, 5))
        rate = _MAX_RATE / (1 + np.exp(-np.clip(p[:, 2:], -12, 12)))
        clean = 0.5 + 0.5 * np.tanh(0.5 * (scale * self.x + p[:, 1:2]))
        contrast = 1 - rate.sum(axis=1, keepdims=True)
        q = np.clip(rate[:, :1] + contrast * clean, 1e-9, 1 - 1e-9)
        value = -(self.ones * np.log(q) + (self.mass - self.ones) * np.log1p(-q)).sum(axis=1)
        return value + 0.5 * (p[:, 0] ** 2 + p[:, 1] ** 2), scale, rate, clean, contrast, q

    def derivatives(self, p: Array, state: tuple[Array, ...], by_rate: bool = False) -> tuple[Array, Array]:
        """Gradient and Fisher information; in the rates themselves instead of their logits on request."""
        _, scale, rate, clean, contrast, q = state
        slope = contrast * clean * (1 - clean)
        chain = np.ones_like(rate) if by_rate else rate * (1 - rate / _MAX_RATE)
        jac = np.stack(
            [slope * scale * self.x, slope, (1 - clean) * chain[:, :1], -clean * chain[:, 1:]], axis=1
        )
        variance = q * (1 - q)
        grad = np.matmul(jac, ((self.mass * q - self.ones) / variance)[:, :, None])[:, :, 0]
        grad[:, :2] += p[:, :2]
        fisher = np.matmul(jac * (self.mass / variance)[:, None, :], jac.transpose(0, 2, 1))
        fisher[:, 0, 0] += 1
        fisher[:, 1, 1] += 1
        return grad, fisher


def _projection(kind: str) -> Array:
    """The subspace of the four parameters that a model may use."""
    out = np.eye(4)
    if kind != "class":
        out[2:, 2:] = 0.5
    if kind == "scale":
        out[1, 1] = 0.0
    return out


def _scoring(
    likelihood: _BinaryLikelihood, p: Array, project: Array, max_iter: int = 25
) -> tuple[Array, Array]:
    """Damped Fisher scoring of all starts in parallel."""
    damping = np.full(len(p), 1e-2)
    state = likelihood.forward(p)
    for _ in range(max_iter):
        grad, fisher = likelihood.derivatives(p, state)
        grad = np.matmul(project, grad[:, :, None])
        fisher = project @ fisher @ project
        diagonal = np.einsum("sii->si", fisher) + 1e-3
        fisher = fisher + (damping[:, None] * diagonal + 1e-9)[:, :, None] * np.eye(4)
        step = np.clip(np.matmul(project, np.linalg.solve(fisher, grad))[:, :, 0], -3, 3)
        trial = p - step
        trial[:, 2:] = np.clip(trial[:, 2:], -12, 12)
        new = likelihood.forward(trial)
        better = new[0] <= state[0] + 1e-12
        gain = np.where(better, state[0] - new[0], 0.0)
        p = np.where(better[:, None], trial, p)
        damping = np.where(better, damping * 0.3, damping * 8)
        state = tuple(
            np.where(better.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(new, state, strict=True)
        )
        if (gain < 1e-4).all() and (better | (damping > 1e3)).all():
            break
    return p, state[0]


def _fit_binary(
    margin: Array, y: NDArray[np.intp], weight: Array, class_conditional: bool, shift: bool
) -> list[_Model]:
    unit = np.average(np.abs(margin), weights=weight) / 2 + 1e-9
    likelihood = _BinaryLikelihood(*_bins(margin / unit, y, weight))
    allowed = (
        {"scale"} | ({"bias"} if shift else set()) | ({"class"} if shift and class_conditional else set())
    )
    starts = [s for s in _STARTS if s[0] in allowed]
    logit = [[np.log(r / _MAX_RATE / (1 - r / _MAX_RATE)) for r in s[2:]] for s in starts]
    p = np.array([[s[1], 0.0, *r] for s, r in zip(starts, logit, strict=True)])
    project = np.stack([_projection(s[0]) for s in starts])
    p, value = _scoring(likelihood, p, project)
    models = []
    for extra, kind in enumerate(("scale", "bias", "class")):
        members = [i for i, s in enumerate(starts) if s[0] == kind]
        if members:
            best = min(members, key=lambda i: value[i])
            models.append(
                _binary_model(likelihood, p[best : best + 1], project[best], value[best] + extra, unit)
            )
    return models


def _binary_model(
    likelihood: _BinaryLikelihood, p: Array, project: Array, cost: float, unit: float
) -> _Model:
    state = likelihood.forward(p)
    _, scale, rate, clean, _, _ = state
    r0, r1 = rate[0]
    share = float((likelihood.mass * clean[0]).sum() / likelihood.mass.sum())
    _, fisher = likelihood.derivatives(p, state, by_rate=True)
    covariance = np.linalg.pinv(project @ fisher[0] @ project)
    slope = np.array([0.0, 0.0, 1 - share, share])
    return _Model(
        scale=float(scale[0, 0]) / unit,
        bias=np.array([0.0, p[0, 1]]),
        transition=np.array([[1 - r0, r0], [r1, 1 - r1]]),
        evidence=-float(cost),
        rate=float((1 - share) * r0 + share * r1),
        error=float(np.sqrt(max(slope @ covariance @ slope, 0.0))),
    )


# ------------------------------------------------------------------------------------------- many classes


class _MulticlassLikelihood:
    """Channel likelihood in K classes: (log scale, rate) or (log scale, bias, transition)."""

    def __init__(self, z: Array, y: NDArray[np.intp], weight: Array) -> None:
        self.n, self.k = z.shape
        self.z, self.y, self.weight = z, y, weight
        self.rows = np.arange(self.n)
        self.max_rate = 0.96 * (self.k - 1) / self.k
        self.onehot = np.zeros((self.n, self.k))
        self.onehot[self.rows, y] = 1.0

    def symmetric(self, rate: float) -> Array:
        out = np.full((self.k, self.k), rate / (self.k - 1))
        out[np.diag_indices(self.k)] = 1 - rate
        return out

    def _joint(self, scale: float, bias: Array | float, transition: Array) -> tuple[float, Array, Array]:
        clean = _softmax(scale * self.z + bias)
        joint = clean * transition[:, self.y].T
        q = np.maximum(joint.sum(axis=1), 1e-300)
        joint /= q[:, None]
        return -float(self.weight @ np.log(q)), clean, joint

    def simple(self, x: Array) -> tuple[float, Array]:
        """Log scale and the logit of one rate."""
        scale = float(np.exp(np.clip(x[0], -4, 5)))
        rate = self.max_rate / (1 + np.exp(-np.clip(x[1], -30, 30)))
        value, clean, joint = self._joint(scale, 0.0, self.symmetric(rate))
        kept = float(self.weight @ joint[self.rows, self.y])
        moved = self.weight.sum() - kept
        g_scale = scale * float(self.weight @ ((clean - joint) * self.z).sum(axis=1)) + x[0]
        g_rate = (kept / (1 - rate) - moved / max(rate, 1e-12)) * rate * (1 - rate / self.max_rate)
        return (value + 0.5 * x[0] ** 2) / self.n, np.array([g_scale, g_rate]) / self.n

    def full(self, x: Array, prior: Array) -> tuple[float, Array]:
        """Log scale, bias and a free transition matrix under Dirichlet pseudo-counts ``prior``."""
        k = self.k
        scale, bias = float(np.exp(np.clip(x[0], -4, 5))), x[1 : 1 + k]
        transition = _softmax(x[1 + k :].reshape(k, k))
        value, clean, joint = self._joint(scale, bias, transition)
        residual = (clean - joint) * self.weight[:, None]
        counts = (joint * self.weight[:, None]).T @ self.onehot + prior
        value += 0.5 * (x[0] ** 2 + bias @ bias) - float(
            (prior * np.log(np.maximum(transition, 1e-300))).sum()
        )
        grad = np.empty_like(x)
        grad[0] = scale * (residual * self.z).sum() + x[0]
        grad[1 : 1 + k] = residual.sum(axis=0) + bias
        grad[1 + k :] = (transition * counts.sum(axis=1, keepdims=True) - counts).ravel()
        return value / self.n, grad / self.n

    def rate_error(self, scale: float, rate: float) -> float:
        """Standard error of one symmetric rate, the scale being estimated too."""
        clean = _softmax(scale * self.z)
        p = clean[self.rows, self.y]
        other = rate / (self.k - 1)
        q = np.maximum((1 - rate) * p + other * (1 - p), 1e-12)
        by_rate = ((1 - p) / (self.k - 1) - p) / q
        margin = self.z[self.rows, self.y] - (clean * self.z).sum(axis=1)
        scores = np.stack([(1 - rate - other) * scale * p * margin / q, by_rate])
        fisher = (scores * self.weight) @ scores.T
        fisher[0, 0] += 1
        return float(np.sqrt(max(np.linalg.pinv(fisher)[1, 1], 0.0)))


def _fit_multiclass(z: Array, y: NDArray[np.intp], weight: Array, class_conditional: bool) -> list[_Model]:
    z = z - z.mean(axis=1, keepdims=True)
    unit = float(np.average(np.abs(z).mean(axis=1), weights=weight)) + 1e-9
    like = _MulticlassLikelihood(z / unit, y, weight)
    options = {"maxiter": 60, "ftol": 1e-9, "gtol": 1e-6}
    runs = []
    for scale, rate in ((1.5, 0.03), (4.0, 0.3)):
        r = rate / like.max_rate
        start = np.array([np.log(scale), np.log(r / (1 - r))])
        runs.append(minimize(like.simple, start, jac=True, method="L-BFGS-B", options=options))
    best = min(runs, key=lambda run: run.fun)
    scale, rate = float(np.exp(np.clip(best.x[0], -4, 5))), float(like.max_rate / (1 + np.exp(-best.x[1])))
    transition, error = like.symmetric(rate), like.rate_error(scale, rate)
    models = [_Model(scale / unit, np.zeros(like.k), transition, -best.fun * like.n, rate, error)]
    if class_conditional:
        models.append(_class_conditional(like, best.x[0], rate, error, unit, options))
    return models


def _class_conditional(
    like: _MulticlassLikelihood,
    log_scale: float,
    rate: float,
    error: float,
    unit: float,
    options: dict[str, Any],
) -> _Model:
    k, base = like.k, like.symmetric(rate)
    prior = 0.25 * like.n / k * base
    start = np.r_[log_scale, np.zeros(k), np.log(np.maximum(base, 1e-3)).ravel()]
    run = minimize(like.full, start, args=(prior,), jac=True, method="L-BFGS-B", options=options)
    scale, bias = float(np.exp(np.clip(run.x[0], -4, 5))), run.x[1 : 1 + k]
    transition = _softmax(run.x[1 + k :].reshape(k, k))
    share = np.average(_softmax(scale * like.z + bias), axis=0, weights=like.weight)
    # The pseudo-counts' own likelihood at the matrix they came from is no evidence: take it out again.
    offset = float((prior * np.log(np.maximum(base, 1e-300))).sum())
    evidence = -run.fun * like.n - offset - (k - 1) - (k * (k - 1) - 1)
    return _Model(scale / unit, bias, transition, evidence, float(share @ (1 - np.diag(transition))), error)


def _as_matrix(logits: ArrayLike) -> Array:
    z = np.asarray(logits, dtype=float)
    if z.ndim == 1 or z.shape[1] == 1:
        z = z.reshape(-1)
        return np.stack([np.zeros_like(z), z], axis=1)
    return z


def _softmax(z: Array) -> Array:
    out = z - z.max(axis=1, keepdims=True)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)
    return out
