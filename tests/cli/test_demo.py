"""``selfpaced demo``."""

import json

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
