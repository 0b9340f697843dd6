"""What it costs to fit where rows lie: in memory, in files, on Dask, on Spark, and from a large CSV.

    python benchmarks/scale.py [--rows 1000000] [--folder DIR] [--part files memory dask spark crossfit csv] [--save]

Correlated heavy-tailed features (20 columns), a fifth of the labels flipped, as Parquet files that are written first.
Every ratio is between times of the same run: processor time of all processes, the best of two runs (on Dask, four);
wall time for strong scaling from 1 to 2 workers. The plain fit is L-BFGS from zero in the geometry of 20,000 rows, by
the same passes over the same table. To hold: Dask path <= 1.5 times that plain fit; Spark path <= 1 fit of Spark ML's
LogisticRegression; spooling and fitting 1e7 rows of Parquet <= 8 times decoding it once, with <= 0.5 GB; `selfpaced
fit` on a CSV of 30 columns <= 3 times the processor time of `pandas.read_csv`, with <= 2.5 times its memory.
The part `crossfit` compares plain and cross-fitted models of Dask and Spark ML by their accuracy on clean labels.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

RESULT = Path(__file__).parent / "results" / "scale.md"
COLUMNS = 20
CHUNK = 500_000
DESCRIBED = 20_000
PIECE = 8192
TEST_ROWS = 20_000
PARTS = ("files", "memory", "dask", "spark", "crossfit", "csv")


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
    """The rows as Parquet files."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    for i, (X, y) in enumerate(chunks(n)):
        table = pa.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "label": y})
        parquet.write_table(table, folder / f"{i:03d}.parquet", row_group_size=131_072, use_dictionary=False)


# ------------------------------------------------------------------------------------------------ the plain peer


def loss_and_gradient(block, point):
    """Of the plain logistic loss, in one array; some rows at a time, that stay in the cache."""
    found = np.zeros(len(point) + 1)
    for first in range(0, len(block.y), PIECE):
        X, y = block.X[first : first + PIECE], block.y[first : first + PIECE]
        scores = X @ point[:-1] + point[-1]
        small = np.exp(-np.abs(scores))
        rest = np.where(scores > 0, 1.0, small) / (1.0 + small) - y
        found[0] += np.log1p(small).sum() + np.maximum(scores, 0.0).sum() - scores @ y
        found[1:-1] += rest @ X
        found[-1] += rest.sum()
    return found


def a_pass(table):
    """One sum of gradients."""
    return table.reduce(loss_and_gradient, np.linspace(-1, 1, table.n_features + 1))


def plain_fit(table):
    """The plain model from zero, by L-BFGS in coordinates in which the curvature of some rows is one."""
    some = table.take(np.linspace(0, table.n - 1, min(DESCRIBED, table.n)).astype(np.intp))
    design = np.column_stack([some.X, np.ones(len(some.y))])
    root = cholesky(design.T @ design / (4 * len(design)))

    def mean(u):
        found = table.reduce(loss_and_gradient, solve_triangular(root, u)) / table.n
        return found[0], solve_triangular(root, found[1:], trans=1)

    return minimize(mean, np.zeros(len(root)), jac=True, method="L-BFGS-B", options={"gtol": 1e-4, "ftol": 0.0})


# ------------------------------------------------------------------------------------------------------- clocks


class Clock:
    """Processor time of this process and all below it, the JVM and its Python workers included; wall time beside."""

    def __init__(self):
        self.seen = {}

    def processor(self):
        import psutil

        self.seen[os.getpid()] = time.process_time()
        for process in psutil.Process().children(recursive=True):
            try:
                used = process.cpu_times()
            except psutil.Error:
                continue
            self.seen[process.pid] = used.user + used.system
        return sum(self.seen.values())  # of those that have ended, what was last seen

    def timed(self, call, repeat=2):
        """Processor and wall time of the cheapest run, and the last value."""
        runs = []
        for _ in range(repeat):
            worked, began = self.processor(), time.perf_counter()
            value = call()
            runs.append((self.processor() - worked, time.perf_counter() - began))
        return *min(runs), value


def each(seconds, n):
    """Time for a row, and for a byte of its features, in words."""
    return f"{seconds / n * 1e9:.0f} ns a row, {seconds / (8 * COLUMNS * n) * 1e9:.2g} ns a byte"


def peak():
    """The largest resident memory of this process so far, in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def compared(model, n, scratch):
    """The largest difference of a coefficient to the fit of the scratch file, if there is one."""
    saved = Path(scratch) / f"coef-{n}.npy"
    if not saved.exists():
        return "no fit of the files to compare with"
    return f"{float(np.abs(np.load(saved) - model.coef_).max()):.1e} from the coefficients of the files"


# --------------------------------------------------------------------------------------------------------- parts


def files(paths, scratch):
    """Decoding, spooling, a pass and the whole path over a scratch file, in a process that holds nothing else."""
    import pyarrow as pa
    from pyarrow import parquet

    from selfpaced import SelfPacedLogisticRegression
    from selfpaced.distributed import spool, write_suspects

    pa.set_cpu_count(1)
    spool(paths[:1], "label", scratch=scratch).close()  # packages are imported, and not timed
    clock = Clock()

    def decode():
        for path in paths:
            with parquet.ParquetFile(path, memory_map=True, pre_buffer=False) as file:
                for _ in file.iter_batches(batch_size=1 << 16, use_threads=False):
                    pass

    decoding = clock.timed(decode)[0]
    spooling = clock.timed(lambda: spool(paths, "label", scratch=scratch).close())[0]
    with spool(paths, "label", scratch=scratch) as table:
        one = clock.timed(lambda: a_pass(table), repeat=3)[0]
        table.passes = 0
        fitting, _, model = clock.timed(lambda: SelfPacedLogisticRegression().fit(table))
        largest, passes = peak(), table.passes // 2
        listing, _, counts = clock.timed(lambda: write_suspects(model, table, Path(scratch) / "found.parquet"), 1)
    yield "decode the Parquet", decoding, each(decoding, table.n)
    yield "spool into the scratch file", spooling, f"{spooling / decoding:.2f} x decoding"
    yield "one gradient pass, scratch file", one, each(one, table.n)
    yield "automatic fit, scratch file", fitting, f"{passes} passes"
    yield "spool and fit", spooling + fitting, f"{(spooling + fitting) / decoding:.2f} x decoding"
    yield "stream the suspects", listing, f"{counts[1:].sum():,} rows, {listing / decoding:.2f} x decoding"
    yield "largest memory, MB", largest / 1e6, "spooling and fitting, all packages included"
    np.save(Path(scratch) / f"coef-{table.n}.npy", model.coef_)


def memory(n, scratch):
    """The same in memory, and scikit-learn's plain fit."""
    from sklearn.linear_model import LogisticRegression

    from selfpaced import SelfPacedLogisticRegression
    from selfpaced.distributed import MemoryTable

    X, y = (np.concatenate(part) for part in zip(*chunks(n), strict=True))
    clock, table = Clock(), MemoryTable(X, y.astype(np.intp), classes=np.arange(2))
    one = clock.timed(lambda: a_pass(table), repeat=3)[0]
    plain = clock.timed(lambda: LogisticRegression().fit(X, y), repeat=1)[0]
    fitting, _, model = clock.timed(lambda: SelfPacedLogisticRegression().fit(X, y))
    yield "one gradient pass, memory", one, each(one, n)
    yield "scikit-learn's plain fit", plain, ""
    yield "automatic fit, memory", fitting, f"{fitting / plain:.2f} x the plain fit; {compared(model, n, scratch)}"


def on_dask(paths, scratch):
    """Workers of one thread each, blocks read from the files and persisted."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from selfpaced import SelfPacedLogisticRegression
    from selfpaced.dask import table

    walls = {}
    for workers in (1, 2):
        name, clock = f"Dask, {workers} worker{'s' * (workers > 1)}", Clock()
        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
            frame = dd.read_parquet(paths, split_row_groups=True)
            a_pass(table(frame.partitions[: 2 * workers], "label"))  # packages are imported by all, and not timed
            reading, read_wall, rows = clock.timed(lambda frame=frame: table(frame, "label"), repeat=1)
            one, pass_wall, _ = clock.timed(lambda rows=rows: a_pass(rows), repeat=3)
            rows.passes = 0
            plain = clock.timed(lambda rows=rows: plain_fit(rows), repeat=4)[0]
            plainly, rows.passes = rows.passes // 4, 0
            fitting, fit_wall, model = clock.timed(lambda rows=rows: SelfPacedLogisticRegression().fit(rows), repeat=4)
            yield f"read and persist, {name}", reading, f"{read_wall:.3g} wall"
            yield f"one gradient pass, {name}", one, each(one, rows.n)
            yield f"plain fit by the same passes, {name}", plain, f"{plainly} passes"
            cost, same = f"{fitting / plain:.2f} x the plain fit", compared(model, rows.n, scratch)
            note = f"{rows.passes // 4} passes, {cost}; {same}"
            yield f"automatic fit, {name}", fitting, note
        walls[workers] = {"read": read_wall, "one gradient pass": pass_wall, "automatic fit": fit_wall}
    yield from scaled(walls, "Dask")


def scaled(walls, engine):
    """Wall times by one and by two workers."""
    for what, first in walls[1].items():
        second = walls[2][what]
        yield f"{what}, {engine}, 1 and 2 workers", second, f"wall; {first:.3g} by one, {first / second:.2f} x quicker"


def session(master):
    """A Spark session that leaves nothing behind but a folder of scratch files."""
    import pyspark
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="selfpaced-spark-")
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_HOME=os.path.dirname(pyspark.__file__))
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", SPARK_WORKER_DIR=folder, SPARK_LOCAL_DIRS=folder)
    options = {
        "spark.driver.memory": "3g",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "2g",
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.sql.files.maxPartitionBytes": str(24 << 20),  # about 150,000 rows of 20 columns
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.warehouse.dir": folder,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(master).appName("selfpaced-scale")
    for name, value in options.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def on_spark(paths, scratch):
    """The automatic path and the cross-fit against Spark ML's fit of the same rows; scaling by executors."""
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import functions as F

    from selfpaced import SelfPacedLogisticRegression
    from selfpaced.spark import CrossFit, SparkTable

    names = [f"x{j}" for j in range(COLUMNS)]
    spark, clock = session("local[2]"), Clock()
    frame = spark.read.parquet(*paths)
    packing, _, table = clock.timed(lambda: SparkTable(frame, names, "label"), repeat=1)
    one = clock.timed(lambda: a_pass(table), repeat=3)[0]
    table.passes = 0
    fitting, _, model = clock.timed(lambda: SelfPacedLogisticRegression().fit(table))
    passes, n = table.passes // 2, table.n
    table.close()
    vectors = VectorAssembler(inputCols=names, outputCol="features").transform(frame)
    vectors = vectors.select("features", "label", F.monotonically_increasing_id().alias("id")).persist()
    assembling = clock.timed(vectors.count, repeat=1)[0]
    own = LogisticRegression(regParam=1.0 / n, maxIter=100, tol=1e-6)
    plain, _, fitted = clock.timed(lambda: own.fit(vectors))
    yield "assemble vectors, Spark ML", assembling, each(assembling, n)
    yield "logistic fit, Spark ML", plain, f"{fitted.summary.totalIterations} iterations"
    yield "pack the Parquet into blocks, Spark", packing, each(packing, n)
    yield "one gradient pass, Spark", one, each(one, n)
    note = f"{passes} passes, {fitting / plain:.2f} x Spark ML's fit; {compared(model, n, scratch)}"
    yield "automatic fit of packed blocks, Spark", fitting, note
    both, theirs = packing + fitting, assembling + plain
    yield "pack and fit, Spark", both, f"{both / theirs:.2f} x Spark ML's both"
    wrapping, _, found = clock.timed(lambda: CrossFit(estimator=own, idCol="id").fit(vectors), repeat=1)
    kept = "weighted" if np.isfinite(found.noiseModel.lam) else "plain"
    scores = ", ".join(f"{one.score:.5f}" for one in found.path)
    note = f"{wrapping / plain:.2f} x the plain fit; the {kept} model is used, scores {scores}"
    yield "CrossFit of Spark ML's fit", wrapping, note
    spark.stop()
    yield from scaled({workers: _executors(workers, paths, names) for workers in (1, 2)}, "Spark")


def _executors(workers, paths, names):
    """Wall times by executors of one core."""
    from selfpaced import SelfPacedLogisticRegression
    from selfpaced.spark import SparkTable

    spark, clock = session(f"local-cluster[{workers},1,2048]"), Clock()
    frame = spark.read.parquet(*paths)
    packing, table = clock.timed(lambda: SparkTable(frame, names, "label"), repeat=1)[1:]
    one = clock.timed(lambda: a_pass(table), repeat=3)[1]
    fitting = clock.timed(lambda: SelfPacedLogisticRegression().fit(table), repeat=1)[1]
    table.close()
    spark.stop()
    return {"pack": packing, "one gradient pass": one, "automatic fit": fitting}


# ----------------------------------------------------------------------------------------------------- cross-fits


def flipped(n, curved):
    """Features, clean labels, and labels of which a fifth are flipped; the last rows are for the test."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + TEST_ROWS, COLUMNS))
    score = X @ rng.standard_normal(COLUMNS)
    if curved:
        score = 2 * X[:, 0] * X[:, 1] + X[:, 2] ** 2 - 1 + 2 * np.sin(2 * X[:, 3])
    clean = (score + 0.5 * rng.logistic(size=len(X)) > 0).astype(int)
    return X, clean, clean ^ (rng.random(len(X)) < 0.2)


def crossfits(n, scratch):
    """Plain and cross-fitted models by their accuracy on clean labels of other rows."""
    yield from crossfits_on_dask(n)
    yield from crossfits_on_spark(n, scratch)


def crossfits_on_dask(n):
    """XGBoost on two workers."""
    import dask.array as da
    from distributed import Client, LocalCluster
    from xgboost.dask import DaskXGBClassifier

    from selfpaced.dask import CrossFitClassifier

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        for curved in (False, True):
            X, clean, given = flipped(n, curved)
            rows = da.from_array(X[:n], (n // 4, COLUMNS)), da.from_array(given[:n], n // 4)
            test, clock = da.from_array(X[n:]), Clock()
            DaskXGBClassifier(n_estimators=1).fit(*rows)  # packages are imported by all, and not timed
            plain, _, one = clock.timed(lambda rows=rows: DaskXGBClassifier(n_estimators=100).fit(*rows), 1)
            own = CrossFitClassifier(DaskXGBClassifier(n_estimators=100))
            both, _, other = clock.timed(lambda own=own, rows=rows: own.fit(*rows), 1)
            right = [(model.predict(test).compute() == clean[n:]).mean() for model in (one, other)]
            yield told("xgboost.dask", curved, right, np.isfinite(other.lam_), other.path_, both / plain)


def crossfits_on_spark(n, scratch):
    """Spark ML's logistic regression and forest."""
    import pandas as pd
    from pyspark.ml.classification import LogisticRegression, RandomForestClassifier
    from pyspark.ml.feature import VectorAssembler

    from selfpaced.spark import CrossFit

    spark, clock, names = session("local[2]"), Clock(), [f"x{j}" for j in range(COLUMNS)]
    for curved in (False, True):
        X, clean, given = flipped(n, curved)
        path = Path(scratch) / "flipped.parquet"
        frame = pd.DataFrame(X, columns=names).assign(label=given.astype(float), clean=clean, id=np.arange(len(X)))
        frame.to_parquet(path, index=False)
        rows = spark.read.parquet(str(path)).repartition(2)
        rows = VectorAssembler(inputCols=names, outputCol="features").transform(rows).persist()
        train, test = rows.where(f"id < {n}"), rows.where(f"id >= {n}")
        for inner in (LogisticRegression(), RandomForestClassifier(numTrees=20, maxDepth=8, seed=0)):
            plain, _, one = clock.timed(lambda inner=inner, train=train: inner.fit(train), 1)
            own = CrossFit(estimator=inner, idCol="id")
            both, _, other = clock.timed(lambda own=own, train=train: own.fit(train), 1)
            counts = [model.transform(test).where("prediction = clean").count() for model in (one, other)]
            right, weighted = np.array(counts) / TEST_ROWS, np.isfinite(other.noiseModel.lam)
            yield told(f"Spark ML's {type(inner).__name__}", curved, right, weighted, other.path, both / plain)
        rows.unpersist()
    spark.stop()


def told(name, curved, right, weighted, path, cost):
    """One row: accuracy of the cross-fit, that of the plain model, and the scores that decided."""
    scores = " and ".join(f"{one.score:.4f}" for one in path)
    kept = "weighted" if weighted else "plain"
    note = f"plain {right[0]:.4f}; the {kept} model is used, scores {scores}; {cost:.1f} x the plain fit"
    return f"clean accuracy, CrossFit of {name}, {'curved' if curved else 'straight'} boundary", right[1], note


# ----------------------------------------------------------------------------------------------------- large CSV

MEASURE = """
import contextlib, io, json, sys, time

def memory(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1]) * 1024

what, path, small, out = sys.argv[1:]
if what == "pandas":
    import pandas as pd
    call = pd.read_csv
else:
    from selfpaced.cli import main
    def call(file):
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(["fit", file, "--target", "label", "--out", out, "--force", "--json", "--quiet"]) == 0
call(small)
before, worked = memory("VmRSS"), time.process_time()
open("/proc/self/clear_refs", "w").write("5")
value = call(path)
worked, peak = time.process_time() - worked, memory("VmHWM") - before
table = int(value.memory_usage(deep=True).sum()) if what == "pandas" else 0
print(json.dumps({"worked": worked, "peak": peak, "table": table}))
"""


def large_csv(n, scratch):
    """``selfpaced fit`` on a CSV of 30 columns against reading it with pandas, each in a process of its own."""
    import json

    import pandas as pd

    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        paths = [str(Path(folder) / name) for name in ("large.csv", "small.csv", "out")]
        for path, rows in zip(paths, (n, 2000), strict=False):
            rng = np.random.default_rng(0)
            X = rng.standard_normal((rows, 27)).round(5)
            city, plan = rng.integers(0, 4, rows), rng.integers(0, 2, rows)
            score = X @ (rng.standard_normal(27) / np.sqrt(27)) * 4 + city + plan
            wrong = rng.random(rows) < 0.1
            frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(27)])
            frame["city"] = np.array(["Rome", "Oslo", "Lima", "Cairo"])[city]
            frame["plan"] = np.array(["free", "pro"])[plan]
            right = score + rng.logistic(size=rows) > np.median(score)
            frame.assign(label=np.where(right ^ wrong, "good", "bad")).to_csv(path, index=False)

        def run(what):
            command = [sys.executable, "-c", MEASURE, what, *paths]
            runs = [json.loads(subprocess.run(command, stdout=-1, text=True, check=True).stdout) for _ in range(2)]
            return min(runs, key=lambda found: found["worked"])

        pandas, ours = run("pandas"), run("ours")
    yield "pandas.read_csv, 30 columns", pandas["worked"], f"{pandas['table'] / 1e6:.0f} MB as a table"
    yield "largest memory of pandas.read_csv, MB", pandas["peak"] / 1e6, ""
    yield "selfpaced fit on the CSV", ours["worked"], f"{ours['worked'] / pandas['worked']:.1f} x pandas"
    note = f"{ours['peak'] / pandas['peak']:.1f} x pandas, {ours['peak'] / pandas['table']:.1f} x the table"
    yield "largest memory of selfpaced fit, MB", ours["peak"] / 1e6, note


def save(command, lines):
    """The lines of one command into the results, in the place of its last ones."""
    text = RESULT.read_text() if RESULT.exists() else "# Scale: what it costs where rows lie\n"
    head, *sections = re.split(r"^(?=`python )", text, flags=re.MULTILINE)
    kept = [section.strip() for section in sections if not section.startswith(command)]
    RESULT.write_text("\n\n".join([head.strip(), *kept, "\n".join([command, "", *lines])]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "selfpaced-scale")
    parser.add_argument("--part", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}")
    parser.add_argument("--inside", choices=PARTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    n, folder = int(args.rows), args.folder / f"{int(args.rows)}"
    if args.inside:
        paths = sorted(str(path) for path in folder.glob("*.parquet"))
        by_paths = {"files": files, "dask": on_dask, "spark": on_spark}
        by_rows = {"memory": memory, "crossfit": crossfits, "csv": large_csv}
        made = by_paths.get(args.inside)
        rows = by_rows[args.inside](n, args.folder) if made is None else made(paths, args.folder)
        for what, value, note in rows:
            print(f"| {what} | {value:.3g} | {note} |", flush=True)
        return
    if not list(folder.glob("*.parquet")):
        write(folder, n)
    lines = [f"{n:,} rows of {COLUMNS} columns; seconds. {platform.machine()}, {os.cpu_count()} cores.", ""]
    lines += ["| what | value | |", "|---|---|---|"]
    print("\n".join(lines))
    for part in args.part:
        command = [sys.executable, __file__, "--rows", str(n), "--folder", str(args.folder), "--inside", part]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        print(printed, end="")
        lines += printed.splitlines()
    if args.save:
        save(f"`python benchmarks/scale.py --rows {n} --part {' '.join(args.part)}`", lines)


if __name__ == "__main__":
    main()
