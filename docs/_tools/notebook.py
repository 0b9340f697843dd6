"""Run a notebook without a kernel: ``python docs/_tools/notebook.py NOTEBOOK`` writes the outputs into the file.

Cells are plain Python. A cell's output is what it prints and, if it ends with an expression, the value.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def run(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Run the code cells one after the other in the current folder, with the outputs of each one."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            yield cell, _outputs("".join(cell["source"]), names)


def text(outputs: list[dict[str, Any]]) -> str:
    """The outputs of a cell as plain text."""
    return "\n".join("".join(one.get("text") or one["data"]["text/plain"]) for one in outputs)


def _outputs(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main(path: Path) -> None:
    """Write the outputs into the file."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for number, (cell, outputs) in enumerate(run(notebook), 1):
        cell["execution_count"] = number
        cell["outputs"] = [
            one | {"execution_count": number} if one["output_type"] == "execute_result" else one for one in outputs
        ]
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
