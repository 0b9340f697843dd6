"""Ctrl-C, a full disk, a reader that goes away: no half file, a clear word."""

import os
import re
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from selfpaced import SelfPacedLogisticRegression
from selfpaced.cli.output import RECORD


def left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name != RECORD)


@pytest.mark.parametrize("options", [[], ["--memory", "100MB", "--scratch", "."]], ids=["whole", "in pieces"])
def test_ctrl_c_in_the_middle_of_a_run(folder, options):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60_000, 20)).round(3)).add_prefix("x")
    frame["y"] = (frame["x0"] + rng.normal(size=len(frame)) > 0).astype(int)
    frame.to_csv("big.csv", index=False)
    command = [sys.executable, "-m", "selfpaced", "fit", "big.csv", "--target", "y", "--out", "deep/run", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not list(folder.glob("deep/run/.selfpaced-*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "interrupted; no incomplete file was left" in err
    assert left(folder) == ["big.csv"]


def test_a_second_interrupt_does_not_change_the_exit_code():
    """Some libraries send the signal again once they have stopped."""
    script = """
import signal, sys
from selfpaced.cli import app, inspect as command
from selfpaced.cli.console import Console
def run(args, console):
    signal.raise_signal(signal.SIGINT)
fail = Console.fail
def again(self, *words):
    signal.raise_signal(signal.SIGINT)
    return fail(self, *words)
command.run, Console.fail = run, again
sys.argv = ["selfpaced", "inspect"]
sys.exit(app.main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_that_is_swallowed_still_ends_the_command(selfpaced, folder, monkeypatch, number, code):
    # No estimator of this library does that, but others do.
    whole = SelfPacedLogisticRegression.fit

    def interrupted(self, X, y):
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            return whole(self, X, y)
        raise AssertionError("the signal did not arrive")

    monkeypatch.setattr(SelfPacedLogisticRegression, "fit", interrupted)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    got, _, err = selfpaced("fit")
    assert got == code
    assert "interrupted" in err
    assert left(folder) == []
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_an_interrupt_that_comes_out_as_another_error(selfpaced, folder, monkeypatch):
    def interrupted(self, X, y):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ValueError("not a valid buffer") from None

    monkeypatch.setattr(SelfPacedLogisticRegression, "fit", interrupted)
    assert selfpaced("fit")[0] == 130


def test_an_interrupt_while_files_change_names_waits(selfpaced, folder, monkeypatch):
    replace, calls = os.replace, []

    def interrupted(source, target):
        if target.parent.name == "run" and target.name != RECORD:
            calls.append(target)
            signal.raise_signal(signal.SIGINT)
        replace(source, target)

    monkeypatch.setattr("os.replace", interrupted)
    selfpaced("fit", "--no-report")
    assert len(calls) == 3
    assert left(folder) == ["run", "run/metrics.json", "run/model.skops", "run/suspects.csv"]


def test_an_old_run_survives_a_failed_one(selfpaced, folder, monkeypatch):
    assert selfpaced("fit", "--no-report", "-q")[0] == 0
    before = {path.name: path.read_bytes() for path in (folder / "run").iterdir()}

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("selfpaced.persistence.save", interrupted)
    assert selfpaced("fit", "--no-report", "-q")[0] == 130
    assert {path.name: path.read_bytes() for path in (folder / "run").iterdir()} == before


@pytest.fixture
def small_files():
    """No file may grow beyond 8 kB: what a full disk does to a writer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("words", [["fit", "--no-report"], ["clean"]], ids=lambda words: words[0])
def test_a_full_disk_is_told_and_leaves_nothing(selfpaced, folder, small_files, words):
    small_files()
    code, _, err = selfpaced(*words, "--quiet")
    assert code == 5
    assert re.search(r"no space left on the disk to write (run|shelter\.clean\.csv); no incomplete", err)
    assert "Traceback" not in err
    assert left(folder) == []


def test_a_full_scratch_disk_is_named(selfpaced, folder, small_files):
    np.savetxt("t.csv", np.random.default_rng(0).normal(size=(900, 9)), delimiter=",")
    (folder / "scratch").mkdir()
    small_files()
    words = ["fit", "t.csv", "--no-header", "--target", "column_9", "--memory", "100MB", "--scratch", "scratch"]
    code, _, err = selfpaced(*words, "--quiet")
    assert code == 5
    assert "no space left on the disk to write scratch; no incomplete" in err
    assert left(folder) == ["scratch", "t.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_behind_standard_output(folder):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "selfpaced", "inspect"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 5
    assert "no space left on the disk" in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_reader_that_goes_away(folder):
    command = f"'{sys.executable}' -m selfpaced inspect | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("600 rows, ")


def test_a_folder_that_cannot_be_written(selfpaced, folder):
    (folder / "file").write_text("x")
    code, _, err = selfpaced("fit", "--out", "file")
    assert code == 2
    assert "--out must be a folder" in err
    code, _, err = selfpaced("fit", "--out", "file/run")
    assert code in (2, 5)
    assert "Traceback" not in err
