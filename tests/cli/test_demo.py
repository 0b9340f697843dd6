"""``selfpaced demo``."""

import json

import pytest


@pytest.fixture
def demo(selfpaced, folder):
    code, out, err = selfpaced("demo")
    assert code == 0, err
    return out


def test_the_self_paced_model_is_better_and_finds_the_errors(demo, folder):
    pytest.importorskip("jinja2", reason='the page needs the extra "report"')
    names = sorted(path.name for path in (folder / "demo").iterdir())
    assert names == [".selfpaced.json", "metrics.json", "report.html", "suspects.csv"]
    facts = json.loads((folder / "demo" / "metrics.json").read_text())
    accuracy, found = facts["models"]["accuracy"], facts["models"]["found"]
    assert accuracy["self-paced"] > accuracy["plain"] + 0.01
    assert accuracy["self-paced"] > 0.93
    assert found["likely errors"]["wrong"] > 0.8 * found["likely errors"]["rows"]
    assert found["both lists"]["wrong"] > 0.8 * found["both lists"]["of"]
    assert abs(facts["noise_rate"] - 0.2) < 0.05
    assert f"{100 * accuracy['self-paced']:.1f} %" in demo
    assert "the kind of 120 was changed to a wrong one" in " ".join(demo.split())
    assert max(map(len, demo.splitlines())) <= 80
    assert demo.splitlines()[-1] == "Next: selfpaced fit YOUR.csv --target COLUMN"
