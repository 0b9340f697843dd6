"""Find a data file in a directory, in the cache or on the network, and refuse a corrupt one by name."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from selfpaced.datasets import cache_directory

from .registry import DataFile

__all__ = ["CorruptDataError", "DataNotFoundError", "read_table"]

log = logging.getLogger(__name__)

ENVIRONMENT = "SELFPACED_DATA"


class CorruptDataError(ValueError):
    """A data file whose checksum does not match; the message names the file."""


class DataNotFoundError(FileNotFoundError):
    """A data set that is in no directory and cannot be downloaded; the message says what to put where."""


def read_table(
    file: DataFile, data_dir: str | os.PathLike[str] | None = None, download: bool = True
) -> tuple[NDArray[np.float64], str]:
    """Values of a known file and where they were found.

    Parameters
    ----------
    file : DataFile
        The file looked for.
    data_dir : path-like, optional
        Searched before ``SELFPACED_DATA``, which is searched before the cache.
    download : bool, default=True
        Whether the network may be asked when no directory has the file.

    Returns
    -------
    values : ndarray of shape (rows, columns)
        The label, where the file has one, is the last column.
    source : str
        The path of the file read, or ``"openml:<id>"``.
    """
    for path in _candidates(file, data_dir):
        if path.is_file():
            return _verified(file, path), str(path)
    if not download:
        raise DataNotFoundError(_instructions(file, data_dir, "download=False forbids the network"))
    try:
        if file.openml is not None:
            return _from_openml(file), f"openml:{file.openml}"
        path = _from_publisher(file)
    except (OSError, ImportError) as error:
        reason = f"the download failed ({type(error).__name__}: {error})"
        raise DataNotFoundError(_instructions(file, data_dir, reason)) from error
    return _verified(file, path), str(path)


def _directories(data_dir: str | os.PathLike[str] | None) -> list[Path]:
    found = [Path(data_dir)] if data_dir is not None else []
    if os.environ.get(ENVIRONMENT):
        found.append(Path(os.environ[ENVIRONMENT]))
    return [*found, cache_directory()]


def _candidates(file: DataFile, data_dir: str | os.PathLike[str] | None) -> Iterator[Path]:
    for directory in _directories(data_dir):
        yield directory / file.name
        flat = directory / file.name.rsplit("/", 1)[-1]
        if flat != directory / file.name:
            yield flat


def _verified(file: DataFile, path: Path) -> NDArray[np.float64]:
    """Parse a file after comparing its checksum; the values' own checksum decides where the bytes differ."""
    raw = path.read_bytes()
    same_bytes = hashlib.sha256(raw).hexdigest() == file.sha256
    try:
        values = _parse(file, raw)
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise _corrupt(file, path, f"it cannot be parsed ({error})") from error
    if not same_bytes and _values_checksum(values) != file.values_sha256:
        found = hashlib.sha256(raw).hexdigest()
        raise _corrupt(file, path, f"expected sha256 {file.sha256}, got {found}, and its values differ too")
    return values


def _corrupt(file: DataFile, path: Path, why: str) -> CorruptDataError:
    return CorruptDataError(
        f"{path} is not the published {file.name!r}: {why}. Delete it and put a fresh copy in its place."
    )


def _values_checksum(values: NDArray[np.float64]) -> str:
    # + 0.0 turns a negative zero, which text formats write either way, into a positive one.
    return hashlib.sha256((np.ascontiguousarray(values, dtype="<f8") + 0.0).tobytes()).hexdigest()


def _parse(file: DataFile, raw: bytes) -> NDArray[np.float64]:
    if file.kind == "svmlight":
        X, y = load_svmlight_file(io.BytesIO(raw), n_features=file.shape[1] - 1, zero_based=False)
        values = np.column_stack([X.toarray(), y])
    else:
        lines = raw.decode("ascii").split("\n")
        values = np.loadtxt(lines, delimiter="," if file.kind == "csv" else None, ndmin=2)
    if values.shape != file.shape:
        raise ValueError(f"expected {file.shape[0]} rows of {file.shape[1]} values, got shape {values.shape}")
    return values


def _from_openml(file: DataFile) -> NDArray[np.float64]:
    """Download through scikit-learn, which verifies OpenML's own checksum and keeps its own cache."""
    from sklearn.datasets import fetch_openml

    log.info("downloading %s from OpenML (id %s)", file.name, file.openml)
    home = cache_directory() / "openml"
    with warnings.catch_warnings():
        # scikit-learn warns at each retry; the error that follows says all of it once.
        warnings.filterwarnings("ignore", message="A network error occurred")
        bunch = fetch_openml(data_id=file.openml, as_frame=False, parser="liac-arff", data_home=str(home))
    data = np.asarray(bunch.data, dtype=np.float64)
    if file.kind == "csv":
        data = np.column_stack([data, np.asarray(bunch.target, dtype=np.float64)])
    elif not _in_digit_blocks(bunch.target):
        raise CorruptDataError(
            f"OpenML's data set {file.openml} is not in the published row order of {file.name!r}, so "
            f"that its rows cannot be matched with the other views. {_put(file)}"
        )
    if data.shape != file.shape:
        raise CorruptDataError(
            f"OpenML's data set {file.openml} should have shape {file.shape}, got {data.shape}. {_put(file)}"
        )
    return data


def _in_digit_blocks(target: NDArray[np.object_]) -> bool:
    blocks = np.asarray(target).reshape(10, -1)
    return bool((blocks == blocks[:, :1]).all()) and len(set(blocks[:, 0])) == 10


def _from_publisher(file: DataFile) -> Path:
    """Download by pooch into the cache; the file gets its name only once it has been verified."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError("downloading this file needs pooch: pip install pooch") from error
    target = cache_directory() / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(pooch.retrieve(file.url, known_hash=None, fname=target.name + ".part", path=target.parent))
    try:
        _verified(file, part)
    except CorruptDataError:
        part.unlink()
        raise
    part.replace(target)
    return target


def _put(file: DataFile) -> str:
    return f"Put the file {file.name!r} (sha256 {file.sha256}) into the directory of {ENVIRONMENT} or data_dir."


def _instructions(file: DataFile, data_dir: str | os.PathLike[str] | None, reason: str) -> str:
    searched = ", ".join(str(directory) for directory in _directories(data_dir))
    origin = file.url or f"https://www.openml.org/d/{file.openml} or the UCI repository"
    return f"{file.name!r} was not found in {searched}, and {reason}. {_put(file)} It comes from {origin}."
