"""Model files that a stranger might send: ``python tests/forged.py FOLDER`` writes them, `test_forged` opens them.

Each would run code (`Marker` would be written), take all memory, or make the reader stumble, if it were believed.
"""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

MARKER = "selfpaced-forged-file-ran-code"
CODE = f"open({MARKER!r}, 'w').close()"

Part = dict[str, Any]


# ------------------------------------------------------------------------------------------------ parts of plans


def part(kind: str, module: str, name: str, **rest: Any) -> Part:
    return {"__class__": name, "__module__": module, "__loader__": kind, **rest}


def text(value: Any) -> Part:
    return part("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


def sequence(*items: Part, kind: str = "tuple") -> Part:
    return part(f"{kind.title()}Node", "builtins", kind, content=list(items))


def mapping(**items: Part) -> Part:
    keys = sequence(*[part("TypeNode", "builtins", "str") for _ in items], kind="list")
    return part("DictNode", "builtins", "dict", content=items, key_types=keys)


def function(module: str, name: str) -> Part:
    return part("FunctionNode", module, name)


CHECK = function("sklearn.utils.validation", "check_array")


def method(of: Part, name: str) -> Part:
    """A bound method, under the label of its object: this is how names on a list of trust are reached through."""
    return part("MethodNode", of["__module__"], of["__class__"], content={"func": name, "obj": of})


def partial(func: Part, *args: Part) -> Part:
    content = {"func": func, "args": sequence(*args), "kwds": mapping(), "namespace": text(None)}
    return part("PartialNode", "functools", "partial", content=content)


def operator(name: str, *args: str) -> Part:
    return part("OperatorFuncNode", "operator", name, attrs=sequence(*[text(arg) for arg in args]))


def estimator(module: str, name: str, **attributes: Part) -> Part:
    return part("ObjectNode", module, name, content=mapping(**attributes, _sklearn_version=text(sklearn.__version__)))


def transformer(func: Part) -> Part:
    return estimator(
        "sklearn.preprocessing._function_transformer", "FunctionTransformer",
        func=func, inverse_func=text(None), validate=text(False), accept_sparse=text(True), check_inverse=text(False),
        feature_names_out=text(None), kw_args=text(None), inv_kw_args=text(None),
    )  # fmt: skip


def pipeline(*steps: Part) -> Part:
    named = [sequence(text(f"step{place}"), step) for place, step in enumerate(steps)]
    rest = {"memory": text(None), "verbose": text(False), "transform_input": text(None)}
    return estimator("sklearn.pipeline", "Pipeline", steps=sequence(*named, kind="list"), **rest)


# ----------------------------------------------------------------------------------------------------- archives


def archive(plan: Any, members: dict[str, bytes] | None = None, facts: Any = None, protocol: int = 2) -> bytes:
    """A model file with this plan; bytes and text are written as they are."""
    if isinstance(plan, dict):
        plan = {"protocol": protocol, "_skops_version": "0.13.0", **plan}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, content in {"schema.json": plan, "selfpaced.json": facts, **(members or {})}.items():
            if content is not None:
                raw = content if isinstance(content, bytes | str) else json.dumps(content)
                file.writestr(name, raw)
    return made.getvalue()


def npy(array: np.ndarray, **options: Any) -> bytes:
    made = io.BytesIO()
    np.save(made, array, **options)
    return made.getvalue()


def array(name: str) -> Part:
    return part("NdArrayNode", "numpy", "ndarray", type="numpy", file=name)


def lying_npy() -> bytes:
    return npy(np.zeros(4)).replace(b"'shape': (4,)", b"'shape': (99999999999,)").replace(b" " * 10, b"", 1)


def inner_archive(size: int) -> bytes:
    made = io.BytesIO()
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
        file.open("data.npy", "w", force_zip64=True) as member,
    ):
        for _ in range(size >> 20):
            member.write(bytes(1 << 20))
    return made.getvalue()


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def nested(levels: int) -> Part:
    value = text(1)
    for _ in range(levels):
        value = sequence(value, kind="list")
    return value


FINE = mapping(a=text(1))
BUILTINS = method(CHECK, "__globals__")

#: name -> what makes the file
CODE_FILES: dict[str, Callable[[], bytes]] = {
    "method of a trusted function": lambda: archive(BUILTINS),
    "method of a trusted partial": lambda: archive(method(partial(CHECK), "func")),
    "method of an estimator": lambda: archive(method(transformer(text(None)), "__init__")),
    "partial of a method": lambda: archive(partial(method(BUILTINS, "get"), text("__builtins__"))),
    "partial of eval": lambda: archive(partial(function("builtins", "eval"), text(CODE))),
    "eval as a type": lambda: archive(part("TypeNode", "builtins", "eval")),
    "method caller": lambda: archive(operator("methodcaller", "pop")),
    "chain of transformers": lambda: archive(
        pipeline(
            transformer(partial(method(BUILTINS, "get"), text("__builtins__"))),
            transformer(operator("itemgetter", "eval")),
            transformer(operator("methodcaller", "__call__", CODE)),
        )
    ),
    "loader behind an estimator": lambda: archive(transformer(function("selfpaced.persistence", "load"))),
    "function by the name of a ufunc": lambda: archive(transformer(function("numpy.strings", "multiply"))),
    "generator by another name": lambda: archive(
        part(
            "RandomGeneratorNode", "numpy.random._generator", "Generator",
            content={"bit_generator": mapping(bit_generator=text("seed")), "seed_seq": mapping(entropy=text(1))},
        )
    ),
    "array of pickles": lambda: archive(array("a.npy"), {"a.npy": npy(np.array([print], object), allow_pickle=True)}),
    "unknown kind": lambda: archive(part("ReduceNode", "builtins", "dict", content={})),
    "old protocol": lambda: archive(method(CHECK, "__globals__"), protocol=0),
}  # fmt: skip

SIZE_FILES: dict[str, Callable[[], bytes]] = {
    "large facts": lambda: archive(FINE, facts='{"a": "' + "x" * (65 << 20) + '"}'),
    "large plan": lambda: archive('{"a": "' + "x" * (65 << 20) + '"}'),
    "plan of many parts": lambda: archive('{"a": [{}' + ",{}" * 1_100_000 + "]}"),
    "large member": lambda: archive(FINE, {"a.npy": bytes(300 << 20)}),
    "one member many times": lambda: archive(
        sequence(*[array("a.npy")] * 200, kind="list"), {"a.npy": npy(np.zeros(1 << 18))}
    ),
    "archive in the archive": lambda: archive(
        part("SparseMatrixNode", "scipy.sparse", "csr_matrix", type="scipy", file="a.npz"),
        {"a.npz": inner_archive(300 << 20)},
    ),
    "array that lies about its shape": lambda: archive(array("a.npy"), {"a.npy": lying_npy()}),
}

ODD_FILES: dict[str, Callable[[], bytes]] = {
    "facts that are no JSON": lambda: archive(FINE, facts="{"),
    "facts that are no text": lambda: archive(FINE, facts=b"\xff\xfe\x00"),
    "facts that are a list": lambda: archive(FINE, facts=[1]),
    "facts that are deep": lambda: archive(FINE, facts=deep(100_000)),
    "versions that are a list": lambda: archive(FINE, facts={"versions": [1]}),
    "versions that are numbers": lambda: archive(FINE, facts={"versions": {"selfpaced": 3}}),
    "versions that are nothing": lambda: archive(FINE, facts={"versions": {"scikit-learn": None}}),
    "number without end": lambda: archive(FINE, facts='{"a": ' + "9" * 10_000 + "}"),
    "plan that is a list": lambda: archive([FINE]),
    "plan that is deep": lambda: archive(deep(100_000)),
    "parts that are deep": lambda: archive(nested(300)),
    "no plan": lambda: archive(None),
    "part without a name": lambda: archive({"__loader__": "ObjectNode"}),
    "part with a number for a name": lambda: archive(part("ObjectNode", 3, 4)),  # type: ignore[arg-type]
    "member with a number for a name": lambda: archive(array(7)),  # type: ignore[arg-type]
    "member that is not there": lambda: archive(array("a.npy")),
    "member that is no array": lambda: archive(array("a.npy"), {"a.npy": b"hello"}),
}

FORGED = {**CODE_FILES, **SIZE_FILES, **ODD_FILES}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for title, make in FORGED.items():
        (folder / f"{title.replace(' ', '-')}.skops").write_bytes(make())
