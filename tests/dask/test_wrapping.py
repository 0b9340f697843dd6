"""Estimators that train on a Dask cluster, wrapped: aligned weights, an outcome on unseen rows, a worker that dies."""

import os
import signal
import sys
from collections import namedtuple

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed", reason='tables on a cluster need the extra "dask"')

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

from selfpaced import SelfPacedLogisticRegression, suspects
from selfpaced.dask import CrossFitClassifier, CrossFitRegressor, table
from selfpaced.distributed.dask_stages import RepeatedStages

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this file
pytestmark = pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored:UserWarning")  # lightgbm's own
ROWS = 3000
Data = namedtuple("Data", "X clean label value given wrong")


@pytest.fixture(autouse=True)
def here():
    """Without a client, everything runs in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def data():
    """Rows whose labels and values are partly wrong, and which ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 3))
    wrong = rng.random(ROWS) < 0.15
    clean = X[:, 0] + X[:, 1] > 0
    value = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=ROWS)
    label = np.where(clean ^ wrong, "yes", "no")
    return Data(X, clean, label, value, value + np.where(wrong, 20.0, 0.0), wrong)


class OfSums(BaseEstimator):
    """A model of scikit-learn that is fitted to rows brought here, and predicts block by block."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y, sample_weight=None):
        weight = None if sample_weight is None else sample_weight.compute()
        self.fitted_ = self.model.fit(X.compute(), y.compute(), weight)
        return self

    def predict(self, X):
        return X.map_blocks(self.fitted_.predict, drop_axis=1, dtype=float)


class OfLabels(OfSums):
    def predict_proba(self, X):
        return X.map_blocks(self.fitted_.predict_proba, dtype=float)


def weights(model, rows):
    return suspects(model, rows, all_rows=True).compute()["weight"].to_numpy()


@pytest.mark.parametrize("chunks", [ROWS, (1, 0, 2000, 999), 430])
def test_blocks_do_not_matter(data, chunks):
    X, given, wrong = data.X, data.given, data.wrong
    rows = table(da.from_array(X, (ROWS, 3)), da.from_array(given, ROWS), labels=False)
    one = CrossFitRegressor(OfSums(LinearRegression())).fit(rows)
    assert one.termination_.endswith("of the rows are grossly wrong, and it predicts the others better.")
    assert one.noise_rate_ == pytest.approx(wrong.mean(), abs=0.02)
    np.testing.assert_allclose(one.estimator_.fitted_.coef_, [1.0, -2.0, 0.5], atol=0.02)
    cut = table(da.from_array(X, (chunks, 3)), da.from_array(given, chunks), labels=False)
    other = CrossFitRegressor(OfSums(LinearRegression())).fit(cut)
    np.testing.assert_allclose(other.estimator_.fitted_.coef_, one.estimator_.fitted_.coef_, rtol=1e-10)
    found = weights(other, cut)
    np.testing.assert_allclose(found, weights(one, rows), atol=1e-9)
    assert ((found < 0.5) == wrong).mean() > 0.99


def test_labels_weights_and_unknown_chunks(data):
    X, clean, label, wrong = data.X, data.clean, data.label, data.wrong
    frame = pd.DataFrame(X, columns=list("abc")).assign(label=label, w=1.0 + np.arange(ROWS) % 2)
    ddf = dd.from_pandas(frame, npartitions=5)
    ddf = ddf[ddf["a"] > -2.5]  # partitions of unknown size
    kept = X[:, 0] > -2.5
    model = CrossFitClassifier(OfLabels(LogisticRegression())).fit(ddf, "label", "w")
    assert model.termination_.startswith("The paced model was chosen: its score on unseen rows is higher by")
    assert model.feature_names_in_.tolist() == list("abc")
    assert [candidate.label for candidate in model.path_] == ["plain", "the paced model"]
    assert model.noise_rate_interval_[0] < 0.15 < model.noise_rate_interval_[1]
    told = model.predict(ddf[["c", "b", "a"]])
    assert (told.compute() == np.where(clean, "yes", "no")[kept]).mean() > 0.98
    assert model.predict_proba(ddf[["c", "b", "a"]]).compute().shape == (kept.sum(), 2)
    found = suspects(model, table(ddf, "label", "w"))
    assert isinstance(found, dd.DataFrame)
    found = found.compute()
    pd.testing.assert_frame_equal(suspects(model, ddf, "label").compute(), found)  # of the collections
    assert set(found["level"]) == {"likely error", "worth a look"}
    assert wrong[kept][found["row"][found["level"] == "likely error"]].mean() > 0.9
    columns = list(suspects(SelfPacedLogisticRegression().fit(X, label)).columns)
    assert [*found.columns, "stability"] == columns
    rows = found["row"].to_numpy()
    np.testing.assert_array_equal(found["given"], label[kept][rows])


def test_nothing_wrong_keeps_the_plain_model(data):
    X, clean, value = data.X, data.clean, data.value
    model = CrossFitRegressor(OfSums(LinearRegression())).fit(da.from_array(X, (700, 3)), da.from_array(value, 700))
    assert model.termination_ == "The plain model is used: no gross errors detected."
    assert model.lam_ == np.inf
    np.testing.assert_allclose(model.estimator_.fitted_.coef_, LinearRegression().fit(X, value).coef_, rtol=1e-10)
    rows = table(da.from_array(X, (700, 3)), da.from_array(value, 700), labels=False)
    assert (weights(model, rows) == 1).all()
    rare = np.where(np.arange(ROWS) == 7, 2, clean)  # one row of a third class
    model = CrossFitClassifier(OfLabels(LogisticRegression())).fit(da.from_array(X, (700, 3)), da.from_array(rare, 700))
    assert "all rows of the label 2 are in one half of the table" in model.termination_
    assert np.isnan(model.noise_rate_)


class Impatient(OfSums):
    """Ctrl-C in the third fit: by then there are models of both halves, and none of all rows."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Impatient.fits += 1
        if Impatient.fits == 3:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


def test_an_interrupted_fit_leaves_the_wrapper_as_it_was(data):
    rows = table(da.from_array(data.X, (ROWS, 3)), da.from_array(data.given, ROWS), labels=False)
    model = CrossFitRegressor(Impatient(LinearRegression()))
    Impatient.fits = 0
    with pytest.raises(KeyboardInterrupt, match="as it was before"):
        model.fit(rows)
    assert not [name for name in vars(model) if name.endswith("_")]
    before = dict(vars(model.fit(rows)))
    Impatient.fits = 0
    with pytest.raises(KeyboardInterrupt, match="as it was before"):
        model.fit(rows)
    assert vars(model) == before


def test_what_is_wrong_is_named(data):
    X, label = data.X, data.label
    arrays = da.from_array(X, (700, 3)), da.from_array(label, 700)
    with pytest.raises(TypeError, match="estimator must have predict_proba, got OfSums"):
        CrossFitClassifier(OfSums(LinearRegression())).fit(*arrays)
    with pytest.raises(ValueError, match="must be a table of values"):
        CrossFitRegressor(OfSums(LinearRegression())).fit(table(*arrays))
    with pytest.raises(ValueError, match="infinity in X, row 3 of block 0"):
        CrossFitClassifier(OfLabels(LogisticRegression())).fit(
            da.where(arrays[0] == X[3, 0], np.inf, arrays[0]), arrays[1]
        )

    with pytest.raises(
        TypeError, match="must predict Dask arrays as Dask arrays.* got ndarray from LogisticRegression"
    ):
        CrossFitClassifier(LogisticRegression()).fit(*arrays)

    class Broken(OfLabels):
        def fit(self, X, y, sample_weight=None):
            raise ArithmeticError("no worker is to blame")

    with pytest.raises(ArithmeticError, match="no worker is to blame"):
        CrossFitClassifier(Broken(LogisticRegression())).fit(*arrays)


# --------------------------------------------------------------------------------------- boosting on the cluster


def dies_in_the_third(folder, first):
    """Called on every worker as a training begins: in the third, the one of rank 0 is to be killed."""
    if first:
        with open(folder / "trainings", "a") as file:
            file.write(".")
    return first and (folder / "trainings").stat().st_size == 3


def xgboost_regressor(folder):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is a test dependency")
    from xgboost.dask import DaskXGBRegressor

    class Mortal(xgboost.callback.TrainingCallback):
        def before_training(self, model):
            self.dies = dies_in_the_third(folder, xgboost.collective.get_rank() == 0)
            return model

        def after_iteration(self, model, epoch, evals_log):
            if self.dies and epoch == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return False

    return DaskXGBRegressor(n_estimators=40, max_depth=3, learning_rate=0.2, callbacks=[Mortal()])


def lightgbm_regressor(folder):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is a test dependency")

    def mortal(env):
        network = env.model.params
        first = network["machines"].split(",")[0].endswith(f":{network['local_listen_port']}")
        if env.iteration == 0:
            mortal.dies = dies_in_the_third(folder, first)
        if mortal.dies and env.iteration == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    class Mortal(lightgbm.DaskLGBMRegressor):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X, y, sample_weight=sample_weight, callbacks=[mortal])

    return Mortal(n_estimators=40, num_leaves=7, learning_rate=0.2, verbose=-1)


@pytest.mark.parametrize("made", [xgboost_regressor, lightgbm_regressor])
def test_a_stage_that_loses_a_worker_is_done_again(data, client, tmp_path, made):
    X, value, given, wrong = data.X, data.value, data.given, data.wrong
    with client.as_current(), dask.config.set(scheduler=client):
        rows = table(da.from_array(X, (500, 3)), da.from_array(given, 500), labels=False)
        model = CrossFitRegressor(made(tmp_path)).fit(rows)
        assert model.repeated_ == ("weighted fit of half 1",)
        assert (tmp_path / "trainings").read_text() == "." * 6  # five, and the third once more
        assert model.termination_.endswith("of the rows are grossly wrong, and it predicts the others better.")
        assert ((weights(model, rows) < 0.5) == wrong).mean() > 0.97
        told = model.predict(da.from_array(X, (500, 3))).compute()
        assert np.abs(told - value)[~wrong].mean() < 0.6


def test_a_training_that_is_left_with_one_worker(client, tmp_path):
    """LightGBM keeps the network of a failed training in its thread, and would use it where it trains alone."""
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is a test dependency")
    rng = np.random.default_rng(0)
    X = da.from_array(rng.standard_normal((2000, 3)), (500, 3))
    for nanny in client.cluster.workers.values():
        nanny.auto_restart = False

    def mortal(env):
        network, killed = env.model.params, tmp_path / "killed"
        first = network.get("machines", "").split(",")[0].endswith(f":{network.get('local_listen_port')}")
        if env.iteration == 3 and first and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def stage():
        return lightgbm.DaskLGBMRegressor(n_estimators=10, num_leaves=7, verbose=-1).fit(X, X[:, 0], callbacks=[mortal])

    with client.as_current(), dask.config.set(scheduler=client):
        stages = RepeatedStages()
        model = stages.run("training", stage)
        assert stages.repeated == ["training"]
        assert len(client.nthreads()) == 1
        assert float(abs(model.predict(X) - X[:, 0]).mean().compute()) < 0.5
