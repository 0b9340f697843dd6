"""One label per row: rates, levels, every form of input, and what is refused."""

import math
import warnings

import numpy as np
import pytest

import selfpaced
from selfpaced import LabelAudit, audit_labels
from selfpaced.label_noise import fit_channel

NAMES = np.array(["ant", "bee", "cat"])


def test_rate_interval_and_levels(three):
    audit = audit_labels(three.codes, three.probs)
    assert isinstance(audit, LabelAudit)
    low, high = audit.noise_rate_interval
    assert low < three.wrong.mean() < high
    assert abs(audit.noise_rate - three.wrong.mean()) < 0.03
    found = audit.suspects()
    likely = found[found["level"] == "likely error"]
    assert three.wrong[likely["row"]].mean() > 0.8
    assert three.wrong[likely["row"]].sum() > 0.7 * three.wrong.sum()
    assert (likely["given"] != likely["expected"]).all()
    assert found["level"].tolist() == sorted(found["level"], key=["likely error", "worth a look"].index)


def test_clean_labels_have_no_likely_errors(clean):
    audit = audit_labels(clean.codes, clean.probs)
    assert audit.noise_rate_interval[0] == 0
    assert (audit.suspects()["level"] == "likely error").sum() <= 1


def test_the_answer_is_that_of_the_label_noise_model_of_the_library(binary):
    margin = np.log(binary.probs[:, 1] / binary.probs[:, 0])
    audit, model = audit_labels(binary.codes, binary.probs), fit_channel(margin, binary.codes, noiseless=True)
    assert audit.noise_rate_interval == pytest.approx(model.interval, abs=1e-6)
    assert audit.noise_rate == pytest.approx(model.noise_rate, abs=1e-6)
    np.testing.assert_allclose(audit.transition_matrix, model.transition, atol=1e-6)
    np.testing.assert_allclose(audit.calibrated_probs, model.proba(margin), atol=1e-6)
    wrong = audit.suspects(all_rows=True).sort_values("row")["noise_probability"]
    np.testing.assert_allclose(wrong, model.noise_probability(margin, binary.codes), atol=1e-6)


def test_overconfident_probabilities_are_calibrated(three):
    sharp = three.probs**3
    audit = audit_labels(three.codes, sharp / sharp.sum(axis=1, keepdims=True))
    assert np.abs(audit.calibrated_probs - three.probs).mean() < 0.03
    np.testing.assert_allclose(audit.clean_share.sum(), 1.0)


def test_order_of_rows_and_names_of_classes_do_not_matter(three):
    plain = audit_labels(three.codes, three.probs).suspects(all_rows=True).set_index("row")["noise_probability"]
    order = np.random.default_rng(0).permutation(len(three.codes))
    moved = audit_labels(three.codes[order], three.probs[order]).suspects(all_rows=True)
    np.testing.assert_allclose(moved["noise_probability"], plain.loc[order[moved["row"]]], atol=1e-4)
    named = audit_labels(NAMES[three.codes], three.probs).suspects(all_rows=True).set_index("row")
    np.testing.assert_allclose(named["noise_probability"], plain.loc[named.index], atol=1e-12)
    columns = [2, 0, 1]
    other = audit_labels(NAMES[three.codes], three.probs[:, columns], classes=NAMES[columns])
    again = other.suspects(all_rows=True).set_index("row")["noise_probability"]
    np.testing.assert_allclose(again, plain.loc[again.index], atol=1e-2)


def test_pandas_polars_and_torch_give_the_same_answer(three):
    pd, pl, torch = (pytest.importorskip(name) for name in ("pandas", "polars", "torch"))
    expected = audit_labels(NAMES[three.codes], three.probs)
    index = [f"r{i}" for i in range(len(three.codes))]
    frame = pd.DataFrame(three.probs[:, ::-1], columns=NAMES[::-1], index=index)
    series = pd.Series(NAMES[three.codes], index=index, dtype="category")
    others = [
        audit_labels(series, frame),
        audit_labels(pl.Series(NAMES[three.codes].tolist()), pl.DataFrame(three.probs, schema=NAMES.tolist())),
        audit_labels(NAMES[three.codes].tolist(), torch.tensor(three.probs)),
        audit_labels(torch.tensor(three.codes), torch.tensor(three.probs), classes=range(3)),
    ]
    for audit in others:
        np.testing.assert_allclose(audit.noise_rate, expected.noise_rate, atol=1e-3)
        assert abs(len(audit.suspects()) - len(expected.suspects())) <= 2
    found = others[0].suspects(3)
    assert [index[row] for row in found["row"]] == list(found.index)
    assert list(others[0].label_issues().index) == index


def test_half_precision_of_networks(three):
    torch = pytest.importorskip("torch")
    exact, half = audit_labels(three.codes, three.probs), torch.tensor(three.probs).bfloat16().requires_grad_()
    assert audit_labels(three.codes, half).noise_rate == pytest.approx(exact.noise_rate, abs=0.01)


def test_one_column_is_the_probability_of_the_second_class(binary):
    two, one = audit_labels(binary.codes, binary.probs), audit_labels(binary.codes, binary.probs[:, 1])
    assert one.noise_rate == pytest.approx(two.noise_rate, abs=1e-6)
    flags = audit_labels(binary.codes.astype(bool), binary.probs[:, 1].astype(np.float32))
    assert flags.classes.tolist() == [False, True]


def test_rows_without_a_label_are_left_out_and_predicted(three):
    labels = NAMES[three.codes].astype(object)
    labels[:5], labels[5:9] = None, math.nan
    audit, without = audit_labels(labels, three.probs), audit_labels(NAMES[three.codes[9:]], three.probs[9:])
    assert audit.noise_rate == pytest.approx(without.noise_rate)
    assert audit.n_unlabelled == 9
    assert "9 rows without a label" in audit.summary()
    assert len(audit.calibrated_probs) == len(labels)
    assert audit.suspects(all_rows=True)["row"].min() >= 9
    issues = audit.label_issues()
    assert issues["label_quality"].isna().sum() == 9
    assert not issues["is_label_issue"][:9].any()
    assert set(issues["predicted_label"][:9]) <= set(NAMES)
    numbers = np.where(np.arange(len(labels)) < 9, np.nan, three.codes)
    assert audit_labels(numbers, three.probs).classes.tolist() == [0, 1, 2]


def test_a_class_without_labels_keeps_its_column(binary):
    probs = np.column_stack([0.999 * binary.probs, np.full(len(binary.codes), 0.001)])
    assert audit_labels(binary.codes, probs).classes.tolist() == [0, 1, 2]


def test_label_issues_has_the_columns_of_cleanlab(three):
    issues = audit_labels(three.codes, three.probs).label_issues()
    assert list(issues) == ["is_label_issue", "label_quality", "given_label", "predicted_label", "level"]
    assert (issues["is_label_issue"] == (issues["level"] == "likely error")).all()


def test_suspects_have_the_columns_of_the_estimators(three):
    X = np.log(three.probs[:, :2] / three.probs[:, 2:])
    model = selfpaced.SelfPacedLogisticRegression().fit(X, three.codes)
    ours, theirs = audit_labels(three.codes, three.probs).suspects(), selfpaced.suspects(model)
    assert set(theirs) - set(ours) <= {"stability"}
    assert set(ours) <= set(theirs)
    with_ids = audit_labels(three.codes, three.probs, ids=[f"id{i}" for i in range(len(three.codes))]).suspects(4)
    assert with_ids["id"].tolist() == [f"id{row}" for row in with_ids["row"]]


def test_weights_are_frequencies(binary):
    twice = np.arange(len(binary.codes)) < 300
    weighted = audit_labels(binary.codes, binary.probs, sample_weight=1 + twice)
    rows = np.r_[np.arange(len(binary.codes)), np.flatnonzero(twice)]
    repeated = audit_labels(binary.codes[rows], binary.probs[rows])
    assert weighted.noise_rate_interval == pytest.approx(repeated.noise_rate_interval, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pred_probs": lambda p: 3 * np.log(p)}, "softmax"),
        ({"pred_probs": lambda p: 0.6 * p}, "sum to 1"),
        ({"pred_probs": lambda p: np.where(np.arange(len(p))[:, None] == 7, np.nan, p)}, "NaN in row 7"),
        ({"pred_probs": lambda p: p[:-1]}, "same length"),
        ({"pred_probs": lambda p: p[:, :2] / p[:, :2].sum(axis=1, keepdims=True)}, "classes="),
        ({"labels": lambda y: y[:, None]}, "one-dimensional"),
        ({"labels": lambda y: np.where(y == 0, "zebra", NAMES[y]), "classes": lambda _: NAMES}, "'zebra'"),
        ({"labels": lambda y: np.full(len(y), np.nan)}, "some labels"),
        ({"classes": lambda _: ["a", "b"]}, "3 columns"),
        ({"sample_weight": lambda y: -np.ones(len(y))}, "sample_weight"),
        ({"groups": lambda y: y[:3]}, "groups"),
        ({"groups": lambda y: np.where(y == 0, np.nan, y)}, "groups must not have missing values"),
        ({"ids": lambda y: y[:3]}, "ids"),
        ({"cells": lambda y: ["one"] * 3}, "cells"),
        ({"features": lambda y: np.full((len(y), 2), np.nan)}, "features must be finite"),
        ({"pred_probs": lambda _: None}, r"pred_probs must be probabilities of shape .* got object of shape \(\)"),
        ({"labels": lambda y: [[0], [1, 2]] * (len(y) // 2)}, "labels must be an array, every row of the same length"),
        ({"classes": lambda _: 3}, "classes must be a sequence of labels, got 3"),
        ({"cells": lambda _: 5}, "cells must have one row for each"),
    ],
)
def test_bad_input_says_what_to_do(three, change, message):
    arguments = {"labels": three.codes, "pred_probs": three.probs}
    for name, make in change.items():
        arguments[name] = make(arguments.get(name, three.codes))
    with pytest.raises(ValueError, match=message):
        audit_labels(arguments.pop("labels"), arguments.pop("pred_probs"), **arguments)


def test_columns_of_a_frame_that_are_no_labels_need_classes(three):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(three.probs, columns=["p_ant", "p_bee", "p_cat"])
    with pytest.raises(ValueError, match="classes="):
        audit_labels(NAMES[three.codes], frame)
    assert audit_labels(NAMES[three.codes], frame, classes=NAMES).classes.tolist() == NAMES.tolist()


def test_in_sample_probabilities_are_noticed(three):
    own = 0.1 * three.probs
    own[np.arange(len(own)), three.codes] += 0.9
    with pytest.warns(UserWarning, match="look in-sample.*cross_val_predict"):
        audit = audit_labels(three.codes, own)
    assert "in-sample" in audit.summary()
    with pytest.warns(UserWarning, match="in-sample"):
        audit_labels(three.codes, np.eye(3)[three.codes])


@pytest.mark.parametrize("rate", [0.0, 0.2])
def test_held_out_probabilities_are_not_called_in_sample(rate):
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict

    X, y = load_wine(return_X_y=True)
    given = np.where(np.random.default_rng(0).random(len(y)) < rate, (y + 1) % 3, y)
    forest = RandomForestClassifier(50, random_state=0)
    held_out = cross_val_predict(forest, X, given, method="predict_proba")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit_labels(given, held_out)


def test_probabilities_that_say_nothing(three):
    audit = audit_labels(three.codes, np.full_like(three.probs, 1 / 3))
    assert not len(audit.suspects())
    assert math.isnan(audit.noise_rate)
    assert "do not predict" in audit.summary()


def test_hard_votes_with_zeros_are_finite(three):
    votes = np.round(three.probs * 10) / 10
    votes[:, 0] += 1 - votes.sum(axis=1)
    audit = audit_labels(three.codes, np.clip(votes, 0, 1) / np.clip(votes, 0, 1).sum(axis=1, keepdims=True))
    assert np.isfinite(audit.calibrated_probs).all()
    low, high = audit.noise_rate_interval
    assert low < three.wrong.mean() < high


def test_summary_repr_and_html(three, clean):
    audit = audit_labels(NAMES[three.codes], three.probs)
    assert "Estimated label-error rate" in audit.summary()
    assert "features=" in audit.summary()
    assert repr(audit).startswith("LabelAudit(n=900, classes=3")
    assert len(repr(audit)) < 160
    assert "<table" in audit._repr_html_()
    quiet = audit_labels(NAMES[clean.codes], clean.probs).summary()
    assert "Estimated label-error rate" not in quiet


def test_report_shows_the_cells_of_each_suspect(three, tmp_path):
    pytest.importorskip("jinja2")
    texts = [f"text <{i}>" for i in range(len(three.codes))]
    audit = audit_labels(NAMES[three.codes], three.probs, cells=texts)
    page = audit.report(tmp_path / "audit.html").read_text(encoding="utf-8")
    worst = int(audit.suspects(1)["row"].iloc[0])
    assert f"text \\u003c{worst}\\u003e" in page or f"text <{worst}>" in page
    assert "label-error rate" in page
    with pytest.raises(FileNotFoundError):
        audit.report(tmp_path / "nowhere" / "audit.html")


def test_report_shows_images_whose_paths_are_in_the_cells(binary, tmp_path):
    pytest.importorskip("jinja2")
    image = pytest.importorskip("PIL.Image")
    pd = pytest.importorskip("pandas")
    paths = [str(tmp_path / f"{i}.png") for i in range(len(binary.codes))]
    for path in paths:
        image.new("RGB", (8, 8), (200, 10, 10)).save(path)
    audit = audit_labels(binary.codes, binary.probs, cells=pd.DataFrame({"image": paths}))
    shown = audit.report(tmp_path / "audit.html").read_text(encoding="utf-8")
    assert shown.count("data:image/png;base64") == min(len(audit.suspects()), 200)
    missing = audit_labels(binary.codes, binary.probs, cells=pd.DataFrame({"image": ["none.png"] * len(paths)}))
    assert "data:image/png;base64" not in missing.report(tmp_path / "other.html").read_text(encoding="utf-8")


def test_many_classes_and_few_rows(drawn):
    few = drawn(30, 3, 0.1, 5)
    low, high = audit_labels(few.codes, few.probs, classes=range(3)).noise_rate_interval
    assert 0 <= low <= high <= 1
    many = drawn(600, 40, 0.1, 6, size=3.0)
    audit = audit_labels(many.codes, many.probs, classes=range(40))
    assert audit.transition_matrix.shape == (40, 40)


def test_import_is_lazy():
    assert selfpaced.audit_labels is audit_labels
    assert {"audit_labels", "LabelAudit", "audit_annotators"} <= set(selfpaced.__all__)


def test_functions_for_estimators_take_or_name_an_audit(tmp_path):
    rng = np.random.default_rng(0)
    margin = 3 * rng.normal(size=200)
    probs = np.column_stack([1 / (1 + np.exp(margin)), 1 / (1 + np.exp(-margin))])
    audit = selfpaced.audit_labels((rng.random(200) < probs[:, 1]).astype(int), probs)
    assert "class=" in selfpaced.report(audit, path=tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(TypeError, match=r"an audit has its own suspects\(\)"):
        selfpaced.suspects(audit)
