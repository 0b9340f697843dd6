"""What a run may replace, what a killed one leaves behind, two runs into one folder."""

import json
import os
import signal
import subprocess
import sys

import pytest

from selfpaced.cli.console import Console
from selfpaced.cli.errors import UsageError
from selfpaced.cli.ledger import LEDGER
from selfpaced.cli.output import staged

NAMES = ["a.txt", "b.txt"]
KILLED = """
import os, signal, sys
from pathlib import Path
from selfpaced.cli import output
from selfpaced.cli.console import Console
moved, at = [], int(sys.argv[1])
replace = os.replace
def killing(source, target):
    if len(moved) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    moved.append(target)
    replace(source, target)
with output.staged(Path("run"), ["a.txt", "b.txt"], Console()) as stage:
    for name in ("a.txt", "b.txt"):
        (stage / name).write_text("killed")
    output.os.replace = killing
"""


def write(folder, text, **options):
    with staged(folder, NAMES, Console(), **options) as stage:
        for name in NAMES:
            (stage / name).write_text(text)


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.name != LEDGER}


def test_a_run_replaces_what_a_run_has_written(folder):
    write(folder / "run", "first")
    write(folder / "run", "second")
    assert content(folder / "run") == {"a.txt": "second", "b.txt": "second"}


def test_what_somebody_has_changed_since_stays(folder):
    write(folder / "run", "first")
    (folder / "run/b.txt").write_text("my remarks")
    with pytest.raises(UsageError, match=r"b\.txt' exists and was not written by selfpaced, or was changed since"):
        write(folder / "run", "second")
    assert content(folder / "run") == {"a.txt": "first", "b.txt": "my remarks"}
    write(folder / "run", "second", force=True)
    assert content(folder / "run") == {"a.txt": "second", "b.txt": "second"}


def test_what_appears_meanwhile_stays(folder):
    def meanwhile():
        with staged(folder, NAMES, Console()) as stage:
            (stage / "a.txt").write_text("ours")
            (folder / "a.txt").write_text("theirs")

    with pytest.raises(UsageError, match="exists and was not written"):
        meanwhile()
    assert content(folder) == {"a.txt": "theirs"}


@pytest.mark.parametrize("ledger", ["", "[]", '{"files": 3}', '{"files": {"a.txt": 3}}', "[" * 100_000, "\0"])
def test_an_odd_ledger_is_none(folder, ledger):
    (folder / "a.txt").write_text("precious")
    (folder / LEDGER).write_text(ledger)
    with pytest.raises(UsageError, match="exists and was not written"):
        write(folder, "new")
    assert (folder / "a.txt").read_text() == "precious"


def test_a_pipe_in_the_place_of_a_file_is_not_read(folder):
    os.mkfifo("a.txt")
    with pytest.raises(UsageError, match="exists and was not written"):
        write(folder, "new")


@pytest.mark.parametrize("moved", [0, 1])
def test_a_run_that_is_killed_leaves_whole_files_and_stops_nobody(folder, moved):
    write(folder / "run", "old")
    died = subprocess.run([sys.executable, "-c", KILLED, str(moved + 1)], check=False)  # the ledger is replaced first
    assert died.returncode == -signal.SIGKILL
    left = {path.name: path.read_text() for path in (folder / "run").iterdir() if path.is_file()}
    left.pop(LEDGER)
    assert left == {"a.txt": ("old", "killed")[moved], "b.txt": "old"}
    assert [path for path in (folder / "run").iterdir() if path.is_dir()]
    write(folder / "run", "next")
    assert content(folder / "run") == {"a.txt": "next", "b.txt": "next"}


def test_two_runs_into_one_folder_leave_the_files_of_one(folder):
    with staged(folder / "run", NAMES, Console()) as first:
        (first / "a.txt").write_text("first")
        with staged(folder / "run", NAMES, Console()) as second:  # it does not take the other one for abandoned
            assert first.exists()
            for name in NAMES:
                (second / name).write_text("second")
        (first / "b.txt").write_text("first")
    assert content(folder / "run") == {"a.txt": "first", "b.txt": "first"}
    assert json.loads((folder / "run" / LEDGER).read_text())["files"].keys() == set(NAMES)


def test_one_run_waits_while_another_moves_its_files(folder):
    script = "from pathlib import Path\nfrom selfpaced.cli.ledger import locked\nimport sys\n"
    script += "with locked(Path('.')):\n    print('mine', flush=True)\n    sys.stdin.read()\n"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "mine\n"
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as second:
            os.set_blocking(second.stdout.fileno(), False)
            with pytest.raises(subprocess.TimeoutExpired):
                second.wait(timeout=1)
            assert not second.stdout.readline()
            first.stdin.close()
            os.set_blocking(second.stdout.fileno(), True)
            assert second.stdout.readline() == "mine\n"
            second.stdin.close()
