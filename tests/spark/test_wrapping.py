"""Estimators of Spark ML, wrapped: native weights, a verdict on unseen rows, the plain model where nothing is wrong."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark", reason='tables on Spark need the extra "spark"')

from selfpaced.distributed.spark_expressions import outlier_column, weight_column
from selfpaced.regularizers import REGISTRY, get
from selfpaced.robust import outlier_probability
from selfpaced.spark import CrossFit, CrossFitModel

ROWS = 800


@pytest.fixture(scope="module")
def data(spark):
    """Rows whose labels, values and places are partly wrong, and which ones."""
    from pyspark.ml.feature import VectorAssembler

    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 2))
    wrong = rng.random(ROWS) < 0.12
    right = X[:, 0] + X[:, 1] > 0
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "id": np.arange(ROWS)})
    frame["clean"], frame["label"] = right.astype(float), (right ^ wrong).astype(float)
    frame["value"] = X @ [1.0, -2.0] + 3 + 0.2 * rng.normal(size=ROWS) + np.where(wrong, 15.0, 0.0)
    frame["p"] = np.where(right, 100.0, -100.0) + X[:, 0]
    frame["q"] = X[:, 1] + np.where(wrong, rng.uniform(20.0, 60.0, ROWS), 0.0)
    rows = VectorAssembler(inputCols=["a", "b"], outputCol="features").transform(spark.createDataFrame(frame))
    rows = VectorAssembler(inputCols=["p", "q"], outputCol="place").transform(rows).coalesce(2).persist()
    yield frame, wrong, rows
    rows.unpersist()


def assessed(frame):
    found = frame.orderBy("id").select("id", "selfPacedWeight", "noiseProbability", "prediction", "level").collect()
    return {name: np.array([row[name] for row in found]) for name in found[0].asDict()}


def test_columns_are_the_formulas_of_the_rules(spark):
    losses = [0.0, 1e-6, 0.3, 1.0, 2.5, 40.0, 1e6]
    frame = spark.createDataFrame([(x,) for x in losses], "x double").coalesce(1)
    names = [name for name in REGISTRY if name not in ("diversity", "group-sqrt")]
    paces = {name: 1.5 if get(name).lam_range[1] > 2 else 0.3 for name in names}
    columns = [weight_column(get(name), paces[name], frame["x"]).alias(name) for name in names]
    rows = frame.select(*columns, outlier_column(frame["x"], 0.5, 0.1, 40.0).alias("outlier")).collect()
    for name in names:
        expected = get(name).relative_weight(np.array(losses), paces[name])
        np.testing.assert_allclose([row[name] for row in rows], expected, rtol=1e-9, atol=1e-12, err_msg=name)
    expected = outlier_probability(losses, 0.5, 0.1, reach=40.0)
    np.testing.assert_allclose([row["outlier"] for row in rows], expected, rtol=1e-9)


def test_values_with_outliers(data, tmp_path):
    from pyspark.ml.regression import LinearRegression

    frame, wrong, rows = data
    plain = LinearRegression(labelCol="value")
    model = CrossFit(estimator=plain, idCol="id").fit(rows)
    assert model.termination.startswith("The paced model was chosen: its score on unseen rows is higher by")
    assert model.path[0].lam == np.inf
    np.testing.assert_allclose(model.fitted.coefficients.toArray(), [1.0, -2.0], atol=0.05)
    assert model.fitted.intercept == pytest.approx(3.0, abs=0.05)
    assert model.noiseRate == pytest.approx(wrong.mean(), abs=0.03)
    model.save(str(tmp_path / "model"))
    again = CrossFitModel.load(str(tmp_path / "model"))
    assert repr(again.path) == repr(model.path)  # scores that are not known are NaN
    assert len(again.path) == 2
    found = assessed(again.unseen(rows))
    assert ((found["noiseProbability"] > 0.5) == wrong).mean() > 0.99
    assert ((found["level"] == "likely error") == (found["noiseProbability"] > 0.5)).all()
    assert wrong[found["level"] != ""].mean() > 0.9
    residual = frame["value"] - found["prediction"]
    expected = get("tukey").relative_weight(residual.to_numpy() ** 2 / model.settled.numbers["unit"], model.settled.lam)
    np.testing.assert_allclose(found["selfPacedWeight"], np.maximum(expected, 1e-6), rtol=1e-8)


def test_values_of_boosted_trees(data):
    from pyspark.ml.regression import GBTRegressor

    _, wrong, rows = data
    model = CrossFit(estimator=GBTRegressor(labelCol="value", maxIter=3, maxDepth=3, seed=1), idCol="id").fit(rows)
    assert model.termination.startswith("The paced model was chosen")
    assert model.noiseRate == pytest.approx(wrong.mean(), abs=0.03)
    found = assessed(model.unseen(rows))
    assert ((found["noiseProbability"] > 0.5) == wrong).mean() > 0.95


def test_labels_of_a_forest(data, tmp_path):
    from pyspark.ml.classification import RandomForestClassifier

    frame, wrong, rows = data
    own = CrossFit(estimator=RandomForestClassifier(numTrees=10, maxDepth=4, seed=1), idCol="id")
    own.save(str(tmp_path / "estimator"))
    own = CrossFit.load(str(tmp_path / "estimator"))
    model = own.fit(rows)
    assert model.noiseRate == pytest.approx(wrong.mean(), abs=0.06)
    found = assessed(model.unseen(rows))
    order = np.argsort(found["noiseProbability"], kind="stable")
    assert wrong[order[-60:]].mean() > 0.75
    assert (assessed(model.transform(rows))["prediction"] == frame["clean"]).mean() > 0.9


def test_distances_of_clusters(data):
    from pyspark.ml.clustering import KMeans

    frame, wrong, rows = data
    model = CrossFit(estimator=KMeans(k=2, seed=1, featuresCol="place"), idCol="id").fit(rows)
    assert model.termination.startswith("The paced model was chosen")
    centres = np.array(sorted(centre.tolist() for centre in model.fitted.clusterCenters()))
    good = frame[~wrong].groupby("clean")["q"].mean()  # the left side first
    np.testing.assert_allclose(centres[:, 1], good, atol=0.1)
    found = assessed(model.transform(rows))
    assert ((found["noiseProbability"] > 0.5) == wrong).mean() > 0.95


def test_nothing_wrong_keeps_the_plain_model(data):
    from pyspark.ml.classification import LogisticRegression

    rows = data[2]
    plain = LogisticRegression(labelCol="clean", regParam=0.01)
    model = CrossFit(estimator=plain, idCol="id").fit(rows)
    assert model.termination == "The plain model was kept: held-out labels do not plainly show that any are wrong."
    np.testing.assert_array_equal(model.fitted.coefficients.toArray(), plain.fit(rows).coefficients.toArray())
    found = assessed(model.transform(rows))
    assert (found["noiseProbability"] == 0).all()
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
    from pyspark.ml.feature import PCA
    from pyspark.ml.regression import LinearRegression

    rows = data[2]
    with pytest.raises(ValueError, match="idCol must name a column"):
        CrossFit(estimator=LinearRegression(labelCol="value")).fit(rows)
    with pytest.raises(ValueError, match="estimator must have a weightCol, got PCA"):
        CrossFit(estimator=PCA(k=1), idCol="id").fit(rows)
    with pytest.raises(ValueError, match="must tell probabilities of labels, got LinearSVC"):
        CrossFit(estimator=LinearSVC(), idCol="id").fit(rows)
