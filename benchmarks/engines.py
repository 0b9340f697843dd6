"""What it costs to fit where rows lie: in memory, in a scratch file, on a Dask cluster, on Spark.

    python benchmarks/engines.py [--rows 1000000] [--folder DIR] [--part files memory dask spark scaling] [--save]

Correlated heavy-tailed features (20 columns), a fifth of the labels flipped, as Parquet files that are written first.
Every ratio is between times of the same run; processor time (of all processes, on Dask and Spark), the better of two
runs; wall time for scaling. To hold: a pass over the scratch file <= 1.3 of one over memory; the whole automatic path,
spooling included, <= 8 times decoding the Parquet once; the peak of memory <= 0.5 GB at 1e7 rows; on Dask the automatic
path <= 2 times a plain fit by the same passes; on Spark <= 1.5 times one fit of Spark ML's LogisticRegression, and a
wrapped fit about 3 plain ones.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

RESULT = Path(__file__).parent / "results" / "engines.md"
COLUMNS = 20
CHUNK = 500_000
PARTS = ("files", "memory", "dask", "spark", "scaling")


def chunks(n, d=COLUMNS, seed=0):
    """Features and labels, some at a time."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    coef, sizes = rng.standard_normal(d), np.geomspace(1, 0.1, d)
    spread = np.sqrt(((sizes[:, None] * rotation) ** 2).sum(axis=0) * 5 / 3)
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
        X = (rng.standard_t(5.0, (m, d)) * sizes) @ rotation / spread
        right = rng.random(m) < 1 / (1 + np.exp(-X @ coef * 4 / 3))
        yield X, (right ^ (rng.random(m) < 0.2)).astype(np.int64)


def write(folder, n):
    """The rows as Parquet files, if they are not there yet."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    for i, (X, y) in enumerate(chunks(n)):
        table = pa.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "label": y})
        parquet.write_table(table, folder / f"{i:03d}.parquet", row_group_size=131_072, use_dictionary=False)
    return sorted(str(path) for path in folder.glob("*.parquet"))


def timed(call, clock=time.process_time, repeat=1):
    """The shortest time of a few runs, and the last value."""
    best = np.inf
    for _ in range(repeat):
        began = clock()
        value = call()
        best = min(best, clock() - began)
    return best, value


def each(seconds, n):
    """Time for a row, and for a byte of its features, in words."""
    return f"{seconds / n * 1e9:.0f} ns a row, {seconds / (8 * COLUMNS * n) * 1e9:.2g} ns a byte"


def peak():
    """The largest resident memory of this process so far, in bytes; that of a child, without what its parent had."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def files(paths, scratch):
    """Decoding, spooling, a pass and the whole path over a scratch file, in a process that holds nothing else."""
    import pyarrow as pa
    from pyarrow import parquet

    from selfpaced import SelfPacedLogisticRegression
    from selfpaced.distributed import spool, write_suspects
    from selfpaced.linear._loss import Latent, gradient
    from selfpaced.regularizers import get

    pa.set_cpu_count(1)
    spool(paths[:1], "label", scratch=scratch).close()  # packages are imported, and not timed

    def decode():
        for path in paths:
            with parquet.ParquetFile(path, memory_map=True, pre_buffer=False) as file:
                for _ in file.iter_batches(batch_size=1 << 16, use_threads=False):
                    pass

    decoding = timed(decode, repeat=2)[0]
    spooling = timed(lambda: spool(paths, "label", scratch=scratch).close(), repeat=2)[0]
    table = spool(paths, "label", scratch=scratch)
    point, latent = np.linspace(-1, 1, table.n_features + 1), Latent(get("welsch"), 1.0)
    one = timed(lambda: table.reduce(gradient, point, latent, 2, True), repeat=5)[0]
    table.passes = 0
    fitting, model = timed(lambda: SelfPacedLogisticRegression().fit(table), repeat=2)
    largest, passes = peak(), table.passes // 2
    listing, count = timed(lambda: write_suspects(model, table, Path(scratch) / "suspects.parquet"))
    (Path(scratch) / "suspects.parquet").unlink()
    table.close()
    cost = partial(each, n=table.n)
    yield "decode the Parquet", decoding, cost(decoding)
    yield "spool into the scratch file", spooling, f"{cost(spooling)}; {spooling / decoding:.2f} x decoding"
    yield "one gradient pass, scratch file", one, cost(one)
    yield "automatic fit, scratch file", fitting, f"{passes} passes"
    yield "spool and fit", spooling + fitting, f"{(spooling + fitting) / decoding:.2f} x decoding"
    yield "stream the suspects", listing, f"{count:,} rows, {listing / decoding:.2f} x decoding"
    yield "largest memory, MB", largest / 1e6, "spooling and fitting, all packages included"
    np.save(Path(scratch) / "coef.npy", model.coef_)
    (Path(scratch) / "pass.txt").write_text(repr(one))


def memory(n, scratch):
    """The same in memory, and scikit-learn's plain fit."""
    from sklearn.linear_model import LogisticRegression

    from selfpaced import SelfPacedLogisticRegression
    from selfpaced.distributed import MemoryTable
    from selfpaced.linear._loss import Latent, gradient
    from selfpaced.regularizers import get

    parts = list(chunks(n))
    X, y = (np.concatenate([part[k] for part in parts]) for k in range(2))
    del parts
    table = MemoryTable(X, y.astype(np.intp), classes=np.arange(2))
    point, latent = np.linspace(-1, 1, X.shape[1] + 1), Latent(get("welsch"), 1.0)
    one = timed(lambda: table.reduce(gradient, point, latent, 2, True), repeat=5)[0]
    plain = timed(lambda: LogisticRegression().fit(X, y))[0]
    fitting, model = timed(lambda: SelfPacedLogisticRegression().fit(X, y), repeat=2)
    scratched = Path(scratch) / "pass.txt"
    ratio = f"; over the scratch file {float(scratched.read_text()) / one:.2f} x" if scratched.exists() else ""
    yield "one gradient pass, memory", one, f"{each(one, n)}{ratio}"
    yield "scikit-learn's plain fit", plain, ""
    yield "automatic fit, memory", fitting, f"{fitting / plain:.2f} x the plain fit"
    saved = Path(scratch) / "coef.npy"
    if saved.exists():
        yield (
            "largest difference of a coefficient",
            float(np.abs(np.load(saved) - model.coef_).max()),
            "to the scratch file",
        )


def save(command, lines):
    """The lines of one command into the results, in the place of its last ones."""
    text = RESULT.read_text() if RESULT.exists() else "# Engines: where rows lie\n"
    head, *sections = re.split(r"^(?=`python )", text, flags=re.MULTILINE)
    kept = [section.strip() for section in sections if not section.startswith(command)]
    RESULT.write_text("\n\n".join([head.strip(), *kept, "\n".join([command, "", *lines])]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "selfpaced-engines")
    parser.add_argument("--part", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}")
    parser.add_argument("--inside", choices=PARTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    n, folder = int(args.rows), args.folder / f"{int(args.rows)}"
    if args.inside:
        paths = sorted(str(path) for path in folder.glob("*.parquet"))
        parts = {"files": lambda: files(paths, args.folder), "memory": lambda: memory(n, args.folder)}
        if args.inside == "dask":
            import engine_dask

            parts["dask"] = lambda: engine_dask.on_dask(paths, args.folder)
        if args.inside in ("spark", "scaling"):
            import engine_spark

            parts["spark"] = lambda: engine_spark.on_spark(paths, args.folder)
            parts["scaling"] = lambda: engine_spark.scaling_on_spark(paths)
        for what, value, note in parts[args.inside]():
            print(f"| {what} | {value:.3g} | {note} |", flush=True)
        return
    if not list(folder.glob("*.parquet")):
        write(folder, n)
    for name in ("coef.npy", "pass.txt"):
        (args.folder / name).unlink(missing_ok=True)
    lines = [f"{n:,} rows of {COLUMNS} columns; seconds. {platform.machine()}, {os.cpu_count()} cores.", ""]
    lines += ["| what | value | |", "|---|---|---|"]
    print("\n".join(lines))
    for part in args.part:
        command = [sys.executable, __file__, "--rows", str(n), "--folder", str(args.folder), "--inside", part]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        print(printed, end="")
        lines += printed.splitlines()
    if args.save:
        save(f"`python benchmarks/engines.py --rows {n} --part {' '.join(args.part)}`", lines)


if __name__ == "__main__":
    main()
