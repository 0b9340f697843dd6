"""Wrapped estimators of Spark ML: native weights, an outcome on unseen rows, the plain model if nothing is wrong."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark", reason='tables on Spark need the extra "spark"')

from selfpaced.spark import CrossFit, CrossFitModel

ROWS = 800


@pytest.fixture(scope="module")
def data(spark):
    """Rows whose labels and values are partly wrong, and which ones."""
    from pyspark.ml.feature import VectorAssembler

    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 2))
    wrong = rng.random(ROWS) < 0.12
    right = X[:, 0] + X[:, 1] > 0
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "id": np.arange(ROWS)})
    frame["clean"], frame["label"] = right.astype(float), (right ^ wrong).astype(float)
    frame["value"] = X @ [1.0, -2.0] + 3 + 0.2 * rng.normal(size=ROWS) + np.where(wrong, 15.0, 0.0)
    rows = VectorAssembler(inputCols=["a", "b"], outputCol="features").transform(spark.createDataFrame(frame))
    rows = rows.coalesce(2).persist()
    yield frame, wrong, rows
    rows.unpersist()


def assessed(frame):
    found = frame.orderBy("id").select("id", "selfPacedWeight", "noiseProbability", "prediction", "level").collect()
    return {name: np.array([row[name] for row in found]) for name in found[0].asDict()}


def test_values_with_outliers(data, tmp_path):
    from pyspark.ml.regression import LinearRegression

    _, wrong, rows = data
    plain = LinearRegression(labelCol="value")
    model = CrossFit(estimator=plain, idCol="id").fit(rows)
    assert model.termination.endswith("of the rows are grossly wrong, and it predicts the others better.")
    assert model.path[0].lam == np.inf
    np.testing.assert_allclose(model.fitted.coefficients.toArray(), [1.0, -2.0], atol=0.05)
    assert model.fitted.intercept == pytest.approx(3.0, abs=0.05)
    assert model.noiseRate == pytest.approx(wrong.mean(), abs=0.03)
    assert model.noiseRateInterval[0] < model.noiseRate < model.noiseRateInterval[1]
    model.save(str(tmp_path / "model"))
    again = CrossFitModel.load(str(tmp_path / "model"))
    assert repr(again.path) == repr(model.path)  # scores that are not known are NaN
    assert len(again.path) == 2
    found = assessed(again.unseen(rows))
    assert ((found["noiseProbability"] > 0.5) == wrong).mean() > 0.99
    assert ((found["level"] == "likely error") == (found["noiseProbability"] > 0.5)).all()
    assert wrong[found["level"] != ""].mean() > 0.9
    np.testing.assert_allclose(found["selfPacedWeight"], np.maximum(1 - found["noiseProbability"], 1e-6))


def test_values_of_a_tree(data):
    from pyspark.ml.regression import DecisionTreeRegressor

    _, wrong, rows = data
    model = CrossFit(estimator=DecisionTreeRegressor(labelCol="value", maxDepth=3), idCol="id").fit(rows)
    assert model.path[1].chosen
    assert model.noiseRate == pytest.approx(wrong.mean(), abs=0.03)
    found = assessed(model.unseen(rows))
    assert ((found["noiseProbability"] > 0.5) == wrong).mean() > 0.95


def test_labels_of_a_forest(data, tmp_path):
    from pyspark.ml.classification import RandomForestClassifier

    frame, wrong, rows = data
    own = CrossFit(estimator=RandomForestClassifier(numTrees=4, maxDepth=4, seed=1), idCol="id")
    own.save(str(tmp_path / "estimator"))
    own = CrossFit.load(str(tmp_path / "estimator"))
    model = own.fit(rows)
    assert model.noiseRate == pytest.approx(wrong.mean(), abs=0.06)
    found = assessed(model.unseen(rows))
    assert set(found["level"]) == {"", "worth a look", "likely error"}
    order = np.argsort(found["noiseProbability"], kind="stable")
    assert wrong[order[-60:]].mean() > 0.75
    assert (assessed(model.transform(rows))["prediction"] == frame["clean"]).mean() > 0.9


def test_nothing_wrong_keeps_the_plain_model(data):
    from pyspark.ml.classification import LogisticRegression

    rows = data[2]
    plain = LogisticRegression(labelCol="clean", regParam=0.01)
    model = CrossFit(estimator=plain, idCol="id").fit(rows)
    assert model.termination == "The plain model is used: no label noise detected in held-out labels."
    np.testing.assert_array_equal(model.fitted.coefficients.toArray(), plain.fit(rows).coefficients.toArray())
    found = assessed(model.transform(rows))
    assert (found["noiseProbability"] < 0.001).all()
    assert (found["selfPacedWeight"] == 1).all()
    assert "expected" not in model.transform(rows.drop("clean")).columns


def test_weights_count_in_what_is_estimated(data):
    from pyspark.ml.regression import LinearRegression
    from pyspark.sql import functions as F

    _, wrong, rows = data
    ids = F.array(*[F.lit(int(i)) for i in np.flatnonzero(wrong)])
    weighed = rows.withColumn("count", F.when(F.array_contains(ids, F.col("id")), 0.0).otherwise(0.01))
    model = CrossFit(estimator=LinearRegression(labelCol="value", weightCol="count"), idCol="id").fit(weighed)
    assert model.noiseRate < 0.01  # the wrong rows have no weight
    assert model.path[0].chosen


def test_rows_without_a_label_are_left_out_and_counted(data, caplog):
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.regression import LinearRegression
    from pyspark.sql import functions as F

    known = F.col("id") % 40 != 0
    plain = LogisticRegression(labelCol="clean", regParam=0.01)
    gaps = data[2].withColumn("clean", F.when(known, F.col("clean")))
    model = CrossFit(estimator=plain, idCol="id").fit(gaps)
    assert "20 of 800 rows have no label and are left out" in caplog.text
    expected = plain.fit(data[2].where(known)).coefficients.toArray()
    np.testing.assert_allclose(model.fitted.coefficients.toArray(), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="labelCol must hold values, got 20 rows without"):
        CrossFit(estimator=LinearRegression(labelCol="clean"), idCol="id").fit(gaps)


def test_a_label_of_one_half_keeps_the_plain_model(data, tmp_path):
    from pyspark.ml.classification import LogisticRegression
    from pyspark.sql import functions as F

    rare = data[2].withColumn("label", F.when(F.col("id") == 7, 2.0).otherwise(F.col("label")))  # one row
    model = CrossFit(estimator=LogisticRegression(regParam=0.01), idCol="id").fit(rare)
    assert "all rows of the label 2.0 are in one half of the table" in model.termination
    assert np.isnan(model.noiseRate)
    model.save(str(tmp_path / "model"))
    again = CrossFitModel.load(str(tmp_path / "model"))
    for found in (assessed(model.transform(rare)), assessed(again.unseen(rare))):
        assert (found["noiseProbability"] == 0).all()
        assert (found["selfPacedWeight"] == 1).all()
    assert again.termination == model.termination


def test_what_is_wrong_is_named(data):
    from pyspark.ml.classification import LinearSVC
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.feature import PCA
    from pyspark.ml.regression import LinearRegression

    rows = data[2]
    with pytest.raises(ValueError, match="idCol must name a column"):
        CrossFit(estimator=LinearRegression(labelCol="value")).fit(rows)
    with pytest.raises(ValueError, match="idCol must name a column, one of .*, got 'row'"):
        CrossFit(estimator=LinearRegression(labelCol="value"), idCol="row").fit(rows)
    with pytest.raises(ValueError, match="labelCol must name a column, one of .*, got 'y'"):
        CrossFit(estimator=LinearRegression(labelCol="y"), idCol="id").fit(rows)
    with pytest.raises(TypeError, match="estimator must be an estimator of Spark ML, got None"):
        CrossFit(idCol="id").fit(rows)
    with pytest.raises(ValueError, match="estimator must have a weightCol, got PCA"):
        CrossFit(estimator=PCA(k=1), idCol="id").fit(rows)
    with pytest.raises(ValueError, match="estimator must have a labelCol, got KMeans"):
        CrossFit(estimator=KMeans(k=2), idCol="id").fit(rows)
    with pytest.raises(ValueError, match="must predict probabilities of labels, got LinearSVC"):
        CrossFit(estimator=LinearSVC(), idCol="id").fit(rows)
