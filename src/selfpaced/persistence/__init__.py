"""Save fitted models as files that can be opened without running foreign code.

A pickle may run anything when it is loaded. A skops file names every type in it, and only types that are known to be
harmless are built: scikit-learn's, NumPy's, and the estimators and values of this library. Trees are read by compiled
code that believes its input, so they are checked node by node.

>>> import io
>>> from sklearn.datasets import load_iris
>>> from selfpaced import SelfPacedLogisticRegression
>>> from selfpaced.persistence import load, save
>>> X, y = load_iris(return_X_y=True)
>>> model = SelfPacedLogisticRegression().fit(X, y)
>>> file = io.BytesIO()
>>> save(model, file)
>>> bool((load(file).predict(X) == model.predict(X)).all())
True
"""

from __future__ import annotations

import io
import json
import os
import platform
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from .audit import FACTS, UntrustedFileError, facts_of, is_trusted, plan_of, refused

__all__ = ["UntrustedFileError", "is_trusted", "load", "metadata", "replacing", "save"]


# cost: skops looks for estimators in all packages of scikit-learn; these have none, and import PyTorch and Dask
ARRAYS = tuple(f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask", "cupy"))


def save(model: Any, file: str | os.PathLike[str] | IO[bytes], *, facts: Mapping[str, Any] | None = None) -> None:
    """Save a fitted model, or a Pipeline that holds one, as a skops file.

    Parameters
    ----------
    model : estimator
        Anything fitted by this library or by scikit-learn.
    file : path-like or binary file
        File to write. An old file is replaced only once the new one is complete.
    facts : mapping, optional
        What else to remember, as JSON; :func:`metadata` gives it back.
    """
    made, content = io.BytesIO(), io.BytesIO()
    with _without_indexes(model):
        _skops().dump(model, made)
    versions = {"python": platform.python_version(), **_versions()}
    with zipfile.ZipFile(made) as parts, zipfile.ZipFile(content, "w", compresslevel=1) as archive:
        for name in parts.namelist():
            part = parts.read(name)
            archive.writestr(name, part, zipfile.ZIP_DEFLATED if _shrinks(part) else zipfile.ZIP_STORED)
        archive.writestr(FACTS, json.dumps({"versions": versions, **(facts or {})}))
    _warn_of_untrusted(content.getvalue())
    if hasattr(file, "write"):
        file.write(content.getbuffer())
        return
    with replacing(file) as stream:
        stream.write(content.getbuffer())


def _shrinks(part: bytes) -> bool:
    """Whether packing makes it half as large, by its beginning: most numbers hardly become smaller."""
    begin = part[: 1 << 16]
    return 2 * len(zlib.compress(begin, 1)) < len(begin)


def _warn_of_untrusted(data: bytes) -> None:
    """Say it now if :func:`load` will refuse a file."""
    try:
        untrusted, _ = _types(data, set())
        said = f"the model holds {_shown(untrusted)}: open its file with load(file, trusted=[...]) and name these types"
    except UntrustedFileError as error:
        untrusted, said = [str(error)], f"load will not open the file: it {error}"
    if untrusted:
        warnings.warn(said, UserWarning, stacklevel=3)


def load(file: str | os.PathLike[str] | bytes | IO[bytes], *, trusted: Iterable[str] = ()) -> Any:
    """Open a model saved by :func:`save`, or any skops file of types we trust.

    Parameters
    ----------
    file : path-like, bytes or binary file
        The skops file.
    trusted : iterable of str
        Further types to build: look at what they are before you say so.

    Returns
    -------
    estimator

    Raises
    ------
    UntrustedFileError
        It is no skops file, it is damaged, or it holds types that are not trusted.
    """
    name, data = _content(file)
    with _named(name):
        facts = facts_of(data)
        untrusted, asked = _types(data, set(trusted))
    if untrusted:
        raise UntrustedFileError(
            f"{name} was not opened: it holds {_shown(untrusted)}, which belongs neither to scikit-learn nor to "
            "selfpaced and may run code. If you know where the file comes from, name what you trust: trusted=[...] "
            "(--trust TYPE)",
            untrusted,
        )
    _tell_versions(name, facts)
    try:
        model = _skops().loads(data, trusted=sorted(asked))
        _build_indexes(model)
    except Exception as error:
        raise UntrustedFileError(f"{name} cannot be rebuilt here: {error}") from error
    if not all(_sound(tree, width) for tree, width in _trees(model)):
        raise UntrustedFileError(f"{name} was not opened: a tree in it points outside itself")
    return model


def _types(data: bytes, declared: set[str]) -> tuple[list[str], set[str]]:
    """The types of a file that are not trusted, and all that skops asks about."""
    untrusted = refused(plan_of(data), declared)
    try:
        asked = set(_skops().get_untrusted_types(data=data))
    except Exception as error:  # whatever a damaged schema makes skops do, it is the file's fault
        if not untrusted:
            raise UntrustedFileError(f"is damaged, or no model file: {error}") from error
        asked = set()
    return sorted({*untrusted, *(kind for kind in asked - declared if not is_trusted(kind))}), asked


def _shown(types: list[str]) -> str:
    return ", ".join(types[:5]) + (f" and {len(types) - 5} more" if len(types) > 5 else "")


def metadata(file: str | os.PathLike[str] | bytes | IO[bytes]) -> dict[str, Any]:
    """Return the facts and versions that :func:`save` wrote; empty for other files."""
    name, data = _content(file)
    with _named(name):
        return facts_of(data)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """What is wrong with a file, with its name in front."""
    try:
        yield
    except UntrustedFileError as error:
        raise UntrustedFileError(f"{name} {error}", error.types) from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file beside ``path`` that takes its place when all went well, and vanishes when not."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp's files are private, results are not
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            error.filename = str(path)  # a full disk says so without saying where
        raise


def _content(file: Any) -> tuple[str, bytes]:
    if isinstance(file, bytes | bytearray):
        name, data = "the file", bytes(file)
    elif hasattr(file, "read"):
        file.seek(0)
        name, data = "the file", file.read()
    else:
        name, data = str(file), Path(file).read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(data)):
        pickled = data[:1] == b"\x80"
        reason = (
            "it looks like a pickle, which may run anything when it is loaded" if pickled else "it is not a skops file"
        )
        raise UntrustedFileError(f"{name} was not opened: {reason}")
    return name, data


def _tell_versions(name: str, facts: Mapping[str, Any]) -> None:
    """Warn where the minor version of scikit-learn or of this library differs: nothing is promised across them."""
    saved, here = facts.get("versions", {}), _versions()
    for package in ("scikit-learn", "selfpaced"):
        then, now = saved.get(package), here[package]
        if then and then.split(".")[:2] != now.split(".")[:2]:
            message = f"{name} was saved with {package} {then}, this is {now}: results may differ"
            warnings.warn(message, UserWarning, stacklevel=3)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    from .. import __version__

    return {"selfpaced": __version__, **{name: version(name) for name in ("scikit-learn", "numpy", "skops")}}


def _skops() -> Any:
    try:
        with _unseen(() if "skops.io" in sys.modules else ARRAYS):
            import skops.io
    except ImportError as error:
        raise ImportError('saving and loading models needs skops: pip install "selfpaced[io]"') from error
    return skops.io


@contextmanager
def _unseen(names: Iterable[str]) -> Iterator[None]:
    """Block the import of modules that are not imported yet."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)  # another thread may have been here


def _trees(model: Any) -> Iterator[tuple[Any, int]]:
    """Every fitted tree inside an object, with the number of features its owner takes."""
    for value, width in _inside(model):
        if type(value).__name__ in ("Tree", "TreePredictor") and type(value).__module__.startswith("sklearn."):
            yield value, width


def _sound(tree: Any, width: int) -> bool:
    """Children come after their parents and inside the tree, features inside the table."""
    if type(tree).__name__ == "Tree":
        left, right, feature = tree.children_left, tree.children_right, tree.feature
        leaf = left == -1
        bitsets = tree.n_features == width
    else:
        nodes = tree.nodes
        left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
        leaf, feature = nodes["is_leaf"].astype(bool), nodes["feature_idx"].astype(np.int64)
        category = nodes["is_categorical"].astype(bool) & ~leaf
        bitsets = bool(np.all(nodes["bitset_idx"][category] < len(tree.raw_left_cat_bitsets)))
    inner, index = ~leaf, np.arange(len(left))
    inside = all(np.all((side[inner] > index[inner]) & (side[inner] < len(left))) for side in (left, right))
    return bool(len(left) > 0 and bitsets and inside and np.all((feature[inner] >= 0) & (feature[inner] < width)))


# --------------------------------------------------------------- indexes of neighbours: built again from the rows

# Compiled code reads an index and believes what it says, so none is taken from a file. The same rows give the same one.


def _inside(model: Any) -> Iterator[tuple[Any, int]]:
    """The model and every object inside it, each once, with the number of features that its owner takes."""
    seen: set[int] = set()
    waiting = [(model, 0)]
    while waiting:
        value, width = waiting.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
            continue
        seen.add(id(value))
        yield value, width
        own = vars(value) if hasattr(value, "__dict__") else {}
        if isinstance(value, Mapping):
            children: Iterable[Any] = value.values()
        elif isinstance(value, list | tuple | set):
            children = value
        elif isinstance(value, np.ndarray):
            children = value.ravel() if value.dtype == object else ()
        else:
            children = own.values()
        waiting.extend((child, int(own.get("n_features_in_", width))) for child in list(children))


def _indexed(model: Any) -> Iterator[Any]:
    """The nearest-neighbour models inside an object that look rows up in a tree."""
    for value, _ in _inside(model):
        own = getattr(value, "__dict__", {})
        if type(value).__module__.startswith("sklearn.") and own.get("_fit_method") in ("kd_tree", "ball_tree"):
            yield value


@contextmanager
def _without_indexes(model: Any) -> Iterator[None]:
    """Take the indexes of neighbours out of a model for a while."""
    found = [(value, value._tree) for value in _indexed(model)]
    try:
        for value, _ in found:
            value._tree = None
        yield
    finally:
        for value, tree in found:
            value._tree = tree


def _build_indexes(model: Any) -> None:
    """Build the indexes that a file left out."""
    from sklearn.neighbors import BallTree, KDTree

    kinds = {"kd_tree": KDTree, "ball_tree": BallTree}
    for value in _indexed(model):
        if value._tree is None:
            tree, given = kinds[value._fit_method], value.effective_metric_params_
            value._tree = tree(value._fit_X, value.leaf_size, metric=value.effective_metric_, **given)
