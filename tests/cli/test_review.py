"""``selfpaced review`` from the command line: an address, a decision, Ctrl-C."""

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pandas as pd
import pytest

from selfpaced.cli.review import DecisionFile


def test_it_serves_saves_and_ends_cleanly(as_json, shop_csv):
    pytest.importorskip("jinja2", reason='the page needs the extra "report"')
    as_json("fit", shop_csv, "--target", "will buy", "--model", "logistic")
    command = [sys.executable, "-m", "selfpaced", "review", "run", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        base, token = process.stdout.readline().strip().split("/?token=")
        row = str(pd.read_csv("run/suspects.csv")["row"][0])
        body = json.dumps({"row": row, "decision": "keep"}).encode()
        headers = {"X-Token": token, "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{base}/decisions", body, headers)) as answer:
            assert json.load(answer) == {row: "keep"}
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert err == ""
    assert "1 of " in out
    assert f"selfpaced clean {shop_csv} --decisions run/decisions.csv" in out
    made = pd.read_csv("run/decisions.csv")
    assert made["decision"].tolist() == ["keep"]
    assert sorted(p.name for p in Path("run").iterdir() if p.name.startswith(".")) == [".selfpaced.json"]


def test_a_folder_without_a_run_is_refused(selfpaced, folder):
    code, _, err = selfpaced("review", "nowhere", "--no-browser")
    assert code == 2
    assert "run selfpaced fit --out 'nowhere' first" in err


def test_a_run_without_suspects_has_nothing_to_decide(selfpaced, folder):
    Path("run").mkdir()
    Path("run/report.html").write_text("<!doctype html>")
    Path("run/suspects.csv").write_text("row,given,expected,decision,fingerprint\n")
    code, _, err = selfpaced("review", "run", "--no-browser")
    assert code == 2
    assert "there is nothing to decide: the list in 'run' is empty" in err


@pytest.fixture
def suspects(folder):
    Path("run").mkdir()
    Path("run/suspects.csv").write_text("row,line,given,expected,target,fingerprint\n1,2,a,b,y,f1\n5,6,b,a,y,f5\n")
    return Path("run")


def test_two_decisions_at_once_are_both_kept(suspects, monkeypatch):
    file = DecisionFile(suspects)
    other, read = threading.Thread(target=file.decide, args=("5", "drop")), file.read

    def slowly():
        found = read()
        if other.ident is None:
            other.start()
            other.join(0.5)  # it would be through by now, and its decision lost, did it not wait
        return found

    monkeypatch.setattr(file, "read", slowly)
    file.decide("1", "keep")
    other.join()
    assert DecisionFile(suspects).decisions() == {"1": "keep", "5": "drop"}


def test_a_run_that_was_written_anew_is_not_decided_about(suspects):
    review = DecisionFile(suspects)
    again = Path("run/again.csv")
    again.write_text(Path("run/suspects.csv").read_text().replace("f1", "g1"))
    again.replace("run/suspects.csv")
    with pytest.raises(ValueError, match="the run was repeated since this review was started"):
        review.decide("1", "keep")
    assert not Path("run/decisions.csv").exists()
