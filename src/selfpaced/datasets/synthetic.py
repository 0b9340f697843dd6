"""Synthetic and embedded data: the paper's low-rank matrix, and digits seen in several views."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

__all__ = ["make_low_rank", "make_multiview_digits"]


def make_low_rank(
    n_rows: int = 100,
    n_columns: int = 100,
    rank: int = 4,
    *,
    missing: float = 0.4,
    outliers: float = 0.2,
    amplitude: float = 20.0,
    noise: float = 0.1,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """The paper's synthetic matrix: low rank, entries missing, some grossly wrong, the rest slightly noisy.

    ``truth = U V^T`` with standard normal factors; of all entries a share ``missing`` is removed, a share
    ``outliers`` gets uniform noise on ``[-amplitude, amplitude]`` and the rest normal noise of standard
    deviation ``noise``. The defaults are the paper's.

    Parameters
    ----------
    n_rows, n_columns, rank : int
        Shape and rank of the true matrix.
    missing, outliers : float
        Shares of all entries; together at most 1.
    amplitude : float, default=20.0
        Half width of the outliers' uniform noise.
    noise : float, default=0.1
        Standard deviation of the other observed entries.
    random_state : int, Generator or None
        Seed of the data; models take a seed of their own.

    Returns
    -------
    Bunch
        ``data`` (NaN = missing), ``truth``, ``rows``, ``columns``, ``observed`` (the observed entries, row by
        row), ``outlier`` (bool, of the observed entries), ``outlier_mask`` (bool, of all), ``U``, ``V``.

    Examples
    --------
    >>> import numpy as np
    >>> from selfpaced.datasets import make_low_rank
    >>> made = make_low_rank(random_state=0)
    >>> made.data.shape, made.observed.size, int(made.outlier.sum())
    ((100, 100), 6000, 2000)
    """
    if min(n_rows, n_columns, rank) < 1:
        raise ValueError(f"n_rows, n_columns and rank must be positive, got {(n_rows, n_columns, rank)!r}")
    if missing < 0 or outliers < 0 or missing + outliers > 1:
        raise ValueError(f"missing and outliers must be shares with sum <= 1, got {(missing, outliers)!r}")
    rng = np.random.default_rng(random_state)
    U, V = rng.standard_normal((n_rows, rank)), rng.standard_normal((n_columns, rank))
    truth = U @ V.T
    order = rng.permutation(truth.size)
    n_missing, n_outliers = int(missing * truth.size), int(outliers * truth.size)
    hidden, wrong, fine = np.split(order, [n_missing, n_missing + n_outliers])
    data = truth.ravel().copy()
    data[wrong] += rng.uniform(-amplitude, amplitude, wrong.size)
    data[fine] += noise * rng.standard_normal(fine.size)
    data[hidden] = np.nan
    mask = np.zeros(truth.size, dtype=bool)
    mask[wrong] = True
    entries = np.sort(order[n_missing:])
    return Bunch(
        data=data.reshape(truth.shape),
        truth=truth,
        rows=entries // n_columns,
        columns=entries % n_columns,
        observed=data[entries],
        outlier=mask[entries],
        outlier_mask=mask.reshape(truth.shape),
        U=U,
        V=V,
    )


def make_multiview_digits() -> Bunch:
    """Scikit-learn's 1797 embedded digits (8 x 8) in four views; no file and no network needed.

    The views are ``pixels`` (64 grey values), ``fourier`` (the magnitudes of the two-dimensional spectrum's
    non-redundant half, 40), ``profiles`` (row and column sums and, from each side, the distance to the first
    ink, 48) and ``moments`` (mass, centroid, central moments up to order 4, 14).

    Returns
    -------
    Bunch
        ``views`` (dict of name to array), ``target`` (the digit), ``data`` (the views side by side),
        ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from selfpaced.datasets import make_multiview_digits
    >>> {name: view.shape[1] for name, view in make_multiview_digits().views.items()}
    {'pixels': 64, 'fourier': 40, 'profiles': 48, 'moments': 14}
    """
    digits = load_digits()
    images = np.asarray(digits.images, dtype=np.float64)
    views = {
        "pixels": images.reshape(len(images), -1),
        "fourier": np.abs(np.fft.rfft2(images)).reshape(len(images), -1),
        "profiles": _profiles(images),
        "moments": _moments(images),
    }
    return Bunch(
        views=views,
        target=digits.target.astype(np.int64),
        data=np.hstack(list(views.values())),
        target_names=[str(digit) for digit in range(10)],
        DESCR="Digits embedded in scikit-learn (UCI Optical Recognition), in four views.",
    )


def _profiles(images: NDArray[np.float64]) -> NDArray[np.float64]:
    ink = images > 4.0
    width = images.shape[2]
    distances = []
    for axis in (1, 2):
        for seen in (ink, np.flip(ink, axis)):
            distances.append(np.where(seen.any(axis), seen.argmax(axis), width))
    return np.hstack([images.sum(1), images.sum(2), *distances]).astype(np.float64)


def _moments(images: NDArray[np.float64]) -> NDArray[np.float64]:
    side = np.arange(images.shape[1], dtype=np.float64)
    mass = images.sum((1, 2))
    y = (images.sum(2) @ side) / mass
    x = (images.sum(1) @ side) / mass
    dy, dx = side[None, :] - y[:, None], side[None, :] - x[:, None]
    orders = [(p, q) for total in (2, 3, 4) for p in range(total + 1) for q in [total - p]]
    central = [np.einsum("nij,ni,nj->n", images, dy**p, dx**q) / mass ** (1 + (p + q) / 2) for p, q in orders]
    # Order 4 is represented by its even moments: the odd ones add little but noise on 8 x 8 images.
    keep = [moment for (p, q), moment in zip(orders, central, strict=True) if p + q < 4 or p % 2 == 0]
    compactness = (images**2).sum((1, 2)) / mass
    return np.column_stack([mass, y, x, compactness, *keep])
