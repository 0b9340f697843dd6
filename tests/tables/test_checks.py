"""What checks of a table report."""

import numpy as np
import pandas as pd
import pytest

from selfpaced.tables import conflicting_duplicates, label_variants, merge_labels, notices, read_merges

RNG = np.random.default_rng(0)


def labels(**counts):
    return np.array([name for name, count in counts.items() for _ in range(count)])


def test_spellings_of_one_label():
    given = np.r_[labels(Adelie=150, Gentoo=120, adelie=3, GENTOO=40), ["Adelei", "Gento"]]
    assert label_variants(given) == {"adelie": "Adelie", "GENTOO": "Gentoo", "Adelei": "Adelie", "Gento": "Gentoo"}


def test_labels_that_are_near_and_different_are_no_variants():
    assert label_variants(labels(Iran=100, Iraq=8)) == {}
    assert label_variants(labels(male=60, female=40)) == {}
    assert label_variants(labels(grade1=60, grade2=1)) == {}  # digits number things
    assert label_variants(np.r_[["type A"] * 400, ["type B"] * 36]) == {}
    assert label_variants(np.array([1, 2, 2])) == {}
    assert label_variants(labels(Natural_world_Geology=10, Natural_world_Zoology=2)) == {}  # another word, not a typo
    assert label_variants(labels(cat=60, bat=1)) == {}


def test_notices_on_labels_name_the_option_that_merges_them():
    given = np.r_[labels(benign=200, malignant=100, Benign=7, Emperor=1), ["None"] * 12]
    frame = pd.DataFrame({"x": RNG.normal(size=given.size), "y": given})
    told = "\n".join(notices(frame, "y", given, task="classification"))
    assert "7 rows of 'Benign' and 200 of 'benign'" in told
    assert "--merge-labels Benign=benign" in told
    assert "12 rows of 'None'" in told
    assert "--merge-labels None=" in told
    assert "the class 'Emperor' has 1 row, too few to assess" in told


def test_merges_are_read_and_checked():
    known = ["a", "A", "x=1", "X=1", "-"]
    assert read_merges(["a=A", "X=1=x=1", "-="], known) == {"a": "A", "X=1": "x=1", "-": ""}
    for text, words in (("a", "FROM=TO"), ("b=A", "no label 'b'"), ("a=B", "no label 'B'")):
        with pytest.raises(ValueError, match=words):
            read_merges([text], known)
    with pytest.raises(ValueError, match="'A' is merged itself"):
        read_merges(["a=A", "A=-"], known)


@pytest.mark.parametrize(
    ("column", "merges", "expected"),
    [
        (["iran ", "Iran", None], {"iran": "Iran"}, ["Iran", "Iran", None]),
        ([1, 2, 3], {"3": "1"}, [1, 2, 1]),
        ([1.0, 2.0, np.nan], {"2": ""}, [1.0, None, None]),
        ([True, False, True], {"True": "False"}, [False, False, False]),
    ],
)
def test_labels_are_merged_in_any_kind_of_column(column, merges, expected):
    found, counts = merge_labels(pd.Series(column), merges)
    assert [None if pd.isna(value) else value for value in found] == expected
    assert sum(counts.values()) == sum(1 for a, b in zip(column, expected, strict=True) if a != b and not pd.isna(a))


def test_duplicates_with_different_labels():
    frame = pd.DataFrame({"x": np.arange(200.0), "k": ["a", "b"] * 100})
    frame.loc[[198, 199]] = frame.loc[[1, 1]].to_numpy()
    given = np.where(np.arange(200) % 2, "yes", "no")
    given[[198, 199]] = ["yes", "no"]
    assert conflicting_duplicates(frame, given) == (3, 1)
    told = notices(frame.assign(y=given), "y", given, task="classification")
    assert any(text.startswith("3 rows are equal in every column but have different labels") for text in told)
    assert conflicting_duplicates(pd.DataFrame({"x": np.arange(9)}), np.arange(9)) == (0, 0)


def test_replicated_measurements_are_no_notice():
    frame = pd.DataFrame({"x": np.repeat(np.arange(30.0), 4), "y": RNG.normal(size=120)})
    assert notices(frame, "y", frame["y"].to_numpy(), task="regression") == []


def columns_named(told):
    return [text.split("'")[1] for text in told if "possible leakage" in text]


@pytest.mark.parametrize("kind", ["text", "number", "whole", "gap"])
@pytest.mark.parametrize("sort", [False, True])
def test_a_column_that_gives_the_label_away(kind, sort):
    y = RNG.choice(["lived", "died", "unsure"], 400, p=[0.5, 0.3, 0.2])
    y = np.sort(y) if sort else y
    code = np.unique(y, return_inverse=True)[1]
    leak = {
        "text": code.astype(str).astype(object) + "x",
        "number": code + 0.05 * RNG.normal(size=400),
        "whole": code,
        "gap": np.where(code == 1, np.nan, code),
    }[kind]
    frame = pd.DataFrame({"alive": leak, "age": RNG.normal(size=400), "same": 1, "empty": None, "fate": y})
    assert columns_named(notices(frame, "fate", y, task="classification")) == ["alive"]
    assert columns_named(notices(frame, "fate", y, task="classification", exclude=["alive"])) == []


def test_a_column_that_gives_the_value_away():
    y = RNG.uniform(1, 2, 400)
    frame = pd.DataFrame({"tax": 0.2 * y + 0.001 * RNG.normal(size=400), "area": y + RNG.normal(size=400), "price": y})
    frame["empty"] = np.nan
    assert columns_named(notices(frame, "price", y, task="regression")) == ["tax"]


def test_a_rare_class_is_no_leak():
    y = np.where(np.arange(400) < 4, "rare", "usual")
    frame = pd.DataFrame({"k": RNG.choice(list("ab"), 400), "y": y})
    assert columns_named(notices(frame, "y", y, task="classification")) == []


def test_one_class_or_a_class_for_every_row_makes_no_leak():
    frame = pd.DataFrame({"k": RNG.choice(list("ab"), 200), "y": "same"})
    assert notices(frame, "y", frame["y"], task="classification") == [
        "every row has the label 'same': there is nothing to predict"
    ]
    frame["y"] = [f"label {k}" for k in range(200)]
    assert columns_named(notices(frame, "y", frame["y"], task="classification")) == []


def test_a_header_among_the_rows_is_told():
    frame = pd.DataFrame({"x": ["1", "2"] * 30, "y": ["a", "b"] * 30})
    frame.loc[30] = ["x", "y"]
    told = notices(frame, "y", frame["y"].to_numpy(), task="classification")
    assert "1 row repeats the column names: remove such rows" in told
    assert not any("first line looks like data" in one for one in told)


def test_identifiers_and_a_first_line_of_data_are_told():
    frame = pd.DataFrame({"patient": RNG.permutation(200) + 1000, "x": RNG.normal(size=200), "cost": RNG.random(200)})
    (told,) = notices(frame, "cost", frame["cost"], task="regression")
    assert told.startswith("column 'patient' has a different whole number in every row")
    assert notices(frame.rename(columns={"patient": "patient_id"}), "cost", frame["cost"], task="regression") == []
    headless = pd.DataFrame({"Adelie": ["Adelie", "Gentoo"] * 20, "39.1": RNG.normal(size=40), "Dream": ["Dream"] * 40})
    told = notices(headless, "Adelie", headless["Adelie"].to_numpy(), task="classification")
    assert told[0].startswith("the first line looks like data ('Adelie', '39.1', 'Dream', ...)")


@pytest.mark.parametrize("word", ["AVG", "Total", "N = 567", "mean"])
def test_a_summary_below_the_rows_is_told(word):
    name = [f"client {i}" for i in range(60)]
    y = np.array(["yes", "no"] * 30)
    frame = pd.DataFrame({"name": name, "x": RNG.normal(size=60), "y": y})
    assert notices(frame, "y", y, task="classification") == []
    frame.loc[58, "name"] = word
    told = notices(frame, "y", y, task="classification")
    assert len(told) == 1
    assert repr(word) in told[0]
    frame.loc[3, "name"] = word  # a word of the column
    assert notices(frame, "y", y, task="classification") == []
