"""What the terminal says about a fit."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from selfpaced.cli.console import Console
from selfpaced.formatting import number, percent, rate_in_words


@pytest.mark.parametrize(
    ("rate", "interval", "shown", "hidden"),
    [
        (0.2, (0.1, 0.3), ["about 20 %", "10 %", "30 %"], ["perhaps", "none"]),
        (0.32, (0.0, 0.57), ["perhaps 32 %", "none", "57 %"], ["about"]),
        (0.0, (0.0, 0.024), ["none", "2.4 %"], ["about"]),
        (float("nan"), (0.0, 0.57), ["0 %", "57 %"], ["about", "nan", "none"]),
        (0.2, None, ["about 20 %"], ["between", "to"]),
    ],
)
def test_a_rate_is_claimed_no_further_than_its_interval(rate, interval, shown, hidden):
    said = rate_in_words(rate, interval)
    assert all(part in said for part in shown)
    assert not any(part in said.split() for part in hidden)


@pytest.mark.parametrize("value", [1610800.0, 23456.7, 0.00123, 12.5, 0.0, -98765432.0])
def test_numbers_have_no_exponent(value):
    assert "e" not in number(value, 5)
    assert float(number(value, 5).replace(",", "")) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("table", ["shop", "price"])
def test_the_terminal_is_eighty_columns_wide_and_names_the_next_step(selfpaced, shop_csv, price_tsv, table):
    path, target = (shop_csv, "will buy") if table == "shop" else (price_tsv[0], "price")
    code, out, _ = selfpaced("fit", path, "--target", target, "--no-report")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert out.splitlines()[-1] == "Next: fill in the column decision of run/suspects.csv"
    assert re.search(r"Time: \S+ s \(reading \d+ %, .*fitting \d+ %, .*writing \d+ %\)", " ".join(out.split()))
    assert out.count("Typical error in price: ") == (table == "price")  # one figure of this name
    assert ("Held-out accuracy on the given labels: " in out) == (table == "shop")
    if table == "price":
        assert re.search(r"Typical error in price: [\d,.]+ ", out)
        assert "e+0" not in out


@pytest.mark.parametrize("slow", [0.02, 60.0])
def test_only_slow_steps_have_a_bar(capfd, monkeypatch, slow):
    monkeypatch.setattr("selfpaced.cli.console.SLOW", slow)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    console = Console()
    with console.progress(), console.step("fitting"):
        time.sleep(0.5)
    assert ("fitting" in capfd.readouterr().err) == (slow < 1)
    assert console.timing() == f"Time: {console.seconds['fitting']:.1f} s (fitting 100 %)."


def test_both_lists_are_counted_and_shown_apart(selfpaced, shop_run, shop_csv):
    facts = json.loads((shop_run / "metrics.json").read_text())
    out = selfpaced("fit", shop_csv, "--target", "will buy", "--model", "logistic", "--no-report", "--force")[1]
    likely, look = facts["likely_errors"], facts["worth_a_look"]
    said = " ".join(out.split())
    assert re.match(rf"{likely} likely errors \(about [\d.]+ % of them are wrong\) and {look} rows? worth a look", said)
    assert "Likely errors" in out
    assert ("Rows worth a look" in out) == (look > 0)
    assert "Not used" not in out
    assert facts["not_used"] == []


def test_columns_that_are_not_used_are_named(selfpaced, as_json, folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"order": range(200), "size": rng.normal(size=200), "note": [""] * 200})
    frame.assign(kind=np.where(frame["size"] > 0, "a", "b")).to_csv("orders.csv", index=False)
    facts = as_json("fit", "orders.csv", "--target", "kind", "--no-report")
    assert facts["not_used"] == [
        {"column": "order", "reason": "identifier"},
        {"column": "note", "reason": "empty"},
    ]
    out = selfpaced("fit", "orders.csv", "--target", "kind", "--no-report", "--force")[1]
    assert "Not used: order (identifier), note (empty)." in " ".join(out.split())


def test_a_run_without_suspects_continues_with_predictions(selfpaced, folder):
    rows = [f"{k % 7},{k % 5},{'yes' if k % 7 > 3 else 'no'}" for k in range(200)]
    (folder / "clean.csv").write_text("\n".join(["a,b,label", *rows]) + "\n", encoding="utf-8")
    code, out, err = selfpaced("fit", "clean.csv", "--target", "label", "--no-report", "--model", "logistic")
    assert code == 0, err
    assert out.startswith("\nNo likely errors among 200 rows: no row is more probably wrong than right.\n")
    assert "Rows worth a look" not in out
    assert out.splitlines()[-1] == "Next: selfpaced predict run/model.skops NEW.csv"


@pytest.mark.parametrize("words", [(), ("--threshold", "0.9")], ids=["default", "strict"])
def test_terminal_metrics_and_page_say_the_same(selfpaced, shop_csv, words):
    pytest.importorskip("jinja2", reason="the report needs Jinja2")
    code, out, err = selfpaced("fit", shop_csv, "--target", "will buy", "--model", "logistic", *words)
    assert code == 0, err
    (lead,) = re.findall(r'id="sentence">([^<]*)<', Path("run/report.html").read_text(encoding="utf-8"))
    lead = lead.replace("\N{NO-BREAK SPACE}", " ")
    facts = json.loads(Path("run/metrics.json").read_text())
    listed = pd.read_csv("run/suspects.csv")
    likely = listed[listed["level"] == "likely error"]
    said = f"{len(likely)} likely errors (about {percent(likely['noise_probability'].mean())} of them are wrong) and "
    assert lead.startswith(said)
    assert " ".join(out.split()).startswith(said)
    assert facts["likely_errors"] == len(likely)
    assert facts["expected_precision"]["likely_errors"] == pytest.approx(likely["noise_probability"].mean())
    assert facts["worth_a_look"] == len(listed) - len(likely)


def test_a_long_reason_keeps_its_beginning(capsys):
    Console().table(["line", "because of"], [["1", "tradename_or_generic_" * 8]], left=(1,))
    last = capsys.readouterr().out.splitlines()[-1]
    assert "tradename_or_generic_" in last
    assert last.rstrip().endswith("…")
    assert len(last) <= 80
