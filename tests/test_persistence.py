"""Models saved and loaded: by skops with trusted types, by pickle and joblib across processes."""

import functools
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile

import joblib
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

pytest.importorskip("skops", reason='saving models needs the extra "io"')

from selfpaced import (
    SelfPacedClassifier,
    SelfPacedLinearRegression,
    SelfPacedLogisticRegression,
    SelfPacedMF,
    SelfPacedMultiViewKMeans,
    SelfPacedRegressor,
    pacing,
    robust,
)
from selfpaced.pacing import Fixed, Geometric, Graduated, Ladder, Pacing, Quantile, Span
from selfpaced.persistence import UntrustedFileError, is_trusted, load, metadata, replacing, save
from selfpaced.registry import ESTIMATORS, estimator
from selfpaced.regularizers import REGISTRY, GroupRegularizer, from_loss, get
from selfpaced.robust import EfficientPace, Opening

X, Y = load_iris(return_X_y=True)
NOISY = np.where(np.random.default_rng(0).random(len(Y)) < 0.15, (Y + 1) % 3, Y)
VALUE = X @ [1.0, -1.0, 2.0, 0.5] + np.where(np.arange(len(Y)) % 9 == 0, 20.0, 0.0)

MODELS = {
    "logistic": lambda: make_pipeline(StandardScaler(), SelfPacedLogisticRegression()).fit(X, NOISY),
    "linear": lambda: SelfPacedLinearRegression().fit(X, VALUE),
    "forest": lambda: SelfPacedClassifier(RandomForestClassifier(8, random_state=0), random_state=0).fit(X, NOISY),
    "boosting": lambda: SelfPacedRegressor(HistGradientBoostingRegressor(max_iter=8), random_state=0).fit(X, VALUE),
}


@pytest.fixture(scope="module")
def fitted():
    made = {}

    def get_model(name):
        if name not in made:
            made[name] = MODELS[name]()
        return made[name]

    return get_model


def dumped(model):
    file = io.BytesIO()
    save(model, file)
    return file.getvalue()


# -------------------------------------------------------------------------------------------------------- skops


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(fitted, name):
    model = fitted(name)
    again = load(dumped(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    ours, theirs = (m[-1] if hasattr(m, "steps") else m for m in (model, again))
    np.testing.assert_array_equal(theirs.sample_weight_, ours.sample_weight_)
    assert theirs.path_ == ours.path_ or str(theirs.path_) == str(ours.path_)  # nan is not nan
    assert theirs.termination_ == ours.termination_
    assert theirs.get_params(deep=False).keys() == ours.get_params(deep=False).keys()


def test_round_trip_of_a_factorization_and_a_clustering():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20))
    matrix[3, 4] = 50.0
    model = SelfPacedMF(rank=2, random_state=0).fit(matrix)
    again = load(dumped(model))
    np.testing.assert_array_equal(again.row_factors_, model.row_factors_)
    views = [X[:, :2], X[:, 2:]]
    clusters = SelfPacedMultiViewKMeans(n_clusters=3, random_state=0).fit(views)
    np.testing.assert_array_equal(load(dumped(clusters)).labels_, clusters.labels_)


@pytest.mark.parametrize("rule", [name for name, kind in REGISTRY.items() if not issubclass(kind, GroupRegularizer)])
def test_every_rule_can_be_saved(rule):
    model = SelfPacedLogisticRegression(regularizer=get(rule))
    assert load(dumped(model)).regularizer == get(rule)


PACES = [EfficientPace(), Fixed(2.0), Geometric(), Graduated(1.0), Ladder((1.0, 2.0)), Opening(), Quantile(), Span()]


def test_every_pace_is_among_those_that_are_tried():
    offered = [*vars(pacing).values(), *vars(robust).values()]
    ours = {kind for kind in offered if isinstance(kind, type) and issubclass(kind, Pacing)} - {Pacing}
    assert {type(pace) for pace in PACES} == ours


@pytest.mark.parametrize("pace", PACES, ids=lambda pace: type(pace).__name__)
def test_every_pace_can_be_saved(pace):
    assert load(dumped(SelfPacedLogisticRegression(pace=pace))).pace == pace


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_trusted(name):
    found = estimator(name)
    assert is_trusted(f"{found.__module__}.{found.__qualname__}")


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "selfpaced.persistence.load",  # a function
        "selfpaced.persistence.os.system",
        "selfpaced.persistence.Path",  # not its own
        "selfpaced.nowhere.Thing",
        "selfpaced.pacing.",
        "selfpaced.pacing.Geometric.first",
        "selfpacedevil.Geometric",
        "",
    ],
)
def test_nothing_else_is_trusted(name):
    assert not is_trusted(name)


def test_facts_and_versions_are_kept(tmp_path, fitted):
    path = tmp_path / "model.skops"
    save(fitted("linear"), path, facts={"target": "price"})
    found = metadata(path)
    assert found["target"] == "price"
    assert set(found["versions"]) == {"python", "selfpaced", "scikit-learn", "numpy", "skops"}
    assert os.listdir(tmp_path) == ["model.skops"]


def saved_with(data, package, version):
    """The file as if another version of a package had written it."""
    source, target = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            text = source.read(name)
            if name == "selfpaced.json":
                facts = json.loads(text)
                facts["versions"][package] = version
                text = json.dumps(facts)
            archive.writestr(name, text)
    return target


@pytest.mark.parametrize("package", ["scikit-learn", "selfpaced"])
def test_another_minor_version_is_told(fitted, package):
    with pytest.warns(UserWarning, match=f"saved with {package} 0.0.7, this is"):
        load(saved_with(dumped(fitted("linear")), package, "0.0.7"))


@pytest.mark.parametrize("package", ["scikit-learn", "selfpaced"])
def test_another_patch_version_is_not_worth_a_word(fitted, package):
    data = dumped(fitted("linear"))
    major, minor, _ = metadata(data)["versions"][package].split(".", 2)
    load(saved_with(data, package, f"{major}.{minor}.99"))  # warnings are errors here


# --------------------------------------------------------------------------------------------------- strangers


class Stranger(LogisticRegression):
    """A type nobody has vouched for."""


def test_a_strangers_type_is_refused_by_name(tmp_path):
    path = tmp_path / "stranger.skops"
    with pytest.warns(UserWarning, match="Stranger"):  # load will ask for it
        save(Stranger(max_iter=1000).fit(X, Y), path)
    with pytest.raises(UntrustedFileError, match="Stranger.*may run code") as caught:
        load(path)
    (name,) = caught.value.types
    assert name.endswith(".Stranger")
    assert isinstance(load(path, trusted=[name]), LogisticRegression)


@pytest.mark.parametrize("call", [os.system, functools.partial(os.system, "true")], ids=["bare", "partial"])
def test_code_in_a_file_is_refused(call):
    with pytest.warns(UserWarning, match=r"\bsystem"):
        data = dumped(make_pipeline(FunctionTransformer(call), LogisticRegression()))
    with pytest.raises(UntrustedFileError, match=r"\bsystem") as caught:
        load(data)
    assert [name.rpartition(".")[2] for name in caught.value.types] == ["system"]


@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "ball_tree"])
@pytest.mark.parametrize("metric", ["minkowski", "manhattan"])
def test_nearest_neighbours_can_be_saved(algorithm, metric):
    base = KNeighborsClassifier(3, algorithm=algorithm, metric=metric)
    for model in (SelfPacedClassifier(base).fit(X, NOISY), make_pipeline(StandardScaler(), base).fit(X, NOISY)):
        before = model.predict_proba(X)
        again = load(dumped(model))
        np.testing.assert_array_equal(again.predict_proba(X), before)
        np.testing.assert_array_equal(model.predict_proba(X), before)  # saving leaves the model as it was
        assert type(_last(again)._tree) is type(_last(model)._tree)


def _last(model):
    found = model.estimator_ if isinstance(model, SelfPacedClassifier) else model[-1]
    return getattr(found, "models_", [found])[0]


def test_an_index_that_cannot_be_built_is_refused():
    model = KNeighborsClassifier(3, algorithm="kd_tree").fit(X, Y)
    model.effective_metric_ = "no metric"
    with pytest.raises(UntrustedFileError, match="cannot be rebuilt"):
        load(dumped(model))


@pytest.mark.parametrize(
    "base",
    [
        CalibratedClassifierCV(LogisticRegression(max_iter=1000), cv=2),
        MLPClassifier((3,), max_iter=5, random_state=0),
        VotingClassifier([("a", LogisticRegression(max_iter=1000))]),
    ],
    ids=lambda base: type(base).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_saved_without_a_warning_can_be_opened(base):
    model = SelfPacedClassifier(base).fit(X, NOISY)
    np.testing.assert_array_equal(load(dumped(model)).predict(X), model.predict(X))


def test_boosting_with_categories_can_be_saved():
    codes = np.column_stack([X, Y % 2])
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=[4]).fit(codes, Y)
    np.testing.assert_array_equal(load(dumped(model)).predict(codes), model.predict(codes))


def my_loss(loss, lam):
    return lam * loss / (lam + loss)


def test_a_loss_of_ones_own_needs_a_word_of_trust():
    model = SelfPacedLogisticRegression(regularizer=from_loss(my_loss))
    with pytest.warns(UserWarning, match="my_loss"):
        data = dumped(model)
    with pytest.raises(UntrustedFileError, match="my_loss") as caught:
        load(data)
    again = load(data, trusted=caught.value.types)
    assert again.regularizer.latent(1.0, 2.0) == model.regularizer.latent(1.0, 2.0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (pickle.dumps(LogisticRegression()), "looks like a pickle"),
        (b"a,b\n1,2\n", "not a skops file"),
        (b"", "not a skops file"),
    ],
)
def test_what_is_no_model_file_is_refused(tmp_path, content, reason):
    path = tmp_path / "m.skops"
    path.write_bytes(content)
    with pytest.raises(UntrustedFileError, match=reason):
        load(path)


def test_a_damaged_file_is_refused(fitted):
    data = dumped(fitted("linear"))
    with pytest.raises(UntrustedFileError):
        load(data[: len(data) // 2])
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("something", "else")
    with pytest.raises(UntrustedFileError, match="damaged, or no model file"):
        load(empty)


@pytest.mark.parametrize("field", ["left", "right", "feature_idx"])
def test_a_boosted_tree_that_points_outside_is_refused(field):
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, Y)
    nodes = model._predictors[0][0].nodes
    assert not nodes[0]["is_leaf"]
    assert load(dumped(model)) is not None
    nodes[0][field] = 10_000
    with pytest.raises(UntrustedFileError, match="points outside itself"):
        load(dumped(model))


def test_a_tree_of_a_forest_that_points_outside_is_refused():
    model = RandomForestClassifier(2, random_state=0).fit(X, Y)
    assert load(dumped(model)) is not None
    model.estimators_[0].tree_.children_left[0] = 10_000
    with pytest.raises(UntrustedFileError, match="points outside itself"):
        load(dumped(model))


# ------------------------------------------------------------------------------------- pickle, across processes


LOADER = """
import pathlib, pickle, sys, joblib, numpy as np
from selfpaced.persistence import load
folder = pathlib.Path(sys.argv[1])
X = np.load(folder / "X.npy")
openers = {".pickle": lambda path: pickle.loads(path.read_bytes()), ".joblib": joblib.load, ".skops": load}
found = {}
for path in folder.iterdir():
    if path.suffix in openers:
        found[path.name] = openers[path.suffix](path).predict(X)
np.savez(folder / "out.npz", **found)
"""


def test_another_process_predicts_the_same(tmp_path, fitted):
    np.save(tmp_path / "X.npy", X)
    for name in MODELS:
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps(fitted(name)))
        joblib.dump(fitted(name), tmp_path / f"{name}.joblib")
        save(fitted(name), tmp_path / f"{name}.skops")
    subprocess.run([sys.executable, "-c", LOADER, str(tmp_path)], check=True, timeout=300)
    with np.load(tmp_path / "out.npz") as found:
        assert len(found) == 3 * len(MODELS)
        for file in found:
            np.testing.assert_array_equal(found[file], fitted(file.partition(".")[0]).predict(X), err_msg=file)


# --------------------------------------------------------------------------------------------------- the file


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(b"old")

    def interrupted():
        with replacing(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.skops"]


def test_saved_files_have_the_usual_rights(tmp_path):
    with replacing(tmp_path / "a") as stream:
        stream.write(b"x")
    (tmp_path / "b").write_bytes(b"x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_saving_does_not_import_what_it_does_not_need(tmp_path):
    code = """
import sys
from sklearn.linear_model import LogisticRegression
from selfpaced.persistence import load, save
save(LogisticRegression(), sys.argv[1])
assert type(load(sys.argv[1])) is LogisticRegression
assert not {"torch", "dask", "cupy"} & set(sys.modules), "slow to import"
import sklearn.externals.array_api_compat.torch
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.skops")], capture_output=True, text=True)
    assert not done.returncode or "No module named 'torch'" in done.stderr, done.stderr
