"""What is found before any model is fitted."""

import numpy as np
import pandas as pd
import pytest

from selfpaced.tables import few_of_a_kind, label_variants, notices, unlike_copies

RNG = np.random.default_rng(0)


def labels(**counts):
    return np.array([name for name, count in counts.items() for _ in range(count)])


def test_spellings_of_one_label():
    odd = ["adelie"] * 3 + ["Adelie "] * 2 + ["Adelei", "Adelies", "Gento", "gen too"]
    given = np.r_[labels(Adelie=150, Gentoo=120), odd]
    assert label_variants(given) == {
        "adelie": ("Adelie", "case"),
        "Adelie ": ("Adelie", "spaces"),
        "Adelei": ("Adelie", "one slip"),
        "Adelies": ("Adelie", "one slip"),
        "Gento": ("Gentoo", "one slip"),
        "gen too": ("Gentoo", "one slip"),
    }


def test_words_that_are_near_and_different_stay():
    assert label_variants(labels(cat=50, cut=3, yes=9, no=9)) == {}  # too short
    assert label_variants(labels(male=60, female=40)) == {}  # two letters apart
    assert label_variants(labels(grade1=60, grade2=3)) == {}  # digits number things
    assert label_variants(labels(Adelie=50, Adelia=30)) == {}  # both frequent
    assert label_variants(np.array([1, 2, 2])) == {}


def test_few_of_a_kind():
    assert few_of_a_kind(np.array(list("aaabbc"))).tolist() == [3, 4, 5]


def test_copies_with_another_label():
    frame = pd.DataFrame({"x": np.arange(200.0), "k": ["a", "b"] * 100})
    frame.loc[[198, 199]] = frame.loc[[1, 1]].to_numpy()
    given = np.where(np.arange(200) % 2, "yes", "no")
    given[199] = "no"
    given[198] = "yes"
    found, sentence = unlike_copies(frame, given)
    assert [(one.row, one.expected, round(one.probability, 2)) for one in found] == [(199, "yes", 0.67)]
    assert sentence.startswith("3 rows are equal in every column and differ in the target (1 groups)")


def test_coarse_columns_make_no_suspects():
    frame = pd.DataFrame({"k": RNG.choice(list("abc"), 300)})
    found, sentence = unlike_copies(frame, RNG.choice(["yes", "no"], 300))
    assert found == []
    assert "too coarse to tell them apart" in sentence
    assert unlike_copies(pd.DataFrame({"x": np.arange(9)}), np.arange(9)) == ([], "")


@pytest.mark.parametrize("kind", ["text", "number"])
def test_a_column_that_gives_the_label_away(kind):
    y = RNG.choice(["lived", "died"], 400)
    leak = np.where(y == "lived", "yes", "no") if kind == "text" else (y == "lived") + 0.1 * RNG.normal(size=400)
    frame = pd.DataFrame({"alive": leak, "age": RNG.normal(size=400), "fate": y})
    assert notices(frame, "fate", y, task="classification") == [
        "column 'alive' alone foretells 'fate' (100.0%): leave it out? (--exclude 'alive')"
    ]
    assert notices(frame, "fate", y, task="classification", exclude=["alive"]) == []


def test_a_column_that_gives_the_value_away():
    y = RNG.uniform(1, 2, 400)
    frame = pd.DataFrame({"tax": 0.2 * y + 0.001 * RNG.normal(size=400), "area": y + RNG.normal(size=400), "price": y})
    told = notices(frame, "price", y, task="regression")
    assert [text.split(" (")[0] for text in told] == ["column 'tax' alone foretells 'price'"]


def test_a_rare_class_is_no_column_that_gives_it_away():
    y = np.where(np.arange(400) < 4, "rare", "usual")
    frame = pd.DataFrame({"k": RNG.choice(list("ab"), 400), "y": y})
    assert notices(frame, "y", y, task="classification") == []


def test_header_ids_and_skew():
    y = np.exp(RNG.normal(0, 2, size=200))
    frame = pd.DataFrame({"patient": RNG.permutation(200) + 1000, "x": RNG.normal(size=200), "cost": y})
    told = notices(frame, "cost", y, task="regression")
    assert told[0].startswith("column 'patient' has another whole number in every row: is it an id?")
    assert told[1].startswith("the values of 'cost' are skewed (half are below")
    headless = pd.DataFrame({"Adelie": ["Adelie", "Gentoo"] * 20, "39.1": RNG.normal(size=40), "Dream": ["Dream"] * 40})
    told = notices(headless, "Adelie", headless["Adelie"].to_numpy(), task="classification")
    assert told[0].startswith("the first line looks like data ('Adelie', '39.1', 'Dream', ...)")
