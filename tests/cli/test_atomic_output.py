"""What a run may replace, what a killed one leaves behind, two runs into one folder."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from selfpaced.cli.atomic_output import DECISIONS, RECORD, remove_abandoned, settle, staged
from selfpaced.cli.console import Console
from selfpaced.cli.errors import UsageError

NAMES = ["a.txt", "b.txt"]
KILLED = """
import os, signal, sys
from pathlib import Path
from selfpaced.cli import atomic_output
from selfpaced.cli.console import Console
moved, at = [], int(sys.argv[1])
replace = os.replace
def killing(source, target):
    if len(moved) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    moved.append(target)
    replace(source, target)
with atomic_output.staged(Path("run"), ["a.txt", "b.txt"], Console()) as stage:
    for name in ("a.txt", "b.txt"):
        (stage / name).write_text("killed")
    atomic_output.os.replace = killing
"""


def write(folder, text, **options):
    with staged(folder, NAMES, Console(), **options) as stage:
        for name in NAMES:
            (stage / name).write_text(text)


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.name != RECORD}


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
    (folder / RECORD).write_text(ledger)
    with pytest.raises(UsageError, match="exists and was not written"):
        write(folder, "new")
    assert (folder / "a.txt").read_text() == "precious"


def test_a_pipe_in_the_place_of_a_file_is_not_read(folder):
    os.mkfifo("a.txt")
    with pytest.raises(UsageError, match="exists and was not written"):
        write(folder, "new")


def killed(moves):
    """A run that is killed after so many files have changed names; the first is the ledger."""
    died = subprocess.run([sys.executable, "-c", KILLED, str(moves)], check=False)
    assert died.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("moves", "left"), [(0, "old"), (1, "killed"), (2, "killed"), (3, "killed")])
def test_after_a_kill_all_files_are_of_one_run(folder, moves, left):
    write(folder / "run", "old")
    killed(moves)
    assert [path for path in (folder / "run").iterdir() if path.is_dir()]
    settle(folder / "run")
    remove_abandoned(folder / "run")
    assert content(folder / "run") == {"a.txt": left, "b.txt": left}
    write(folder / "run", "next")
    assert content(folder / "run") == {"a.txt": "next", "b.txt": "next"}


@pytest.mark.parametrize("command", [["predict", "run/model.skops", "x.csv"], ["review", "run", "--no-browser"]])
def test_who_reads_a_folder_puts_it_in_order_first(folder, selfpaced, command):
    write(folder / "run", "old")
    killed(2)
    assert selfpaced(*command)[0] == 2
    assert content(folder / "run") == {"a.txt": "killed", "b.txt": "killed"}


def test_moves_that_cannot_be_ended_are_told(folder, monkeypatch):
    def refused(*paths):
        raise PermissionError(13, "Permission denied")

    write(folder / "run", "old")
    killed(2)
    monkeypatch.setattr("os.replace", refused)
    with pytest.raises(UsageError, match="'run' holds files of two runs.*Permission denied; run selfpaced fit into"):
        settle(Path("run"))


def test_a_disk_that_fails_among_the_moves_loses_nothing(folder, monkeypatch):
    def failing(source, target, replace=os.replace):
        if str(target).endswith("b.txt"):
            raise OSError(5, "Input/output error")
        replace(source, target)

    write(folder / "run", "old")
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", failing)
        with pytest.raises(OSError, match="Input/output error"):
            write(folder / "run", "new")
    settle(folder / "run")
    assert content(folder / "run") == {"a.txt": "new", "b.txt": "new"}


def test_what_the_run_before_has_made_and_this_one_has_not_leaves(folder):
    write(folder, "first")
    with staged(folder, ["a.txt"], Console()) as stage:
        (stage / "a.txt").write_text("second")
    assert content(folder) == {"a.txt": "second"}


def test_what_somebody_has_changed_or_decided_does_not(folder):
    with staged(folder, [*NAMES, DECISIONS], Console()) as stage:
        for name in (*NAMES, DECISIONS):
            (stage / name).write_text("first")
    (folder / "b.txt").write_text("my remarks")
    with staged(folder, ["a.txt"], Console()) as stage:
        (stage / "a.txt").write_text("second")
    assert content(folder) == {"a.txt": "second", "b.txt": "my remarks", DECISIONS: "first"}


@pytest.mark.parametrize(
    "forged",
    [
        {"files": {}, "moving": "../elsewhere"},
        {"files": {}, "moving": "elsewhere"},
        {"files": {"../precious": [""]}, "moving": ".selfpaced-x", "leaving": ["../precious"]},
        {"files": {}, "moving": ".selfpaced-x", "leaving": ["precious"]},
        {"files": {}, "moving": 3},
    ],
)
def test_a_forged_ledger_moves_and_removes_nothing(folder, forged):
    """A folder may come from anybody."""
    for place in ("run/.selfpaced-x", "elsewhere", "run/elsewhere"):
        (folder / place).mkdir(parents=True)
        (folder / place / "b.txt").write_text("theirs")
    for place in ("precious", "run/precious", "run/b.txt"):
        (folder / place).write_text("mine")
    (folder / "run" / RECORD).write_text(json.dumps(forged))
    settle(folder / "run")
    assert [(folder / place).read_text() for place in ("precious", "run/precious", "run/b.txt")] == ["mine"] * 3
    assert (folder / "elsewhere/b.txt").exists()


def test_two_runs_into_one_folder_leave_the_files_of_one(folder):
    with staged(folder / "run", NAMES, Console()) as first:
        (first / "a.txt").write_text("first")
        with staged(folder / "run", NAMES, Console()) as second:  # it does not take the other one for abandoned
            assert first.exists()
            for name in NAMES:
                (second / name).write_text("second")
        (first / "b.txt").write_text("first")
    assert content(folder / "run") == {"a.txt": "first", "b.txt": "first"}
    assert json.loads((folder / "run" / RECORD).read_text())["files"].keys() == set(NAMES)


def test_one_run_waits_while_another_moves_its_files(folder):
    script = "from pathlib import Path\nfrom selfpaced.cli.atomic_output import locked\nimport sys\n"
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
