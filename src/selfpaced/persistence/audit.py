"""What a model file may hold: its sizes, the kinds of its parts and their types, all checked before anything is built.

skops asks which types are trusted. That is not enough: what is trusted by name may be reached by another kind of part
(a method, a partial call), and a file may unpack into more than there is memory. So the plan of a file is walked here
first, with a list of the few kinds of parts that fitted models are made of.
"""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.special  # noqa: F401 - its modules may be asked for
from sklearn.base import BaseEstimator

FACTS = "selfpaced.json"
PLAN = "schema.json"

MOST_PLAN = 64 << 20  # cost: bytes of JSON that are parsed; a forest of 4,000 trees needs as much
MOST_PARTS = 2_000_000  # cost: and parts; "{}," becomes thirty times as many bytes in memory
LEAST_UNPACKED = 256 << 20  # cost: bytes a file may unpack into, however small it is: equal weights shrink a lot
MOST_RATIO = 100  # cost: beyond that, this many times its own size
DEEPEST = 200  # numerical safety: levels of nested parts, far below Python's own limit

# Kinds of parts that hold data.
_DATA = {
    "BytearrayNode", "BytesNode", "DTypeNode", "DefaultDictNode", "DictNode", "JsonNode", "ListNode", "LossNode",
    "MaskedArrayNode", "NdArrayNode", "ObjectNode", "RandomStateNode", "SetNode", "SliceNode", "SparseMatrixNode",
    "TreeNode", "TupleNode", "ConstructorFromReduceNode", "_DictWithDeprecatedKeysNode",
}  # fmt: skip
_GENERATORS = {"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}
_TYPES = {"bool", "bytes", "complex", "float", "int", "object", "str"}
_CHECK = "sklearn.utils.validation.check_array"  # boosting keeps a partial call of it
_FROM_OTHERS = {
    "numpy.dtype",
    "functools.partial",
    _CHECK,
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    # plain holders of what a calibration, a network and a vote have learnt
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.utils._bunch.Bunch",
}

# What fitted models of this library hold: values one by one, and the modules whose dataclasses are such values.
_VALUES = {
    "clustering.embedding.Graph",
    "clustering.embedding.SpectralEmbedding",
    "clustering.kernels.Cost",
    "clustering.n_clusters.UsualLoss",
    "clustering.views.Scaler",
    "factorization.engine.WeightedSolve",
    "factorization.engine.Side",
    "factorization.inputs.Layout",
    "factorization.residuals.CellErrors",
    "factorization.residuals.UsualRows",
    "linear._leverage.Rejection",
    "linear._leverage.RowSizes",
    "linear.inference.Inference",
    "distributed.crossfit.LabelNoiseModel",
    "distributed.crossfit.ValueNoiseModel",
    "selection.Candidate",
    "value_noise.assessment.ValueAssessment",
    "value_noise.mixture.Mixture",
    "value_noise.reference.Reference",
}
_FAMILIES = (
    "assessment.",
    "label_noise.",
    "pacing.",
    "regularizers.",
    "robust.pace.",
)


class UntrustedFileError(ValueError):
    """A file that is not opened, with the reason.

    Attributes
    ----------
    types : tuple of str
        The types in it that are not trusted; empty if the file is damaged or no skops file.
    """

    def __init__(self, message: str, types: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.types = tuple(types)


# ------------------------------------------------------------------------------------------------------ trust


def is_trusted(name: str) -> bool:
    """Whether :func:`load` builds objects of this type, besides those skops trusts by itself.

    Of this library they are its estimators, rules, paces, and the values that fitted models hold: they hold what they
    are given and run nothing when they are built. Functions and everything else have to be declared by whoever opens
    the file.

    >>> is_trusted("selfpaced.selection.Candidate"), is_trusted("selfpaced.persistence.load"), is_trusted("os.system")
    (True, False, False)
    """
    if name in _FROM_OTHERS:
        return True
    package, _, own = name.partition(".")
    module, _, last = name.rpartition(".")
    if package != __name__.partition(".")[0] or not name.replace(".", "").isidentifier():
        return False
    try:
        found = getattr(import_module(module), last, None)
    except ImportError:
        return False
    if not isinstance(found, type) or found.__module__ != module:
        return False
    if own in _VALUES or own.startswith(_FAMILIES):
        return is_dataclass(found)
    return issubclass(found, BaseEstimator)


def refused(plan: Any, declared: Collection[str]) -> list[str]:
    """Parts of a plan that are neither data nor declared, by the name of what they would reach."""
    found = []
    for part in parts_of(plan):
        name = f"{part.get('__module__')}.{part.get('__class__')}"
        if not _is_data(part, name) and name not in declared and _reached(part, name) not in declared:
            found.append(_reached(part, name))
    return sorted(set(found))


def _is_data(part: dict[str, Any], name: str) -> bool:
    kind = part.get("__loader__")
    if kind in _DATA:
        return True
    if kind == "TypeNode":
        return _is_number_type(str(part.get("__module__")), str(part.get("__class__")))
    if kind == "FunctionNode":
        return name == _CHECK or _is_ufunc(str(part.get("__module__")), str(part.get("__class__")))
    content = part.get("content")
    if not isinstance(content, dict):
        return False
    if kind == "PartialNode":
        func = content.get("func")
        return isinstance(func, dict) and (func.get("__loader__"), _name(func)) == ("FunctionNode", _CHECK)
    if kind == "RandomGeneratorNode":
        return _generator(content) in _GENERATORS
    return False


def _name(part: dict[str, Any]) -> str:
    return f"{part.get('__module__')}.{part.get('__class__')}"


def _reached(part: dict[str, Any], name: str) -> str:
    """What a part would hand out: a method of an object, the function of a partial call, or itself."""
    content = part.get("content")
    if not isinstance(content, dict):
        return name
    if part.get("__loader__") == "MethodNode":
        return f"{name}.{content.get('func')}"
    func = content.get("func") if part.get("__loader__") == "PartialNode" else None
    return _reached(func, _name(func)) if isinstance(func, dict) else name


def _is_number_type(module: str, name: str) -> bool:
    if module == "builtins":
        return name in _TYPES
    found = getattr(np, name, None) if module == "numpy" else None
    return isinstance(found, type) and issubclass(found, np.generic)


def _is_ufunc(module: str, name: str) -> bool:
    """Functions of numbers, such as a FunctionTransformer takes: ``numpy.log1p``, ``scipy.special.expit``.

    Nothing is imported for it, and a function of another module by the name of a ufunc is none.
    """
    found = getattr(sys.modules.get(module), name, None)
    return module.partition(".")[0] in ("numpy", "scipy") and isinstance(found, np.ufunc)


def _generator(content: dict[str, Any]) -> str:
    try:
        return str(json.loads(content["bit_generator"]["content"]["bit_generator"]["content"]))
    except (KeyError, TypeError, ValueError):
        return ""


def parts_of(plan: Any) -> Iterator[dict[str, Any]]:
    """Every part of a plan, at every level."""
    waiting = [(plan, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > DEEPEST:
            raise UntrustedFileError(f"its parts are nested more than {DEEPEST} levels deep")
        if isinstance(value, dict):
            if "__loader__" in value or "__class__" in value:
                yield value
            waiting.extend((child, depth + 1) for child in value.values())
        elif isinstance(value, list):
            waiting.extend((child, depth + 1) for child in value)


# ------------------------------------------------------------------------------------------------------- sizes


def plan_of(data: bytes) -> dict[str, Any]:
    """The plan by which skops builds the model, after a check of the sizes in the file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_sizes(archive, len(data))
            plan = _object(archive, PLAN)
            _check_references(archive, plan, len(data))
    except UntrustedFileError:
        raise
    except Exception as error:  # whatever a damaged archive makes zipfile do, it is the file's fault
        raise UntrustedFileError(f"is damaged, or no model file: {error}") from error
    return plan


def facts_of(data: bytes) -> dict[str, Any]:
    """What `save` wrote about the model; empty for files of others."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if FACTS not in archive.namelist():
                return {}
            _check_sizes(archive, len(data))
            facts = _object(archive, FACTS)
    except UntrustedFileError:
        raise
    except Exception as error:
        raise UntrustedFileError(f"is damaged: {FACTS} cannot be read: {error}") from error
    versions = facts.get("versions", {})
    if not isinstance(versions, dict) or not all(isinstance(version, str) for version in versions.values()):
        raise UntrustedFileError(f"is damaged: versions in {FACTS} must be texts by name, got {str(versions)[:80]}")
    return facts


def _check_sizes(archive: zipfile.ZipFile, size: int) -> None:
    """Sizes as the archive declares them: nothing more is ever read from it."""
    for name in (FACTS, PLAN):
        if name in archive.namelist() and archive.getinfo(name).file_size > MOST_PLAN:
            declared = archive.getinfo(name).file_size
            raise UntrustedFileError(f"was not opened: {name} in it has {declared:,} bytes, more than {MOST_PLAN:,}")
    _check_total(sum(info.file_size for info in archive.infolist()), size)


def _check_total(total: int, size: int) -> None:
    most = max(LEAST_UNPACKED, MOST_RATIO * size)
    if total > most:
        raise UntrustedFileError(
            f"was not opened: its {size:,} bytes would unpack into {total:,}, more than the limit of {most:,}"
        )


def _object(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    text = archive.read(name)
    if sum(text.count(sign) for sign in (b"{", b"[", b",")) > MOST_PARTS:  # each becomes an object of Python
        raise UntrustedFileError(f"was not opened: {name} in it has more than {MOST_PARTS:,} parts")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise UntrustedFileError(f"is damaged: {name} must be a JSON object, got {type(found).__name__}")
    return found


def _check_references(archive: zipfile.ZipFile, plan: dict[str, Any], size: int) -> None:
    """Arrays must have the size they say, and one array named a thousand times is a thousand arrays."""
    total, seen = 0, dict[str, int]()
    for part in parts_of(plan):
        name = part.get("file")
        if name is None:
            continue
        if not isinstance(name, str):
            raise UntrustedFileError(f"is damaged: the name of a part must be text, got {name!r}")
        if name not in seen:
            seen[name] = _unpacked(archive, name)
        total += seen[name]
        _check_total(total, size)


def _unpacked(archive: zipfile.ZipFile, name: str) -> int:
    """The bytes of a member once it is an array: compressed ones are archives of their own."""
    info = archive.getinfo(name)
    if name.endswith(".npz"):
        with archive.open(info) as stream, zipfile.ZipFile(io.BytesIO(stream.read())) as inner:
            return info.file_size + sum(member.file_size for member in inner.infolist())
    if name.endswith(".npy"):
        with archive.open(info) as stream:
            shape, dtype, header = _header(stream)
        if header + int(np.prod(shape, dtype=object)) * dtype.itemsize != info.file_size:
            raise UntrustedFileError(f"is damaged: {name} in it says shape {shape}, and has {info.file_size:,} bytes")
    return info.file_size


def _header(stream: Any) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise UntrustedFileError(f"is damaged: an array of format {version}")
    shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise UntrustedFileError("was not opened: an array of objects in it may run code")
    return shape, dtype, stream.tell()
