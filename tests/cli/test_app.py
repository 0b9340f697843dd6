"""Help, exit codes, and what is said where."""

import json
import subprocess
import sys

import pytest

from selfpaced import __version__
from selfpaced.cli import main
from selfpaced.cli.app import COMMANDS


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=lambda words: words[0] if words else "-")
def test_help_is_readable(selfpaced, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = selfpaced(*command, "--help")
    assert code == 0
    assert not err
    assert out.startswith("usage: selfpaced")
    assert max(map(len, out.splitlines())) <= 80


def test_without_a_command_there_is_help(selfpaced):
    code, out, _ = selfpaced()
    assert code == 0
    assert all(name in out for name in COMMANDS)
    assert "exit codes:" in out


def test_version(selfpaced):
    assert selfpaced("--version")[:2] == (0, f"selfpaced {__version__}\n")


@pytest.mark.parametrize(
    "words", [["fitt"], ["fit", "--targt", "x"], ["fit", "--threshold", "2"], ["inspect", "a.csv", "extra"]]
)
def test_what_is_not_understood(selfpaced, words):
    code, out, err = selfpaced(*words)
    assert code == 2
    assert not out
    assert "error:" in err
    assert "--help" in err


def test_help_needs_no_heavy_package():
    code = (
        "import sys; from selfpaced.cli import main; main(['fit', '--help']);"
        "heavy = {'pandas', 'sklearn', 'scipy', 'matplotlib', 'pyarrow', 'rich'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_python_m_is_the_same():
    done = subprocess.run([sys.executable, "-m", "selfpaced", "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"selfpaced {__version__}\n")


def test_an_error_is_an_object_too(selfpaced, folder):
    code, out, err = selfpaced("fit", "absent.csv", "--target", "y", "--json")
    assert code == 3
    assert json.loads(out) == {"error": "absent.csv: no such file", "code": 3}
    assert "selfpaced: error: absent.csv: no such file" in err


def test_quiet_says_nothing(selfpaced, shop_csv):
    assert selfpaced("fit", shop_csv, "--target", "will buy", "--model", "logistic", "--quiet", "--no-report") == (
        0,
        "",
        "",
    )


def test_json_is_alone_on_standard_output(selfpaced, shop_csv):
    code, out, err = selfpaced("fit", shop_csv, "--target", "will buy", "--model", "logistic", "--json", "--no-report")
    assert code == 0
    result = json.loads(out)
    assert result["columns"]["text"] == ["note"]
    assert "{" not in err
    assert result["files"] == ["run/model.skops", "run/suspects.csv", "run/metrics.json"]


def test_a_mistake_of_ours_has_its_own_code(selfpaced, folder, monkeypatch):
    def broken(*_):
        raise RuntimeError("impossible")

    monkeypatch.setattr("selfpaced.cli.training.train", broken)
    code, _, err = selfpaced("fit")
    assert code == 70
    assert "RuntimeError: impossible (run again with --debug to see where)" in err
    with pytest.raises(RuntimeError, match="impossible"):
        main(["fit", "--debug"])


def test_a_missing_package_is_named(selfpaced, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setitem(sys.modules, "skops", None)
    code, _, err = selfpaced("fit", "--no-report")
    assert code == 6
    assert 'pip install "selfpaced[io]"' in err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("package", ["rich.console", "pandas"])
def test_without_the_extra_the_command_line_says_which(selfpaced, folder, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    code, out, err = selfpaced("fit")
    assert (code, out) == (6, "")
    assert f"needs {package}" in err
    assert 'pip install "selfpaced[cli]"' in err
    assert err.count("\n") == 1


def test_steps_are_lines_in_a_log_and_a_bar_on_a_terminal(selfpaced, folder, monkeypatch):
    _, out, err = selfpaced("fit", "--no-report")
    assert "fitting plain and self-paced logistic ... " in err
    assert "\x1b" not in out + err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    code, out, err = selfpaced("fit", "--no-report", "--force")
    assert code == 0
    assert "logistic ... " not in err
    assert "\x1b[" in err
    assert "\x1b" not in out


# ---------------------------------------------------------------------------------------------------- reproduce


def test_a_command_of_another_distribution_is_found_by_its_entry_point(selfpaced, monkeypatch, tmp_path):
    made = tmp_path / "made_up-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text("[selfpaced.commands]\nreproduce = made_up_command:add_parser\n")
    (tmp_path / "made_up_command.py").write_text(
        "def add_parser(commands):\n"
        "    parser = commands.add_parser('reproduce')\n"
        "    parser.add_argument('--times', type=int)\n"
        "    parser.set_defaults(run=lambda args: args.times)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    code, _, err = selfpaced("reproduce", "--times", "3")
    assert (code, err) == (3, "")


@pytest.mark.parametrize("words", [[], ["theory", "--quick"], ["--help"]])
def test_reproduce_without_the_experiments_says_what_to_install(selfpaced, monkeypatch, words):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    code, out, err = selfpaced("reproduce", *words)
    assert (code, out) == (6, "")
    assert "pip install selfpaced-experiments" in err
    assert err.count("\n") == 1
