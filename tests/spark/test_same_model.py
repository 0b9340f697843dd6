"""The same models from Spark as from memory, however rows are shuffled and cut, where a sample begins to decide."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark", reason='tables on Spark need the extra "spark"')

from selfpaced import SelfPacedLinearRegression, SelfPacedLogisticRegression
from selfpaced.distributed import MemoryTable, contents, spark_table
from selfpaced.distributed.spark_packing import run
from selfpaced.linear import _folds, regression_tables
from selfpaced.spark import SparkTable

EDGE = _folds.SAMPLED_ROWS
MODELS = {"label": lambda: SelfPacedLogisticRegression(C=1.0, tol=1e-2), "value": SelfPacedLinearRegression}


@pytest.fixture(scope="module")
def data():
    """Labels and values, a tenth of them wrong."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((EDGE + 1, 2))
    wrong = rng.random(len(X)) < 0.1
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "id": np.arange(len(X))})
    frame["label"] = ((3 * X[:, 0] - X[:, 1] + 0.3 * rng.logistic(size=len(X)) > 0) ^ wrong).astype(float)
    frame["value"] = X @ [1.0, 2.0] + 3 + rng.standard_normal(len(X)) + np.where(wrong, 30.0, 0.0)
    return frame


@pytest.fixture(scope="module")
def shuffled(spark, data):
    frame = spark.createDataFrame(data.sample(frac=1.0, random_state=4)).persist()
    yield frame
    frame.unpersist()


@pytest.fixture(autouse=True)
def one_edge(monkeypatch):
    """A sample decides above as many rows of values as of labels; above so many, blocks stay where they are."""
    monkeypatch.setattr(regression_tables, "DECIDING", EDGE)
    monkeypatch.setattr(spark_table, "ONE_PLACE_ROWS", EDGE)


@pytest.fixture
def small_blocks(spark, monkeypatch):
    """A block for every 25 rows, and sums of partitions that are added up before they come here."""
    option = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(option)
    monkeypatch.setattr(spark_table, "SPARK_BLOCK_BYTES", 1)
    monkeypatch.setattr(spark_table, "FEW_PARTS", 3)
    spark.conf.set(option, 25)
    yield
    spark.conf.set(option, before)


def fitted(target, frame):
    with SparkTable(frame, ["a", "b"], target, id="id", labels=target == "label") as rows:
        return MODELS[target]().fit(rows), len(rows.places)


def same(model, memory):
    assert model.termination_ == memory.termination_
    for name in ("coef_", "intercept_", "lam_", "noise_rate_"):
        np.testing.assert_allclose(getattr(model, name), getattr(memory, name), rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("n", [EDGE, EDGE + 1])
def test_partitions_do_not_change_the_model(shuffled, data, n, target):
    memory = MODELS[target]().fit(data[["a", "b"]][:n], data[target][:n])
    assert memory.noise_rate_ > 0.05
    for k in (1, 7):
        model, n_blocks = fitted(target, shuffled.where(shuffled["id"] < n).repartition(k))
        assert n_blocks == (1 if n == EDGE else k)  # few rows are gathered
        same(model, memory)


@pytest.mark.parametrize("target", MODELS)
def test_neither_do_400_blocks(shuffled, data, small_blocks, target):
    model, n_blocks = fitted(target, shuffled.repartition(7))
    assert n_blocks >= 400
    same(model, MODELS[target]().fit(data[["a", "b"]], data[target]))


def test_sums_of_neighbours_come_in_their_order(spark, monkeypatch):
    monkeypatch.setattr(spark_table, "ONE_PLACE_ROWS", 1)
    monkeypatch.setattr(spark_table, "FEW_PARTS", 1)
    frame = spark.range(24, numPartitions=12).selectExpr("cast(id as double) as x", "0.0 as y").where("x > 5")
    memory = MemoryTable(np.arange(6.0, 24.0)[:, None], np.zeros(18, dtype=int), classes=np.zeros(1))
    with SparkTable(frame, ["x"], "y") as rows:
        ask = partial(run, shape=rows._shape(rows.classes), function=contents, args=(0, 100, 1))
        brought = rows._merged(rows._asked(["X", "y", "weight"], ask)).collect()
        assert sorted(row.part for row in brought) == [0, 1, 2]  # of nine partitions: the first three have no rows
        found, expected = (own.reduce(contents, 0, 100, 1).settled() for own in (rows, memory))
    np.testing.assert_array_equal(found.keys, expected.keys)
    np.testing.assert_array_equal(found.rows, expected.rows)
