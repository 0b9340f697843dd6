"""Checksums of source code, by which a cached answer knows that it is stale."""

from __future__ import annotations

import ast
import functools
import hashlib
from importlib.util import find_spec
from pathlib import Path

__all__ = ["code", "fingerprint", "source"]

_LIBRARY = "selfpaced"


@functools.cache
def fingerprint(parts: tuple[str, ...], alone: tuple[str, ...] = ()) -> str:
    """Checksum of the code (not the comments) of some modules, and of all of the library that the parts import.

    Modules are named as they are imported, but looked up as files: nothing is run.

    Parameters
    ----------
    parts : tuple of str
        Modules or packages; what they import from ``selfpaced`` counts as well, what they import from the
        experiments does not: how answers are told is no part of what is computed.
    alone : tuple of str
        Modules that count by themselves.

    Examples
    --------
    >>> fingerprint(("selfpaced.solver",)) == fingerprint(("selfpaced.pacing",))
    False
    """
    found = {path for name in alone for path in source(name)}
    waiting = list(parts)
    while waiting:
        for path in source(waiting.pop()):
            if path not in found:
                found.add(path)
                waiting += _imports(path)
    digest = hashlib.sha256()
    for name, path in sorted((_module(path), path) for path in found):
        digest.update(name.encode())
        digest.update(code(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:16]


def source(name: str) -> list[Path]:
    """The files of a package, or the one of a module; a name that has none is an error, never an empty answer."""
    found = _files(name)
    if not found:
        raise ValueError(f"a part must be a module or package with source files, got {name!r}")
    return found


def _files(name: str) -> list[Path]:
    top, *inner = name.split(".")
    spec = find_spec(top)
    if spec is None or spec.origin is None or not spec.has_location:
        return []
    origin = Path(spec.origin).resolve()
    place = origin.parent.joinpath(*inner) if spec.submodule_search_locations else origin.with_suffix("")
    if place.is_dir():
        return sorted(place.rglob("*.py"))
    module = place.with_name(place.name + ".py")
    return [module] if module.is_file() else []


def _module(path: Path) -> str:
    """The dotted name of a file of the library or of the experiments."""
    words = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        words.append(folder.name)
        folder = folder.parent
    return ".".join(reversed(words))


def _imports(path: Path) -> list[str]:
    """Modules of the library that a file imports by ``from``; a package's other modules do not come along."""
    here = _module(path).split(".")
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        words = [*(here[: -node.level] if node.level else []), *(node.module.split(".") if node.module else [])]
        if words[:1] != [_LIBRARY]:
            continue
        target = ".".join(words)
        inner = [name for alias in node.names if _files(name := f"{target}.{alias.name}")]
        found += inner or [target] * (target != _LIBRARY)
    return found


def code(text: str) -> str:
    """The code without comments, layout and docstrings: what cannot change an answer does not make it stale."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            del node.body[: ast.get_docstring(node, clean=False) is not None]
    return ast.dump(tree)
