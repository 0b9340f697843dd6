"""What an estimator must be known to: nothing here is listed by hand, so that a new one cannot be forgotten."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge

import selfpaced
from selfpaced.assessment import Assessment, AssessmentMixin
from selfpaced.registry import ESTIMATORS, estimator

ROOT = Path(selfpaced.__file__).parents[2]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
LABELS = np.where((X[:, 0] > 0) ^ (RNG.random(120) < 0.1), "yes", "no")
VALUES = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * RNG.normal(size=120) + 10 * (RNG.random(120) < 0.1)
TARGET = {"labels": LABELS, "values": VALUES, "entries": None, "samples": None}


WRAPPED = {"SelfPacedClassifier": LogisticRegression(), "SelfPacedRegressor": Ridge()}


def fitted(name):
    made = estimator(name)(WRAPPED[name]) if name in WRAPPED else estimator(name)()
    params = {"random_state": 0, "n_clusters": 3, "rank": 2}
    params |= {"center": None, "ridge": 0.005}  # of a factorization: nothing to choose, and no warning that X is noise
    made.set_params(**{key: value for key, value in params.items() if key in made.get_params()})
    target = TARGET[ESTIMATORS[name].kind]
    return (made.fit(X) if target is None else made.fit(X, target)), target


@pytest.fixture(scope="module", params=ESTIMATORS)
def case(request):
    return request.param, *fitted(request.param)


def test_it_is_exported(case):
    name, _, _ = case
    assert name in selfpaced.__all__
    assert getattr(selfpaced, name) is estimator(name)


def test_it_references_what_the_registry_says(case):
    name, model, _ = case
    assert isinstance(model, AssessmentMixin)
    assert isinstance(model.assessment_, Assessment)
    assert model.assessment_.kind == ESTIMATORS[name].kind
    assert is_classifier(model) == (ESTIMATORS[name].kind == "labels")
    assert is_regressor(model) == (ESTIMATORS[name].kind == "values")


def test_it_knows_its_training_rows_and_no_others(case):
    _, model, target = case
    assert model.assess(X.copy(), target) is model.assessment_
    other = X.copy()
    other[3] += 1.0
    assert model.assess(other, target) is not model.assessment_


def test_new_rows_are_weighed_by_the_loss_and_pace_of_the_fit(case):
    """The assessment of the same rows as new ones has the same weights, unless the training one is held out."""
    name, model, target = case
    if model.assessment_.held_out:
        pytest.skip(f"{name} assessed its training rows by models that had not seen them")
    if ESTIMATORS[name].kind == "entries":
        pytest.skip("new rows of a matrix get factors of their own, so their residuals differ")
    longer = np.vstack([X, X[:1]])
    given = None if target is None else np.r_[target, target[:1]]
    new = model.assess(longer, given)
    np.testing.assert_allclose(new.weight[:-1], model.assessment_.weight, rtol=1e-5, atol=1e-6)


def test_what_it_says_about_rows_is_whole(case):
    _, model, _ = case
    assessment = model.assessment_
    n = np.size(assessment.wrong)
    assert np.shape(assessment.weight) == np.shape(assessment.losses)
    assert np.all((assessment.weight >= 0) & (assessment.weight <= 1))
    assert np.all((assessment.wrong >= 0) & (assessment.wrong <= 1))
    assert np.size(assessment.diagnosis.given) == np.size(assessment.diagnosis.expected) == n
    assert sorted(assessment.ranking().tolist()) == list(range(n))


def test_it_tells_its_path_and_why_it_stopped(case):
    _, model, _ = case
    assert model.termination_.endswith(".")
    assert model.path_
    assert sum(candidate.chosen for candidate in model.path_) == 1


def test_it_can_be_saved(case):
    pytest.importorskip("skops", reason='saving models needs the extra "io"')
    import io

    from selfpaced.persistence import load, save

    _, model, target = case
    file = io.BytesIO()
    save(model, file)
    again = load(file)
    np.testing.assert_array_equal(again.assessment_.weight, model.assessment_.weight)
    assert again.assess(X, target) is again.assessment_


def test_it_can_be_reported(case):
    pytest.importorskip("jinja2", reason="the report needs Jinja2")
    from selfpaced.report import summarise
    from selfpaced.selection import end_in_words

    name, model, target = case
    summary = summarise(model, X, target)
    assert summary.title == name
    assert summary.termination == end_in_words(model.termination_, model.path_, summary.noun)
    assert summary.suspects is not None


def test_its_path_and_weights_can_be_drawn(case):
    pytest.importorskip("matplotlib", reason="plots need Matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from selfpaced import plot

    _, model, _ = case
    plot.path(model)
    plot.weights(model)
    plt.close("all")


def test_it_is_documented(case):
    name, model, _ = case
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md")]
    assert sum(f"::: {type(model).__module__}.{name}\n" in f"{page}\n" for page in pages) == 1
    assert type(model).__doc__
    assert "Examples" in type(model).__doc__


def test_pace_is_the_one_word_for_pace(case):
    _, model, _ = case
    params = clone(model).get_params(deep=False)
    assert not {"pacing", "start_pace", "n_stages", "end"} & set(params)


def test_a_private_module_is_imported_within_its_package_only():
    """What is public is in ``__all__`` and the documentation; a file with an underscore in front is for its folder."""
    source = ROOT / "src" / "selfpaced"
    hidden = [path for path in source.rglob("_*.py") if not path.name.startswith("__")]
    for path in source.rglob("*.py"):
        outside = {other.stem for other in hidden if other.parent != path.parent}
        lines = re.findall(r"^\s*(?:from|import) .*", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert not outside & {name for line in lines for name in re.findall(r"\b_[a-z]\w*", line)}, path
