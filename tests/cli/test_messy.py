"""Tables as people keep them: texts alone, small classes, values on a log scale."""

import json

import numpy as np
import pandas as pd

from selfpaced.persistence import load

TOPICS = {
    "boats": [
        "the sailor tied the boat",
        "waves broke over the bow",
        "we sailed past the harbour",
        "a calm day at sea",
    ],
    "cars": [
        "the engine would not start",
        "a wheel came off the car",
        "traffic on the motorway",
        "new tyres were fitted",
    ],
}


def letters(n, seed=0):
    """Texts on two topics, one in twenty with the label of the other."""
    rng = np.random.default_rng(seed)
    label = rng.choice(list(TOPICS), n)
    text = [" ".join(rng.choice(TOPICS[one], 2, replace=False)) + f" on day {rng.integers(10**6)}" for one in label]
    wrong = np.arange(n) % 20 == 3
    given = np.where(wrong, np.where(label == "boats", "cars", "boats"), label)
    return pd.DataFrame({"id": np.arange(n), "text": text, "label": given}), wrong


def test_a_table_of_text_only(selfpaced, folder):
    table, wrong = letters(400)
    table.to_csv("letters.csv", index=False)
    code, _, err = selfpaced("fit", "letters.csv", "--target", "label")
    assert code == 0, err
    suspects = pd.read_csv("run/suspects.csv")
    assert np.isin(np.flatnonzero(wrong), suspects["row"]).mean() >= 0.9
    assert np.mean(wrong[suspects["row"]]) > 0.6
    measured = json.loads((folder / "run/metrics.json").read_text())
    assert measured["columns"]["text"] == ["text"]
    assert measured["not_used"] == [{"column": "id", "reason": "identifier"}]
    assert set(load("run/model.skops").predict(table.iloc[:9])) <= set(TOPICS)


def test_rows_of_small_classes_are_listed_apart(selfpaced, folder):
    rng = np.random.default_rng(0)
    x = np.r_[rng.normal(-3, 1, 150), rng.normal(3, 1, 150), rng.normal(-3, 1, 4)]
    table = pd.DataFrame({"x": x.round(3), "kind": ["Cat"] * 150 + ["Dog"] * 150 + ["Hedgehog"] * 4})
    table.to_csv("pets.csv", index=False)
    assert selfpaced("fit", "pets.csv", "--target", "kind", "--threshold", "0.01", "--no-report")[0] == 0
    suspects = pd.read_csv("run/suspects.csv")
    apart = suspects["level"] == "too few to assess"
    assert suspects["row"][apart].tolist() == [300, 301, 302, 303]
    assert suspects["expected"][apart].isna().all()
    assert not (suspects["given"][~apart] == "Hedgehog").any()
    assert json.loads((folder / "run/metrics.json").read_text())["too_few_to_assess"] == {"Hedgehog": 4}


def test_values_that_grow_are_fitted_on_a_log_scale_and_told_in_their_unit(selfpaced, folder):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 4, 300)
    price = np.exp(3 + 2 * x + 0.1 * rng.normal(size=300))
    wrong = np.arange(300) % 30 == 7
    price[wrong] *= 10
    pd.DataFrame({"x": x.round(4), "price": [f"${value:,.2f}" for value in price]}).to_csv("t.csv", index=False)
    code, out, err = selfpaced("fit", "t.csv", "--target", "price")
    assert code == 0, err
    assert "Typical error in price:" in " ".join(out.split())
    measured = json.loads((folder / "run/metrics.json").read_text())
    assert measured["log_scale"]
    suspects = pd.read_csv("run/suspects.csv")
    likely = suspects[suspects["level"] == "likely error"]
    assert set(likely["row"]) >= set(np.flatnonzero(wrong))
    np.testing.assert_allclose(likely["given"], price[likely["row"]], rtol=1e-3)
    planted = likely[likely["row"].isin(np.flatnonzero(wrong))]
    assert np.median(planted["given"] / planted["expected"]) > 7
    predicted = load("run/model.skops").predict(pd.DataFrame({"x": [1.0]}))[0]
    assert 0.7 < predicted / np.exp(5) < 1.4


def test_the_reason_for_a_text_is_no_nameless_feature(selfpaced, folder):
    rng = np.random.default_rng(0)
    words = {"good": ["lovely", "fresh", "kind", "quick"], "bad": ["rude", "stale", "slow", "cold"]}
    kind = rng.choice(["good", "bad"], 300)
    text = [
        " ".join([*rng.choice(words[one], 3), *rng.choice(["the", "waiter", "came", "with", "our", "soup"], 6)])
        for one in kind
    ]
    given = np.where(np.arange(300) % 15 == 3, np.where(kind == "good", "bad", "good"), kind)
    pd.DataFrame({"id": np.arange(300), "review": text, "label": given}).to_csv("reviews.csv", index=False)
    assert selfpaced("fit", "reviews.csv", "--target", "label", "--no-report")[0] == 0
    found = pd.read_csv("run/suspects.csv")
    assert len(found) >= 15
    assert found["against"].isna().all()
    assert found["why"].str.contains("similar rows are").mean() > 0.5
