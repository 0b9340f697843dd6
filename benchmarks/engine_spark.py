"""The parts of `engines.py` on Spark: what a fit costs beside Spark ML's own, and what a second executor brings."""

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from engine_clock import Clock, each

from selfpaced import SelfPacedLogisticRegression
from selfpaced.linear._loss import Latent, gradient
from selfpaced.regularizers import get
from selfpaced.spark import CrossFit, SparkTable

BYTES = 8  # of a feature
OPTIONS = {
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "3g",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.sql.files.maxPartitionBytes": str(24 << 20),  # about 150,000 rows of 20 columns
    "spark.sql.files.openCostInBytes": "0",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(master):
    """A Spark session that leaves nothing behind but a folder of scratch files."""
    import pyspark
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="selfpaced-spark-")
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_HOME=os.path.dirname(pyspark.__file__))
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", SPARK_WORKER_DIR=folder, SPARK_LOCAL_DIRS=folder)
    builder = SparkSession.builder.master(master).appName("selfpaced-engines")
    paths = os.environ.get("PYTHONPATH", "")
    for name, value in {**OPTIONS, "spark.executorEnv.PYTHONPATH": paths, "spark.sql.warehouse.dir": folder}.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def on_spark(paths, scratch):
    """Two threads: the automatic path and the wrapper against Spark ML's fit of the same rows; constants."""
    from pyspark.ml.classification import LogisticRegression

    spark, clock = session("local[2]"), Clock()
    frame = spark.read.parquet(*paths)
    names = [name for name in frame.columns if name != "label"]
    n = frame.count()
    cost = partial(each, rows=n, size=n * len(names) * BYTES)
    assembling, vectors = clock.timed(lambda: _assembled(frame, names), repeat=1)
    yield assembling.line("Spark ML: assemble vectors and cache", cost(assembling))
    own = LogisticRegression(regParam=1.0 / n, maxIter=100, tol=1e-6)
    plain, fitted = clock.timed(lambda: own.fit(vectors))
    rounds = fitted.summary.totalIterations
    yield plain.line("Spark ML: logistic fit of cached vectors", f"{rounds} iterations, {cost(plain, rounds)} each")
    packing, fitting = yield from _packed(clock, frame, names, cost, Path(scratch) / "coef.npy")
    yield (packing + fitting).line(
        "pack and fit, Spark", (packing + fitting).over(assembling + plain, "Spark ML's both")
    )
    yield fitting.line("fit of packed blocks, Spark", fitting.over(plain, "Spark ML's fit"))
    wrapping, model = clock.timed(lambda: CrossFit(estimator=own, idCol="id").fit(vectors), repeat=1)
    kept = "the plain model" if model.plain else "the paced model"
    yield wrapping.line("CrossFit around Spark ML's fit", f"{wrapping.over(plain, 'the plain fit')}; {kept} was kept")
    spark.stop()


def _assembled(frame, names):
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import functions as F

    vectors = VectorAssembler(inputCols=names, outputCol="features").transform(frame)
    kept = vectors.select("features", "label", F.monotonically_increasing_id().alias("id")).persist()
    kept.count()
    return kept


def _packed(clock, frame, names, cost, saved):
    """What the passes mode costs, part by part; what packing and fitting took is returned."""
    packing, table = clock.timed(lambda: SparkTable(frame, names, "label"), repeat=1)
    yield packing.line("pack the Parquet into blocks, Spark", f"{len(table.places)} blocks, {cost(packing)}")
    one, _ = clock.timed(lambda: a_pass(table), repeat=3)
    yield one.line("one gradient pass, Spark", cost(one))
    empty, _ = clock.timed(lambda: table.reduce(lambda block: len(block.y)), repeat=3)
    yield empty.line("one pass that counts rows, Spark", cost(empty))
    table.passes = 0
    fitting, model = clock.timed(lambda: SelfPacedLogisticRegression().fit(table))
    yield fitting.line("automatic fit of packed blocks, Spark", f"{table.passes // 2} passes")
    table.close()
    if saved.exists():
        gap = float(np.abs(np.load(saved) - model.coef_).max())
        yield "largest difference of a coefficient, Spark", gap, "to the scratch file"
    return packing, fitting


def a_pass(table):
    """One sum of gradients."""
    point, latent = np.linspace(-1, 1, table.n_features + 1), Latent(get("welsch"), 1.0)
    return table.reduce(gradient, point, latent, 2, True)


def scaling_on_spark(paths):
    """Executors of one core, blocks packed and cached: a pass and the automatic path by one of them and by two."""
    walls = {}
    for workers in (1, 2):
        spark, clock = session(f"local-cluster[{workers},1,3072]"), Clock()
        frame = spark.read.parquet(*paths)
        names = [name for name in frame.columns if name != "label"]
        pack, table = clock.timed(lambda frame=frame, names=names: SparkTable(frame, names, "label"), repeat=1)
        one, _ = clock.timed(lambda table=table: a_pass(table), repeat=3)
        fit, _ = clock.timed(lambda table=table: SelfPacedLogisticRegression().fit(table))
        table.close()
        spark.stop()
        walls[workers] = {"pack": pack.wall, "one gradient pass": one.wall, "automatic fit": fit.wall}
    for what, first in walls[1].items():
        second = walls[2][what]
        yield f"{what}, Spark, 1 and 2 executors", second, f"wall; {first:.3g} by one, {first / second:.2f} x quicker"


__all__ = ["on_spark", "scaling_on_spark"]
