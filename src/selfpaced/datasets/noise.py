"""Makers of label noise and of regression outliers, seeded apart from the folds that use them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

from ..parameters import check_number, speaking_of

_Seed = int | np.random.RandomState | None
_Array = NDArray[Any]
LARGEST = 1e150  # numerical safety: sums of squares are numbers
_Noisy = tuple[_Array, NDArray[np.bool_]]


def flip_symmetric(y: ArrayLike, rate: float, *, random_state: _Seed = None) -> _Noisy:
    """Give a share of the labels another class, drawn evenly from the others.

    Exactly ``round(rate * n)`` labels change, as in the paper's experiments.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any kind.
    rate : float
        Share of labels to change, in [0, 1].
    random_state : int, RandomState or None
        Seed of the noise, independent of any seed of folds or models.

    Returns
    -------
    noisy : ndarray of shape (n,)
        The labels with noise.
    flipped : ndarray of bool of shape (n,)
        Which of them differ from ``y``.

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced.datasets import flip_symmetric
    >>> noisy, flipped = flip_symmetric(np.repeat([0, 1], 50), 0.2, random_state=0)
    >>> int(flipped.sum())
    20
    """
    labels, classes, codes = _coded(y)
    rng = _seeded(random_state)
    chosen = rng.permutation(labels.size)[: round(_rate(rate) * labels.size)]
    return _shift(labels, classes, codes, chosen, rng)


def flip_class_conditional(
    y: ArrayLike, rates: Mapping[object, float] | Sequence[float], *, random_state: _Seed = None
) -> _Noisy:
    """Change labels at a rate of their own for each class.

    Parameters
    ----------
    y, random_state
        As in :func:`flip_symmetric`.
    rates : mapping or sequence
        Rate of each class: ``{label: rate}`` (absent classes keep their labels) or one rate per class in
        sorted order.

    Returns
    -------
    noisy, flipped
        As :func:`flip_symmetric`.
    """
    labels, classes, codes = _coded(y)
    by_class = _rates_of(rates, classes)
    rng = _seeded(random_state)
    chosen = [
        rng.permutation(np.flatnonzero(codes == k))[: round(rate * np.count_nonzero(codes == k))]
        for k, rate in enumerate(by_class)
    ]
    return _shift(labels, classes, codes, np.concatenate(chosen), rng)


def flip_near_border(X: ArrayLike, y: ArrayLike, rate: float, *, random_state: _Seed = None) -> _Noisy:
    """Change labels where the classes are hard to tell apart, as tired annotators do.

    The border is that of a logistic regression fitted to the standardised features and the labels as given.  A
    sample's odds of being chosen fall off as ``exp(-2 gap)``, where the gap between its two most probable
    classes, in log-odds, is counted in medians of all gaps; a chosen label moves to the more probable of the other
    classes.  Exactly ``round(rate * n)`` labels change.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features, which decide where the border is.
    y, rate, random_state
        As in :func:`flip_symmetric`.

    Returns
    -------
    noisy, flipped
        As :func:`flip_symmetric`.

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced.datasets import flip_near_border
    >>> x = np.linspace(-3, 3, 300)
    >>> noisy, flipped = flip_near_border(x[:, None], x > 0, 0.2, random_state=0)
    >>> int(flipped.sum()), bool(np.abs(x[flipped]).mean() < 0.7 * np.abs(x).mean())
    (60, True)
    """
    labels, classes, codes = _coded(y)
    count = round(_rate(rate) * labels.size)
    rng = _seeded(random_state)
    scaled = _standardised(X, labels.size)
    scores = LogisticRegression(max_iter=1000).fit(scaled, codes).predict_log_proba(scaled)
    two = np.sort(scores, axis=1)[:, -2:]
    gap = two[:, 1] - two[:, 0]
    # The largest of odds times Gumbel noise are a draw without replacement (Efraimidis and Spirakis, 2006).
    odds = -2.0 * gap / max(float(np.median(gap)), np.finfo(float).tiny)
    chosen = np.argsort(-(odds + rng.gumbel(size=labels.size)), kind="stable")[:count]
    scores[np.arange(labels.size), codes] = -np.inf
    flipped = np.zeros(labels.size, dtype=bool)
    flipped[chosen] = True
    return classes[np.where(flipped, scores.argmax(axis=1), codes)], flipped


def flip_in_region(
    X: ArrayLike, y: ArrayLike, rate: float = 0.5, *, share: float = 0.3, random_state: _Seed = None
) -> _Noisy:
    """Change labels in one region of the features, as one careless annotator or one broken device does.

    The region is the ``share`` of the samples that lie farthest along a random direction of the standardised features.
    Each label in it changes with probability ``rate``, to any other class alike.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features, which decide where the region is.
    rate : float, default=0.5
        Probability of a change within the region, in [0, 1].
    share : float, default=0.3
        Share of the samples in the region, in [0, 1].
    y, random_state
        As in :func:`flip_symmetric`.

    Returns
    -------
    noisy, flipped
        As :func:`flip_symmetric`.

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced.datasets import flip_in_region
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> noisy, flipped = flip_in_region(X, X[:, 0] > 0, random_state=0)
    >>> bool(0.1 < flipped.mean() < 0.2)
    True
    """
    labels, classes, codes = _coded(y)
    rate, share, rng = _rate(rate), check_number("share", share, 0, 1, "in [0, 1]"), _seeded(random_state)
    scaled = _standardised(X, labels.size)
    along = scaled @ rng.standard_normal(scaled.shape[1])
    region = np.argsort(-along, kind="stable")[: round(share * labels.size)]
    return _shift(labels, classes, codes, region[rng.random_sample(region.size) < rate], rng)


def outliers_one_sided(
    y: ArrayLike, rate: float, *, size: float = 10.0, random_state: _Seed = None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Lift a share of the targets by ``size`` to ``1.5 size`` standard deviations of ``y``, all upwards.

    Parameters
    ----------
    y : array-like of shape (n,)
        Targets.
    rate : float
        Share of targets to move, in [0, 1].
    size : float, default=10.0
        Smallest shift, in standard deviations of ``y``.
    random_state : int, RandomState or None
        Seed of the outliers.

    Returns
    -------
    noisy : ndarray of shape (n,)
    outlier : ndarray of bool of shape (n,)
    """
    target, rng, chosen = _chosen(y, rate, size, random_state)
    shift = size * _scale(target) * (1.0 + 0.5 * rng.random_sample(chosen.size))
    return _moved(target, chosen, shift)


def outliers_leverage(
    X: ArrayLike,
    y: ArrayLike,
    rate: float,
    *,
    distance: float = 5.0,
    size: float = 10.0,
    random_state: _Seed = None,
) -> Bunch:
    """Replace a share of the rows by a tight cluster far out in feature space, with targets off the trend.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y, rate, size, random_state
        As in :func:`outliers_one_sided`; ``size`` is how far the cluster's targets are off.
    distance : float, default=5.0
        Distance of the cluster from the mean, in standard deviations, along the first feature.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``outlier`` (bool mask).
    """
    target, rng, chosen = _chosen(y, rate, size, random_state)
    data = _floats("X", X, 2)
    if data.shape[0] != target.size or not data.shape[1]:
        raise ValueError(f"X must have shape ({target.size}, d) to match y, got shape {data.shape}")
    mean, spread = data.mean(axis=0), data.std(axis=0)
    data[chosen] = mean + 0.1 * spread * rng.standard_normal((chosen.size, data.shape[1]))
    data[chosen, 0] += distance * spread[0]
    cluster = target.mean() + size * _scale(target) * (1.0 + 0.02 * rng.standard_normal(chosen.size))
    noisy, outlier = _moved(target, chosen, cluster - target[chosen])
    return Bunch(data=data, target=noisy, outlier=outlier)


def _seeded(random_state: Any) -> np.random.RandomState:
    """The generator of a parameter ``random_state``."""
    from sklearn.utils import check_random_state

    try:
        found: np.random.RandomState = check_random_state(random_state)
    except (ValueError, TypeError):
        words = "None, an integer >= 0 and < 2**32 or a RandomState"
        raise ValueError(f"random_state must be {words}, got {random_state!r}") from None
    return found


def _floats(name: str, values: Any, ndim: int) -> np.ndarray:
    """A copy as finite numbers of this many dimensions."""
    with speaking_of(name, "numbers"):
        if np.iscomplexobj(values):
            raise TypeError("Casting complex numbers to real ones would lose a part of them")
        found = np.array(values, dtype=np.float64)
    if found.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' * (ndim > 1)}, got shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if np.abs(found).max(initial=0.0) > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:g} in size, got {float(np.abs(found).max()):g}")
    return found


def _labels(name: str, values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of any one kind, the distinct ones, and the place of each among them."""
    with speaking_of(name, "labels of one kind, one for each row"):
        found = np.asarray(values)
        if found.ndim != 1:
            raise ValueError(f"{name} must be one-dimensional, got shape {found.shape}")
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError(f"{name} must be labels, got NaN or infinity")
        return found, *np.unique(found, return_inverse=True)


def _rate(rate: float) -> float:
    return check_number("rate", rate, 0, 1, "in [0, 1]")


def _coded(y: ArrayLike) -> tuple[_Array, _Array, NDArray[np.int64]]:
    labels, classes, codes = _labels("y", y)
    if classes.size < 2:
        raise ValueError(f"y must hold at least two classes to flip between, got {classes.tolist()!r}")
    return labels, classes, codes


def _standardised(X: ArrayLike, n: int) -> NDArray[np.float64]:
    data = _floats("X", X, 2)
    if data.shape[0] != n or not data.shape[1]:
        raise ValueError(f"X must have shape ({n}, d) to match y, got shape {data.shape}")
    spread = data.std(axis=0)
    return np.asarray((data - data.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _rates_of(rates: Mapping[object, float] | Sequence[float], classes: _Array) -> list[float]:
    if isinstance(rates, Mapping):
        unknown = set(rates) - set(classes.tolist())
        if unknown:
            raise ValueError(f"rates names classes that y does not hold: {sorted(map(str, unknown))!r}")
        return [_rate(rates.get(label, 0.0)) for label in classes.tolist()]
    if not isinstance(rates, Sequence | np.ndarray) or isinstance(rates, str | bytes) or np.ndim(rates) != 1:
        raise ValueError(f"rates must be a mapping, or a sequence with one number for each class, got {rates!r}")
    if len(rates) != classes.size:
        raise ValueError(f"rates must have one entry for each of {classes.size} classes, got {list(rates)!r}")
    return [_rate(rate) for rate in rates]


def _shift(labels: _Array, classes: _Array, codes: _Array, chosen: _Array, rng: np.random.RandomState) -> _Noisy:
    """Move the chosen labels on by 1 .. K-1 classes, which never lands on the old one."""
    moved = codes.copy()
    moved[chosen] = (codes[chosen] + rng.randint(1, classes.size, size=chosen.size)) % classes.size
    flipped = np.zeros(labels.size, dtype=bool)
    flipped[chosen] = True
    return classes[moved], flipped


def _chosen(
    y: ArrayLike, rate: float, size: float, random_state: _Seed
) -> tuple[NDArray[np.float64], np.random.RandomState, NDArray[np.int64]]:
    target = _floats("y", y, 1)
    if not target.size:
        raise ValueError("y must hold at least one value, got none")
    check_number("size", size, 0, math.inf, "a number >= 0")
    rng = _seeded(random_state)
    return target, rng, rng.permutation(target.size)[: round(_rate(rate) * target.size)]


def _scale(target: NDArray[np.float64]) -> float:
    return float(target.std()) or 1.0


def _moved(
    target: NDArray[np.float64], chosen: NDArray[np.int64], shift: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    noisy, outlier = target.copy(), np.zeros(target.size, dtype=bool)
    noisy[chosen] += shift
    outlier[chosen] = True
    return noisy, outlier
