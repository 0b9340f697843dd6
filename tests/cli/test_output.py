"""What a run may replace, what it removes, two runs into one folder."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from selfpaced.cli.console import Console, UsageError
from selfpaced.cli.output import DECISIONS, RECORD, staged

NAMES = ["a.txt", "b.txt"]


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


@pytest.mark.parametrize("ledger", ["", "[]", "3", '{"a.txt": 3}', "[" * 100_000, "\0"])
def test_an_odd_record_is_none(folder, ledger):
    (folder / "a.txt").write_text("precious")
    (folder / RECORD).write_text(ledger)
    with pytest.raises(UsageError, match="exists and was not written"):
        write(folder, "new")
    assert (folder / "a.txt").read_text() == "precious"


def test_a_pipe_in_the_place_of_a_file_is_not_read(folder):
    os.mkfifo("a.txt")
    with pytest.raises(UsageError, match="exists and was not written"):
        write(folder, "new")


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


def test_a_forged_record_removes_nothing(folder):
    """A folder may come from anybody."""
    (folder / "run").mkdir()
    (folder / "precious").write_text("mine")
    digest = hashlib.sha256(b"mine").hexdigest()
    (folder / "run" / RECORD).write_text(json.dumps({"../precious": digest}))
    write(folder / "run", "new")
    assert (folder / "precious").read_text() == "mine"


def test_two_runs_into_one_folder_leave_the_files_of_one(folder):
    with staged(folder / "run", NAMES, Console()) as first:
        (first / "a.txt").write_text("first")
        with staged(folder / "run", NAMES, Console()) as second:
            assert first.exists()
            for name in NAMES:
                (second / name).write_text("second")
        (first / "b.txt").write_text("first")
    assert content(folder / "run") == {"a.txt": "first", "b.txt": "first"}
    assert json.loads((folder / "run" / RECORD).read_text()).keys() == set(NAMES)


def test_a_run_that_was_killed_leaves_the_files_of_the_last_one(folder):
    write(folder / "run", "old")
    script = "import os, signal\nfrom pathlib import Path\nfrom selfpaced.cli.console import Console\n"
    script += "from selfpaced.cli.output import staged\n"
    script += "with staged(Path('run'), ['a.txt', 'b.txt'], Console()) as stage:\n"
    script += "    (stage / 'a.txt').write_text('half')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    subprocess.run([sys.executable, "-c", script], check=False)
    assert [path for path in (folder / "run").iterdir() if path.is_dir()]
    write(folder / "run", "next")
    assert content(folder / "run") == {"a.txt": "next", "b.txt": "next"}
