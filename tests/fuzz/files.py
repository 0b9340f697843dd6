"""Odd files, read as tables and given to the command line."""

from __future__ import annotations

import io
import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from selfpaced.cli import main
from selfpaced.tables import TableEncoder, TableError, read_table

from .draws import Draw
from .outcomes import attempt

CELLS = [
    "1", "2.5", "-3", "1e5", "1,5", "", "NA", "nan", "inf", "1e999", "abc", "yes", "no", "2020-01-01", "01/02/2020",
    '"quoted"', '"a,b"', '"open', "=1+1", "'=x", "\t", ";", "\x00", "é", "\ud83d", "None", "-", "1_000", "0x1f", "٣",
    "x" * 500, " 7 ", "TRUE", "12:30", "1e400", "-0",
]  # fmt: skip
CONVENTIONS = [
    lambda v: f"{v:.3f}", lambda v: f"{v:.3f}".replace(".", ","), lambda v: f"{1e4 * v:,.0f}",
    lambda v: f"{1e4 * v:,.2f}",
    lambda v: f"{1e4 * v:,.2f}".translate(str.maketrans(",.", ".,")), lambda v: f"{abs(1e4 * v):05.0f}",
    lambda v: f"202401{1 + int(abs(9 * v)):02d}", lambda v: "", lambda v: f"{v:.1f} %", lambda v: f"w{int(3 * v)}",
]  # fmt: skip
ENDS = ["\n", "\n", "\n", "\r\n", "\r"]


def _file(draw: Draw, folder: Path) -> Path:
    columns, rows, sign, end = draw.one([1, 2, 3]), draw.one([0, 1, 3, 12, 30]), draw.one(",,,;\t|"), draw.one(ENDS)
    plain = draw.chance(0.6)
    if draw.chance(0.03):
        columns = 200
    trailing = sign if draw.chance(0.05) else ""  # an empty column at the end
    lines = [sign.join(f"c{j}" for j in range(columns)) + trailing] if draw.chance(0.9) else []
    ways = [draw.one(CONVENTIONS) if draw.chance(0.3) else CONVENTIONS[0] for _ in range(columns + 1)]
    labels = draw.one([["a", "b"], ["a", "b"], ["a", "A"], ["None", "b"], ["01", "02"], ["a ", "a", "b"]])
    for i in range(rows):
        width = columns if draw.chance(0.97) else columns + 1
        cells = [ways[j](draw.rng.normal()) if j < columns - 1 else labels[i % len(labels)] for j in range(width)]
        cells = [f'"{cell}"' if sign in cell else cell for cell in cells]
        if not plain and draw.chance(0.5):
            cells[int(draw.rng.integers(width))] = draw.one(CELLS)
        lines.append(sign.join(cells) + trailing)
    data = (end.join(lines) + end * draw.one([0, 1, 2])).encode("utf-8", "surrogatepass")
    if draw.chance(0.1):
        data = draw.one(
            [b"\xff\xfe" + data, b"\xef\xbb\xbf" + data, bytes(draw.rng.bytes(40)), data[:7], b"\x1f\x8b" + data]
        )
    path = folder / f"t{draw.one(['.csv', '.csv', '.csv', '.tsv', '.txt', '.csv.gz', '.parquet', ''])}"
    path.write_bytes(data)
    return path


def tables(draw: Draw) -> None:
    names = ["separator", "header", "encoding", "columns", "X", "t"]
    with tempfile.TemporaryDirectory() as folder:
        path = _file(draw, Path(folder))
        given = {"encoding": draw.one(["utf-8", "latin-1", "nope"])} if draw.chance(0.1) else {}
        if draw.chance(0.1):
            given["separator"] = draw.one([",", ";", "", "ab", "\n", '"'])
        try:
            loaded = attempt(lambda: read_table(path, header=draw.chance(0.8), **given), names)
        except TableError:
            return
        if loaded is None:
            return
        loaded.lines.of(range(len(loaded.frame)))
        prepare = TableEncoder(draw.one(["linear", "tree"]))
        found = attempt(lambda: prepare.fit_transform(loaded.frame), [*names, "column", "table"])
        found = found.toarray() if hasattr(found, "toarray") else found  # nothing but text
        if found is not None:
            if len(found) != len(loaded.frame):
                raise AssertionError("rows are lost")
            if np.isinf(np.asarray(found, dtype=float)).any():
                raise AssertionError("features are infinite")


VALUED = ["--task", "--model", "--separator", "--out", "--threshold", "--exclude"]
VALUED += ["--decimal", "--merge-labels", "--memory"]
ANSWERS = ["regression", "classification", "ridge", "logistic", "auto", "paper", "2", "-1", "nan", "", ",", "c0", "o"]
ANSWERS += [".", "a=b", "A=a", "None=", "100MB"]


def command(draw: Draw) -> None:
    words = [draw.one(["fit", "fit", "predict", "clean", "check", "list", "nonsense"])]
    with tempfile.TemporaryDirectory() as folder:
        path, there = _file(draw, Path(folder)), os.getcwd()
        words += [str(path)] if draw.chance(0.9) else []
        words += ["--target", draw.one(["c0", "c1", "c2", "column_1", "", "x"])] if draw.chance(0.8) else []
        for option in ("--no-report", "--quiet", "--json", "--no-header", "--skip-broken", "--force"):
            words += [option] if draw.chance(0.3) else []
        for option in VALUED:
            words += [option, draw.one(ANSWERS)] if draw.chance(0.06) else []
        os.chdir(folder)
        said = io.StringIO()
        try:
            with redirect_stdout(said), redirect_stderr(said):
                code = main(words)
        finally:
            os.chdir(there)
    if code not in (0, 1, 2, 3, 4, 5) or "Traceback" in said.getvalue():
        raise AssertionError(f"exit code {code} of {words}: {said.getvalue()[-300:]}")
