"""The four data sets of the paper's experiments."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.utils import Bunch

from .fetch import read_table
from .registry import MFEAT, SPAMBASE, SVMGUIDE1

__all__ = ["load_breast", "load_mfeat", "load_spambase", "load_svmguide1"]

_Pair = tuple[NDArray[np.float64], NDArray[np.int64]]


def load_breast(*, return_X_y: bool = False) -> Bunch | _Pair:
    """Breast Cancer Wisconsin (diagnostic), 569 x 30, embedded in scikit-learn.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``data``, ``target`` (1 = benign), ``feature_names``, ``target_names``, ``DESCR``, ``source``.

    Examples
    --------
    >>> from selfpaced_experiments.data import load_breast
    >>> load_breast().data.shape
    (569, 30)
    """
    bunch = load_breast_cancer()
    return _bunch(
        bunch.data,
        bunch.target,
        [str(name) for name in bunch.feature_names],
        [str(name) for name in bunch.target_names],
        "Breast Cancer Wisconsin (diagnostic), UCI, as embedded in scikit-learn.",
        "scikit-learn",
        return_X_y,
    )


def load_spambase(
    *, data_dir: str | os.PathLike[str] | None = None, download: bool = True, return_X_y: bool = False
) -> Bunch | _Pair:
    """UCI Spambase: 4601 messages, 57 word and run-length frequencies, 1 = spam.

    Parameters
    ----------
    data_dir : path-like, optional
        Directory with ``spambase.data``. Searched before the directory named by the environment variable
        ``SELFPACED_DATA``, the cache and OpenML (id 44), in this order.
    download : bool, default=True
        Whether the network may be asked.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``feature_names``, ``target_names``, ``DESCR``, ``source``.

    Raises
    ------
    DataNotFoundError
        Nowhere to be found; the message says what to put where.
    CorruptDataError
        A file whose checksum does not match.
    """
    table, source = read_table(SPAMBASE, data_dir, download)
    names = [f"frequency_{i}" for i in range(54)] + ["run_average", "run_longest", "run_total"]
    description = "UCI Spambase (CC BY 4.0): word frequencies of messages, 1 = spam."
    return _bunch(table[:, :-1], table[:, -1], names, ["ham", "spam"], description, source, return_X_y)


def load_svmguide1(
    *, data_dir: str | os.PathLike[str] | None = None, download: bool = True, return_X_y: bool = False
) -> Bunch | _Pair:
    """LIBSVM's svmguide1 (astroparticle data): training and test rows together, 7089 x 4.

    Parameters
    ----------
    data_dir : path-like, optional
        Directory with ``svmguide1`` and ``svmguide1.t``; see :func:`load_spambase` for the order of search.
        OpenML has no copy: the download comes from LIBSVM's page by pooch.
    download : bool, default=True
        Whether the network may be asked.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``feature_names``, ``target_names``, ``DESCR``, ``source``.
    """
    tables, sources = zip(*(read_table(file, data_dir, download) for file in SVMGUIDE1), strict=True)
    table = np.vstack(tables)
    names = [f"feature_{i}" for i in range(1, 5)]
    description = "LIBSVM svmguide1 and svmguide1.t together (Hsu, Chang, Lin)."
    return _bunch(table[:, :-1], table[:, -1], names, ["0", "1"], description, "; ".join(sources), return_X_y)


def load_mfeat(
    *,
    views: tuple[str, ...] = ("fou", "fac", "kar", "pix", "zer", "mor"),
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> Bunch:
    """UCI Multiple Features: 2000 handwritten digits seen in six ways.

    Parameters
    ----------
    views : tuple of str
        Any of ``fou`` (76 Fourier coefficients), ``fac`` (216 profile correlations), ``kar`` (64
        Karhunen-Loeve coefficients), ``pix`` (240 pixel averages), ``zer`` (47 Zernike moments), ``mor`` (6
        morphological features).
    data_dir : path-like, optional
        Directory with ``mfeat/mfeat-fou`` and so on; see :func:`load_spambase` for the order of search.
    download : bool, default=True
        Whether the network may be asked (OpenML ids 12, 14, 16, 18, 20, 22).

    Returns
    -------
    Bunch
        ``views`` (dict of name to array), ``target`` (the digit), ``data`` (the views side by side),
        ``DESCR``, ``source`` (dict of name to origin).
    """
    unknown = sorted(set(views) - set(MFEAT))
    if unknown or not views:
        raise ValueError(f"views must be some of {sorted(MFEAT)}, got {views!r}")
    tables, sources = {}, {}
    for view in views:
        tables[view], sources[view] = read_table(MFEAT[view], data_dir, download)
    return Bunch(
        views=tables,
        target=np.repeat(np.arange(10), 200),
        data=np.hstack(list(tables.values())),
        target_names=[str(digit) for digit in range(10)],
        DESCR="UCI Multiple Features (CC BY 4.0): handwritten digits, 200 of each, in six views.",
        source=sources,
    )


def _bunch(
    data: NDArray[np.float64],
    target: NDArray[np.float64],
    feature_names: list[str],
    target_names: list[str],
    description: str,
    source: str,
    return_X_y: bool,
) -> Bunch | _Pair:
    data, labels = np.ascontiguousarray(data, dtype=np.float64), target.astype(np.int64)
    if return_X_y:
        return data, labels
    return Bunch(
        data=data,
        target=labels,
        feature_names=feature_names,
        target_names=target_names,
        DESCR=description,
        source=source,
    )
