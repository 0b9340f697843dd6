"""``--model auto``: which model is taken, by its predictions of held-out rows."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from selfpaced import TableEncoder
from selfpaced.cli.models import FLEXIBLE, LINEAR, RIDGE, Contender, ModelChoice, choose
from selfpaced.datasets import flip_symmetric
from selfpaced.persistence import load


def chosen(frame, labels, exclude=(), task="classification"):
    def encode(kind, rows):
        encoder = TableEncoder(kind, exclude=exclude)
        return encoder.fit_transform(frame.iloc[rows]), encoder.categorical_features_

    return choose(encode, np.asarray(labels), task, seed=0, least=frame.shape[1])


def ring(n=500, noise=0.1, seed=0):
    """Inside a circle or outside: nothing for a line. Gives the table and which labels are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    y = np.where(np.hypot(*X.T) < 0.8, "in", "out")
    noisy, wrong = flip_symmetric(y, noise, random_state=seed)
    return pd.DataFrame({"east": X[:, 0], "north": X[:, 1], "where": noisy}), wrong


def line(n=600, noise=0.2, seed=0):
    """Two sides of a line."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    noisy, _ = flip_symmetric(np.where(X.sum(axis=1) > 0, "a", "b"), noise, random_state=seed)
    return pd.DataFrame(X, columns=["x", "y", "z"]), noisy


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.25])
def test_a_curved_border_is_for_boosting_and_a_line_is_not(noise):
    table, _ = ring(noise=noise)
    curved = chosen(table, table["where"], ["where"])
    assert curved.model == FLEXIBLE
    assert curved.contenders[1].figure > curved.contenders[0].figure
    straight = chosen(*line(noise=noise))
    assert straight.model == LINEAR
    told = straight.sentence("y")
    assert told.startswith("Logistic regression is used: the mean log-likelihood of 600 held-out labels is -0.")


def test_labels_at_random_are_no_reason_for_boosting():
    frame, labels = line()
    for seed in range(3):
        drawn = np.random.default_rng(seed).permutation(labels)
        assert chosen(frame, drawn).model == LINEAR


def test_a_class_of_two_rows_takes_no_part_and_few_rows_keep_the_line():
    frame, labels = line()
    labels = labels.astype("U4")
    labels[:2] = "rare"
    assert chosen(frame, labels).rows == 598
    few = chosen(frame[:4], ["a", "b", "b", "b"])
    assert (few.model, few.rows) == (LINEAR, 0)
    assert "too few rows" in few.sentence("y")


def test_only_a_sample_of_many_rows_is_asked(monkeypatch):
    monkeypatch.setattr("selfpaced.cli.models.ROWS", 300)
    frame, labels = line()
    choice = chosen(frame, labels)
    assert choice.rows == 300
    assert chosen(frame, labels) == choice


def test_values_are_compared_in_their_own_unit(monkeypatch):
    monkeypatch.setattr("selfpaced.cli.models.HELD_OUT_ONCE", 200)
    rng = np.random.default_rng(0)
    x, u = rng.uniform(0, 3, 300), rng.uniform(-1, 1, 300)
    frame = pd.DataFrame({"x": x, "u": u})
    noise = rng.normal(size=300)
    straight = chosen(frame, 5 + 2 * x + 0.3 * noise, task="regression")
    assert (straight.model, straight.log) == ("ridge", False)
    price = np.exp(3 + 2 * x + 0.05 * noise)
    price[rng.choice(300, 9, replace=False)] *= 10
    grown = chosen(frame, price, task="regression")
    assert (grown.model, grown.log) == ("ridge", True)
    bent = chosen(frame, 100 * np.sign(np.sin(9 * u)) + noise, task="regression")
    assert bent.model == FLEXIBLE
    words = r"[\d.,]+ with ridge regression on a log scale, [\d.,]+ with boosting( on a log scale)?\."
    assert re.fullmatch(f"Typical error in price: {words}", grown.sentence("price"))
    assert {c["model"] for c in grown.data["compared"]} == {"ridge", FLEXIBLE}


def test_the_choice_is_told_kept_and_shown(selfpaced, folder):
    table, wrong = ring()
    table.to_csv("ring.csv", index=False)
    code, out, err = selfpaced("fit", "ring.csv", "--target", "where")
    assert code == 0, err
    sentence = re.search(
        r"Boosting is used: the mean log-likelihood of 500 held-out labels is -0\.\d+ with boosting, "
        r"-0\.\d+ with logistic regression\.",
        " ".join(out.split()),
    )
    assert sentence
    metrics = json.loads(Path("run/metrics.json").read_text())
    assert metrics["model"] == FLEXIBLE
    assert metrics["model_choice"].startswith(sentence[0])
    assert sentence[0] in Path("run/report.html").read_text()
    suspects = pd.read_csv("run/suspects.csv")
    assert wrong[suspects["row"][suspects["level"] == "likely error"]].mean() > 0.7
    plain = pd.DataFrame(table).drop(columns="where")
    truth = np.where(np.hypot(plain["east"], plain["north"]) < 0.8, "in", "out")
    assert np.mean(load("run/model.skops").predict(table) == truth) > 0.9


def test_a_model_that_is_named_is_not_put_to_the_test(as_json, shop_csv):
    result = as_json("fit", shop_csv, "--target", "will buy", "--model", "logistic", "--no-report")
    assert (result["model"], result["model_choice"]) == (LINEAR, None)


@pytest.mark.parametrize("ridge", [148.0, 160.0])
def test_a_model_with_a_slightly_larger_error_is_explained(ridge):
    compared = (Contender(RIDGE, True, ridge), Contender(FLEXIBLE, True, 149.0))
    told = ModelChoice(FLEXIBLE, True, compared, rows=900).sentence("paid")
    assert told.startswith(
        f"Typical error in paid: 149 with boosting on a log scale, {ridge:.0f} with ridge regression"
    )
    assert ("boosting is used unless ridge regression is better by 5 %" in told) == (ridge < 149)
