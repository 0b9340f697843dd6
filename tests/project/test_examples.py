"""Every script of the gallery runs and draws its picture; the ones for networks of others are in tests/torch."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
ELSEWHERE = {"torch_skorch", "torch_lightning", "torch_hugging_face"}  # tests/torch/test_frameworks.py
# fewer repetitions of the same
SMALLER = {
    "readme_picture": {"SEEDS": range(2), "RATES": (0.0, 0.2)},
    "factorization_paths": {"REALIZATIONS": 1, "RULES": ("hard", "welsch"), "LAMS": (0.9, 1.8)},
    "review_loop": {"ROUNDS": 3},
}


@pytest.mark.parametrize("name", sorted(set(SCRIPTS) - ELSEWHERE))
def test_a_script_of_the_gallery_draws_its_picture(name, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib", reason="the gallery is drawn with Matplotlib")
    needed = re.findall(r"^(?:import|from) (torch)\b", SCRIPTS[name].read_text(encoding="utf-8"), re.MULTILINE)
    for package in needed:
        pytest.importorskip(package, reason=f"{name} needs {package}")
    matplotlib.use("Agg")
    spec = importlib.util.spec_from_file_location(name, SCRIPTS[name])
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, script)
    spec.loader.exec_module(script)
    for setting, value in SMALLER.get(name, {}).items():
        assert hasattr(script, setting)
        monkeypatch.setattr(script, setting, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(SCRIPTS[name])])
    script.main()
    matplotlib.pyplot.close("all")
    made = list(tmp_path.glob("*.png"))
    assert made
    assert all(picture.stat().st_size > 10_000 for picture in made)


def test_the_gallery_shows_every_script():
    shown = re.findall(r"<!-- source: (\w+)\.py -->", (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(SCRIPTS)
