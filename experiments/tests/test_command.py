"""The command: arguments, files, exit codes."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from selfpaced_experiments import SECTIONS, command, load


def test_table_1_writes_json_and_markdown(tmp_path, capsys):
    out = tmp_path / "with space"
    assert command.main(["table1", "--out", str(out), "--jobs", "1", "--plain"]) == 0
    results = load(out / "results.json")
    assert results.theory
    assert results.run.command == "selfpaced reproduce table1 --jobs 1"
    assert {"Python", "numpy", "scikit-learn", "selfpaced"} <= set(results.run.versions)
    assert (out / "claims.md").is_file()
    printed = capsys.readouterr()
    assert "Claims of the paper" in printed.out
    assert "table1" in printed.err


def test_quiet_is_quiet(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("selfpaced_experiments.theory.statements", lambda step: ())
    assert command.main(["table1", "--out", str(tmp_path), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "arguments", [["poetry"], ["--seeds", "0"], ["--jobs", "-1"], ["--seeds", "many"], ["--seeds", "song=3"]]
)
def test_wrong_arguments_end_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 2


def test_a_missing_data_directory_is_named(tmp_path, capsys):
    assert command.main(["table1", "--data-dir", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    assert "none" in capsys.readouterr().err


def test_an_interrupt_says_how_to_continue(tmp_path, capsys, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("selfpaced_experiments.reproduce.reproduce", interrupted)
    assert command.main(["table1", "--out", str(tmp_path)]) == 130
    assert "to continue" in capsys.readouterr().err


def test_without_data_a_section_ends_with_1_and_says_what_to_put_where(tmp_path, capsys, monkeypatch):
    def absent(*args, **kwargs):
        from selfpaced_experiments.data import DataNotFoundError

        raise DataNotFoundError("put 'mfeat/mfeat-fou' into SELFPACED_DATA")

    monkeypatch.setattr("selfpaced_experiments.data.load_mfeat", absent)
    assert command.main(["table3", "--quick", "--out", str(tmp_path), "--plain"]) == 1
    assert "put 'mfeat/mfeat-fou'" in capsys.readouterr().out
    assert load(tmp_path / "results.json").skipped


def test_the_command_line_of_the_library_finds_it(capsys, monkeypatch):
    from selfpaced.cli import main

    monkeypatch.setenv("COLUMNS", "80")
    assert main(["reproduce", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--seeds" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_another_command_can_register_it():
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["reproduce", "figure3", "--quick", "--seeds", "3"])
    assert args.run is command.run
    assert (args.section, args.quick, args.seeds) == ("figure3", True, dict.fromkeys(SECTIONS, 3))
    args = parser.parse_args(["reproduce", "--seeds", "table3=7,figure2=2", "--jobs", "1"])
    assert args.seeds == {"table3": 7, "figure2": 2}
    assert command._command(args) == "selfpaced reproduce claims --seeds table3=7,figure2=2 --jobs 1"
    assert parser.parse_args(["reproduce"]).section == "claims"


def test_registering_is_cheap():
    code = "import sys, selfpaced_experiments.command; assert not {'sklearn', 'scipy', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_module_is_the_same_command(capsys):
    shown = subprocess.run([sys.executable, "-m", "selfpaced_experiments", "--help"], capture_output=True, text=True)
    assert shown.returncode == 0
    assert all(section in shown.stdout for section in (*SECTIONS, "claims"))


def test_keep_needs_what_there_is_to_keep(tmp_path, capsys):
    assert command.main(["table1", "--quick", "--keep", "--out", str(tmp_path)]) == 2
    assert "--keep needs" in capsys.readouterr().err
