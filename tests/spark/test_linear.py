"""The same models from Spark frames: shuffled, weighted, in pipelines, saved, with an executor that dies."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark", reason='tables on Spark need the extra "spark"')

from selfpaced import SelfPacedLinearRegression as LinearInMemory
from selfpaced import SelfPacedLogisticRegression as LogisticInMemory
from selfpaced.assessment import LEVELS
from selfpaced.pacing import Geometric
from selfpaced.spark import (
    SelfPacedLinearRegression,
    SelfPacedLinearRegressionModel,
    SelfPacedLogisticRegression,
    SelfPacedLogisticRegressionModel,
    SparkTable,
)

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def data():
    """Rows in an order that no partition has: features, labels with noise, values with outliers, weights, ids."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 3))
    frame = pd.DataFrame(X, columns=NAMES)
    right = X @ [2.0, -1.0, 0.5] + rng.logistic(size=1500) > 0
    frame["label"] = (right ^ (rng.random(1500) < 0.2)) + 1.0  # 1 and 2: labels are any numbers
    frame["value"] = X @ [1.0, 2.0, 3.0] + 4 + 0.1 * rng.standard_normal(1500) + 20 * (rng.random(1500) < 0.1)
    frame["w"] = rng.integers(0, 3, 1500).astype(float)
    frame["id"] = np.arange(1500)
    return frame


@pytest.fixture(scope="module")
def shuffled(spark, data):
    frame = spark.createDataFrame(data.sample(frac=1.0, random_state=1)).repartition(2).persist()
    yield frame
    frame.unpersist()


def close(model, memory, names=("coef_", "intercept_", "noise_rate_")):
    assert model.lam_ == pytest.approx(memory.lam_, rel=1e-10)
    for name in names:
        np.testing.assert_allclose(getattr(model, name), getattr(memory, name), rtol=1e-10, atol=1e-10, err_msg=name)


def in_memory(frame):
    return pd.DataFrame([row.asDict() for row in frame.collect()])


def test_logistic_of_shuffled_rows(shuffled, data, tmp_path):
    memory = LogisticInMemory(tol=1e-2).fit(data[NAMES], data["label"])
    model = SelfPacedLogisticRegression(featuresCol=NAMES, idCol="id", tol=1e-2).fit(shuffled)
    close(model.fitted, memory)
    assert model.fitted.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(model.coefficients.toArray(), memory.coef_[0], rtol=1e-10)
    numbers = model.fitted.assessment_.numbers  # the ids
    np.testing.assert_allclose(model.fitted.assessment_.losses, memory.sample_loss_[numbers], rtol=1e-9)
    model.save(str(tmp_path / "model"))
    loaded = SelfPacedLogisticRegressionModel.load(str(tmp_path / "model"))
    assert loaded.uid == model.uid
    assert repr(loaded.path) == repr(model.path)
    assert loaded.getFeaturesCol() == NAMES
    out = in_memory(loaded.copy().transform(shuffled).orderBy("id"))
    assessed = memory.assessment_
    np.testing.assert_allclose(out["selfPacedWeight"], memory.sample_weight_, rtol=1e-9)
    np.testing.assert_allclose(out["noiseProbability"], assessed.wrong, rtol=1e-9)
    assert (out["expected"] == assessed.diagnosis.expected).all()
    assert (out["level"] == LEVELS[assessed.levels()]).all()
    assert (out["prediction"] == memory.predict(data[NAMES])).all()
    np.testing.assert_allclose(np.stack(out["probability"]), memory.predict_proba(data[NAMES]), rtol=1e-9)


def test_linear_of_shuffled_rows(shuffled, data, tmp_path):
    memory = LinearInMemory().fit(data[NAMES], data["value"], data["w"])
    assert memory.noise_rate_ > 0.05
    columns = {"featuresCol": NAMES, "labelCol": "value", "weightCol": "w", "idCol": "id"}
    model = SelfPacedLinearRegression(**columns).fit(shuffled)
    close(model.fitted, memory)
    assert model.intercept == pytest.approx(memory.intercept_, abs=1e-10)
    model.save(str(tmp_path / "model"))
    loaded = SelfPacedLinearRegressionModel.load(str(tmp_path / "model"))
    out = in_memory(loaded.transform(shuffled).orderBy("id"))
    assessed = memory.assess(data[NAMES], data["value"])
    np.testing.assert_allclose(out["selfPacedWeight"], assessed.weight, atol=1e-8)
    np.testing.assert_allclose(out["noiseProbability"], assessed.wrong, atol=1e-8)
    assert (out["level"] == LEVELS[assessed.levels()]).all()
    np.testing.assert_allclose(out["expected"], memory.predict(data[NAMES]), rtol=1e-9)
    new = loaded.transform(shuffled.select("a", "b", "c", "id"))
    assert new.columns == ["a", "b", "c", "id", "prediction"]


def test_rows_without_a_label_are_left_out_and_counted(shuffled, data, caplog):
    from pyspark.sql import functions as F

    kept = (data["id"] >= 700) & (data["id"] % 30 != 0)
    memory = LogisticInMemory(C=1.0).fit(data[NAMES][kept], data["label"][kept])
    without = (F.col("id") < 700) | (F.col("id") % 30 == 0)
    gaps = shuffled.withColumn("label", F.when(~without, F.col("label")))
    gaps = gaps.repartitionByRange(4, "id")  # a partition without any label
    model = SelfPacedLogisticRegression(featuresCol=NAMES, idCol="id", C=1.0).fit(gaps)
    assert f"{1500 - kept.sum()} of 1500 rows have no label and are left out" in caplog.text
    close(model.fitted, memory)
    assert sorted(model.fitted.assessment_.numbers.tolist()) == data["id"][kept].tolist()


def test_few_rows_are_gathered_in_the_order_of_ids(shuffled, data):
    memory = LinearInMemory().fit(data[NAMES], data["value"])
    with SparkTable(shuffled, NAMES, "value", id="id", labels=False) as rows:
        assert len(rows.places) == 1
        assert rows.take(np.array([0, 7])).y.tolist() == data["value"].iloc[[0, 7]].tolist()
        model = LinearInMemory().fit(rows)
    close(model, memory)


def test_single_precision_stays(spark):
    frame = spark.createDataFrame([(1.0, 2.0, 0), (3.0, 4.0, 1)], "x float, z float, y int").coalesce(1)
    with SparkTable(frame, ["x", "z"], "y") as rows:
        assert rows.take(np.arange(2)).X.dtype == rows.dtype == np.float32
        assert rows.reduce(lambda block: block.X.sum(axis=0)).tolist() == [4.0, 6.0]


@pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool:ResourceWarning")  # pyspark's own
def test_in_a_pipeline_under_cross_validation(spark, data, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    few = data[:200].assign(label=data["label"][:200] - 1)
    frame = spark.createDataFrame(few).coalesce(1)
    own = SelfPacedLogisticRegression(pace=1.0, C=1.0, idCol="id")
    grid = ParamGridBuilder().addGrid(own.C, [1e-6, 1.0]).build()
    evaluator = MulticlassClassificationEvaluator(metricName="accuracy")
    search = CrossValidator(estimator=own, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, seed=0)
    found = Pipeline(stages=[VectorAssembler(inputCols=NAMES, outputCol="features"), search]).fit(frame)
    best = found.stages[1].bestModel
    assert best.getOrDefault("C") == 1.0
    close(best.fitted, LogisticInMemory(pace=1.0, C=1.0).fit(few[NAMES], few["label"]))
    pair = PipelineModel(stages=[found.stages[0], best])
    pair.write().overwrite().save(str(tmp_path / "pipeline"))
    loaded = PipelineModel.load(str(tmp_path / "pipeline"))
    strange = frame.withColumn("label", frame["label"] + 5)
    out = in_memory(loaded.transform(strange.limit(3)))
    assert out["noiseProbability"].isna().all()  # labels that the fit has not seen
    assert out["prediction"].isin([0.0, 1.0]).all()


def test_parameters(tmp_path):
    model = SelfPacedLogisticRegression(featuresCol="f", C=2.0).setLabelCol("y").setWeightCol("w").setIdCol("i")
    other = model.copy({model.maxIter: 7})
    assert (other.getOrDefault("maxIter"), model.getOrDefault("maxIter")) == (7, 200)
    assert (other.getLabelCol(), other.optional("weightCol"), other.optional("idCol")) == ("y", "w", "i")
    assert "inverse strength" in model.explainParam("C")
    with pytest.raises(ValueError, match=r"parameters must be among C, .*, got 'c'"):
        SelfPacedLogisticRegression(c=1)


def test_what_is_wrong_is_named(spark, tmp_path):
    frame = spark.createDataFrame(
        [(1.0, "x", 0.0, -1.0), (float("nan"), "y", 1.0, 1.0)], "a double, s string, y double, w double"
    ).coalesce(1)
    fit = lambda **columns: SelfPacedLogisticRegression(**columns).fit(frame)  # noqa: E731
    with pytest.raises(ValueError, match="NaN or infinity in X, row 1 of block 0 of partition 0"):
        fit(featuresCol=["a"], labelCol="y")
    with pytest.raises(ValueError, match=r"-1.0 in sample_weight of block 0"):
        fit(featuresCol=["y"], labelCol="y", weightCol="w")
    with pytest.raises(ValueError, match=r"target must be numbers, got string .*StringIndexer"):
        fit(featuresCol=["a"], labelCol="s")
    with pytest.raises(ValueError, match="featuresCol must be a column of vectors or arrays"):
        fit(featuresCol="s", labelCol="y")
    with pytest.raises(ValueError, match="featuresCol must name a column"):
        fit(featuresCol=["q"], labelCol="y")
    with pytest.raises(ValueError, match=r"^features must have one length, got \[1, 2\]$"):
        SelfPacedLogisticRegression(featuresCol="v", labelCol="y").fit(
            frame.selectExpr("if(y = 0, array(y), array(y, y)) as v", "y")
        )
    with pytest.raises(TypeError, match=r"frame must be a data frame of Spark, got pandas.*DataFrame"):
        SelfPacedLogisticRegression(featuresCol=["a"], labelCol="y").fit(pd.DataFrame({"a": [1.0], "y": [0]}))
    with pytest.raises(ValueError, match="has no rows"):
        SelfPacedLinearRegression(featuresCol=["a"], labelCol="y").fit(frame.where("y > 5"))
    with pytest.raises(ValueError, match="pace must be a name or a number to be saved"):
        SelfPacedLinearRegression(pace=Geometric()).save(str(tmp_path / "no"))
    SelfPacedLinearRegression(alpha=2.0).save(str(tmp_path / "yes"))
    assert SelfPacedLinearRegression.load(str(tmp_path / "yes")).getOrDefault("alpha") == 2.0


def test_without_java_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(RuntimeError, match=r"Java 17 or newer.*openjdk-17-jre-headless"):
        SelfPacedLogisticRegression()


def test_without_pyspark_the_error_says_what_to_install():
    code = "import sys; sys.modules['pyspark'] = None; import selfpaced.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "selfpaced[spark]"' in done.stderr


def test_an_executor_that_dies_changes_no_bit(spark, tmp_path):
    """In a process of its own, because a driver has one session; `dying.py` says what happens there."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("dying.py")), str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["killed", "1", "same", "True"]
