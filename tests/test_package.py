"""What a stranger meets first: the import, the README, the contributing guide."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import selfpaced

ROOT = Path(__file__).parent.parent
HEAVY = ("matplotlib", "numba", "pandas", "polars", "torch", "sklearn", "scipy", "rich", "jinja2")


def test_import_is_light():
    code = f"import sys, selfpaced; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_modules_do_not_drag_in_optional_packages():
    # scikit-learn itself imports pandas and rich where they are installed
    optional = ("matplotlib", "numba", "polars", "torch", "jinja2", "skops", "altair")
    modules = ", ".join(f"selfpaced.{name}" for name in ("solver", "linear", "wrappers", "factorization", "clustering"))
    code = f"import sys, {modules}; print([m for m in {optional!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_documented_names_are_shown():
    shown = {name for name in dir(selfpaced) if not name.startswith("_")}
    assert shown == {*selfpaced.__all__, "torch"} - {"__version__"}


@pytest.mark.parametrize("name", [name for name in selfpaced.__all__ if name != "__version__"])
def test_every_export_is_there(name):
    assert getattr(selfpaced, name) is not None
    assert name in dir(selfpaced)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'SelfPacedNothing'"):
        _ = selfpaced.SelfPacedNothing


def test_a_class_name_means_one_thing():
    homes = {}
    for source in (ROOT / "src", ROOT / "experiments" / "src"):
        for path in sorted(source.rglob("*.py")):
            for name in re.findall(r"^ *class _?(\w+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
                homes.setdefault(name, []).append(path.relative_to(source).as_posix())
    assert len(homes) > 100
    twins = {name: paths for name, paths in homes.items() if len(paths) > 1}
    # The same models, as users of clusters know them.
    spark = "selfpaced/spark.py"
    assert twins == {
        "SelfPacedLinearRegression": ["selfpaced/linear/regression.py", spark],
        "SelfPacedLogisticRegression": ["selfpaced/linear/logistic.py", spark],
    }


def blocks(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_the_code_in_the_documents_runs(document, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert blocks(document)
    for number, block in enumerate(blocks(document)):
        exec(compile(block, f"{document}:block{number}", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


def test_the_readme_shows_what_its_code_prints(capsys):
    exec(blocks("README.md")[0], {"__name__": "__main__"})
    shown = re.search(r"```text\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert capsys.readouterr().out.strip() == shown[1].strip()


def test_the_contributed_rule_holds_every_condition(capsys):
    exec(blocks("CONTRIBUTING.md")[0], {"__name__": "__main__"})
    assert "all conditions hold" in capsys.readouterr().out
