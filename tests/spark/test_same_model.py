"""Spark gives the rate, interval, levels and row numbers of memory for the same rows, however they are spread."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark", reason='tables on Spark need the extra "spark"')

from selfpaced import SelfPacedLinearRegression as LinearInMemory
from selfpaced import SelfPacedLogisticRegression as LogisticInMemory
from selfpaced import suspects
from selfpaced.distributed import MemoryTable
from selfpaced.distributed.table import contents
from selfpaced.spark import SelfPacedLinearRegression, SelfPacedLogisticRegression, SparkTable

NAMES = [f"x{j}" for j in range(5)]


def shuffled(spark, frame, path):
    """The rows in another order, with their numbers in memory as ids."""
    frame.assign(id=np.arange(len(frame))).sample(frac=1.0, random_state=1).to_parquet(path, index=False)
    return spark.read.parquet(str(path))


@pytest.fixture(scope="module", autouse=True)
def few_are_many():
    """Above 2,000 rows a sample decides, up to 5,000 are gathered in one block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("selfpaced.linear._folds.SAMPLED_ROWS", 2_000)
        patch.setattr("selfpaced.linear._regression_fit.DECIDING", 2_000)
        patch.setattr("selfpaced.distributed.spark_table.ONE_PLACE_ROWS", 5_000)
        yield


@pytest.fixture(scope="module")
def case(request, spark, tmp_path_factory, few_are_many):
    """Rows with weights and string labels, a fifth of them wrong; their model and suspects in memory."""
    from pyspark.ml.feature import StringIndexer

    rng = np.random.default_rng(request.param)
    X = rng.standard_normal((request.param, 5))
    right = X @ [2.0, -1.0, 0.5, 0.0, 0.0] + 0.3 * rng.logistic(size=len(X)) > 0
    label = np.where(right ^ (rng.random(len(X)) < 0.2), "yes", "no")
    frame = pd.DataFrame(X, columns=NAMES).assign(label=label, w=rng.integers(1, 4, len(X)).astype(float))
    memory = LogisticInMemory().fit(frame[NAMES], label, frame["w"])
    listed = suspects(memory, frame[NAMES], label)
    rows = shuffled(spark, frame, tmp_path_factory.mktemp("rows") / "rows.parquet")
    index = StringIndexer(inputCol="label", outputCol="y", stringOrderType="alphabetAsc")
    return index.fit(rows).transform(rows), memory, dict(zip(listed["row"], listed["level"], strict=True))


@pytest.mark.parametrize(("case", "n_blocks"), [(1_800, 7), (4_001, 7), (20_000, 7)], indirect=["case"])
def test_labels(case, n_blocks):
    rows, memory, expected = case
    columns = {"featuresCol": NAMES, "labelCol": "y", "weightCol": "w", "idCol": "id"}
    model = SelfPacedLogisticRegression(**columns).fit(rows.repartition(n_blocks))
    same(model.fitted, memory)
    assert model.numFeatures == memory.n_features_in_
    found = model.transform(rows).where("level != ''").select("id", "level").collect()
    assert {row.id: row.level for row in found} == expected


@pytest.mark.parametrize("case", [20_000], indirect=True)
def test_many_blocks(case, spark, few_at_once):
    rows, memory, _ = case
    with SparkTable(rows.repartition(7), NAMES, "y", "w", "id", block_bytes=1) as table:
        assert len(table.places) >= 40
        same(LogisticInMemory().fit(table), memory)


def same(model, memory):
    tol = 1e-8
    assert model.noise_rate_ == pytest.approx(memory.noise_rate_, rel=tol)
    np.testing.assert_allclose(model.noise_rate_interval_, memory.noise_rate_interval_, rtol=tol)
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=tol, atol=tol)
    held = model.assessment_
    np.testing.assert_allclose(held.losses, memory.sample_loss_[held.numbers], rtol=10 * tol, atol=tol)


@pytest.fixture
def few_at_once(spark):
    """Spark hands over 500 rows at a time, of which each makes a block."""
    option = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(option)
    spark.conf.set(option, 500)
    yield
    spark.conf.set(option, before)


def test_the_sample_of_many_partitions_is_that_of_memory(spark, monkeypatch):
    monkeypatch.setattr("selfpaced.distributed.spark_table.FEW_PARTS", 4)
    frame = spark.range(6_000, numPartitions=20).selectExpr("id", "cast(id as double) as x", "id % 2 as y")
    first = 600  # the first partitions are empty
    memory = MemoryTable(np.arange(first, 6_000.0)[:, None], np.arange(first, 6_000) % 2, classes=np.arange(2.0))
    known = memory.reduce(contents, 0, 100, 2).settled()
    with SparkTable(frame.where(f"x >= {first}"), ["x"], "y", id="id") as table:
        found = table.reduce(contents, 0, 100, 2).settled()
        np.testing.assert_array_equal(found.keys, known.keys)
        np.testing.assert_array_equal(found.rows, known.rows)
        np.testing.assert_array_equal(table.numbers(found.rows), first + known.rows)


def test_values(spark, tmp_path):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6_000, 2))  # a sample decides
    y = X @ [1.0, 2.0] + 3 + rng.standard_normal(len(X)) + 30 * (rng.random(len(X)) < 0.1)
    memory = LinearInMemory().fit(X, y)
    assert memory.noise_rate_ > 0.05
    rows = shuffled(spark, pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}), tmp_path / "rows.parquet")
    model = SelfPacedLinearRegression(featuresCol=["a", "b"], labelCol="y", idCol="id").fit(rows.repartition(7))
    for name in ("coef_", "intercept_", "lam_", "noise_rate_"):
        known, found = getattr(memory, name), getattr(model.fitted, name)
        np.testing.assert_allclose(found, known, rtol=1e-10, atol=1e-10, err_msg=name)
    assert model.termination == memory.termination_
