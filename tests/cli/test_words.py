"""What the command line says about a share of wrong rows and about scores."""

from __future__ import annotations

import re

import pytest

from selfpaced.cli.telling import _in_words, _score, share_in_words


@pytest.mark.parametrize(
    ("rate", "interval", "shown", "hidden"),
    [
        (0.2, (0.1, 0.3), ["about 20.0%", "10.0%", "30.0%"], ["perhaps", "none"]),
        (0.32, (0.0, 0.57), ["perhaps 32.0%", "0.0%", "57.0%"], ["about"]),
        (0.0, (0.0, 0.024), ["none", "2.4%"], ["about"]),
        (float("nan"), (0.0, 0.57), ["0.0%", "57.0%"], ["about", "nan", "none"]),
        (0.2, None, ["about 20.0%"], ["between"]),
    ],
)
def test_a_share_is_claimed_no_further_than_its_interval(rate, interval, shown, hidden):
    said = share_in_words(rate, interval)
    assert all(part in said for part in shown)
    assert not any(part in said for part in hidden)


def test_a_log_likelihood_is_told_as_a_probability():
    assert _score({"score": -0.693147, "spread": 0.02}) == "50.0% +- 1.0%"
    assert _score({"score": 0.91, "spread": 0.01}) == "91.0% +- 1.0%"
    assert _score({"score": 0.91, "spread": None}) == "91.0%"
    assert _score({"score": None, "spread": None}) == "not compared"


def test_a_candidate_is_told_by_what_it_trusts():
    assert _in_words({"label": "tukey", "lam": 4.7, "mean_weight": 0.9}) == "lenient: trusts 90 % of the rows"
    assert _in_words({"label": "plain, C=0.1", "lam": None, "mean_weight": 1.0}) == "plain, C=0.1"


@pytest.mark.parametrize("table", ["shop", "price"])
def test_the_terminal_is_eighty_columns_wide_and_says_what_is_next(selfpaced, shop_csv, price_tsv, table):
    path, target = (shop_csv, "will buy") if table == "shop" else (price_tsv[0], "price")
    code, out, _ = selfpaced("fit", path, "--target", target, "--no-report")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert out.splitlines()[-1] == "Next: fill in the column decision of run/suspects.csv"
    assert ("Typical error: " in out) == (table == "price")
    if table == "price":
        assert "minus the robust loss" not in out
        assert re.search(r"Typical error: [\d,.e+]+ price", out)


def test_a_run_without_suspects_goes_on_to_predictions(selfpaced, folder):
    rows = [f"{k % 7},{k % 5},{'yes' if k % 7 > 3 else 'no'}" for k in range(200)]
    (folder / "clean.csv").write_text("\n".join(["a,b,label", *rows]) + "\n", encoding="utf-8")
    code, out, err = selfpaced("fit", "clean.csv", "--target", "label", "--no-report", "--model", "logistic")
    assert code == 0, err
    assert "No likely errors." in out
    assert "worth a look" not in out
    assert out.splitlines()[-1] == "Next: selfpaced predict run/model.skops NEW.csv"
