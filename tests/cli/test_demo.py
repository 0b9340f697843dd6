"""``selfpaced demo``."""

import json
import sys

import pytest


@pytest.fixture
def demo(selfpaced, folder):
    code, out, err = selfpaced("demo")
    assert code == 0, err
    return out


def test_demo_shows_what_it_promises(demo, folder):
    pytest.importorskip("matplotlib", reason='the figure needs the extra "plot"')
    assert sorted(p.name for p in (folder / "demo").iterdir()) == [
        ".selfpaced.json",
        "demo.png",
        "metrics.json",
        "report.html",
        "suspects.csv",
    ]
    assert (folder / "demo" / "demo.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads((folder / "demo" / "metrics.json").read_text())
    plain, paced = facts["models"]["plain"], facts["models"]["self-paced"]
    assert paced["accuracy"] > plain["accuracy"] + 0.01
    assert paced["accuracy"] > 0.95
    assert paced["average_precision"] > max(0.95, plain["average_precision"])
    assert paced["precision"] > plain["precision"]
    assert abs(facts["noise_rate"] - 0.2) < 0.05
    assert f"{paced['accuracy']:.1%}" in demo
    assert "114 labels were flipped" in demo
    assert max(map(len, demo.splitlines())) <= 80
    assert demo.splitlines()[-1] == "Next: selfpaced fit YOUR.csv --target COLUMN"


def test_a_core_install_is_told_which_extras_the_demo_needs(selfpaced, folder, monkeypatch):
    """None in sys.modules is what an import finds where a package is not installed."""
    for name in ("pandas", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    code, _, err = selfpaced("demo")
    assert code == 6
    assert err.strip() == 'selfpaced: error: the demo needs pandas, matplotlib: pip install "selfpaced[cli,plot]"'
    assert list(folder.iterdir()) == []


def test_without_the_extra_for_pictures_the_demo_says_so_and_goes_on(selfpaced, folder, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = selfpaced("demo")
    assert code == 0, err
    assert 'no figure: it needs matplotlib: pip install "selfpaced[plot]"' in err
    assert "demo.png" not in out
