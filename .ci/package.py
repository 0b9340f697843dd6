"""Build both distributions, check them, and use the wheels in an empty environment.

``python .ci/package.py [FOLDER]`` writes sdists and wheels into FOLDER (default: dist). Each wheel is built from its
sdist, so that the sdist is known to be whole; twine and check-wheel-contents check both. The library's wheel is then
installed into an empty environment away from the checkout and fits to the built-in table there; the experiments' wheel
joins it and must be found by the command line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = {"selfpaced": ROOT, "selfpaced_experiments": ROOT / "experiments"}
EXTRAS = "cli,plot,report,io"  # what `make demo` installs
SHOWN = {"model.skops", "report.html", "suspects.csv", "metrics.json"}


def main(folder: Path) -> None:
    """Build, look, install, run."""
    shutil.rmtree(folder, ignore_errors=True)
    for package, project in PROJECTS.items():
        run(sys.executable, "-m", "build", "--outdir", folder, project)
        wheel, sdist = only(folder, f"{package}-*.whl"), only(folder, f"{package}-*.tar.gz")
        check(package, project, wheel, sdist)
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
        run(sys.executable, "-m", "check_wheel_contents", wheel, at=project)
    with tempfile.TemporaryDirectory() as place:
        use(only(folder, "selfpaced-*.whl"), only(folder, "selfpaced_experiments-*.whl"), Path(place))
    say(f"packages: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def check(package: str, project: Path, wheel: Path, sdist: Path) -> None:
    """A wheel holds the package and nothing else; an sdist holds whatever it takes to build that wheel."""
    source = project / "src" / package
    written = {path.relative_to(source.parent).as_posix() for path in files(source)}
    if wrong := differences(written, contents(wheel)):
        sys.exit(f"{wheel.name}: {wrong}")
    wanted = {"LICENSE", "README.md", "pyproject.toml", *(f"src/{name}" for name in written)}
    if missing := wanted - contents(sdist):
        sys.exit(f"{sdist.name} lacks {', '.join(sorted(missing))}")


def files(folder: Path) -> list[Path]:
    """The files of a package as they were written, without what Python and numba compile beside them."""
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def contents(archive: Path) -> set[str]:
    """Names in a wheel without its metadata, or in an sdist below its folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return {name for name in opened.namelist() if ".dist-info/" not in name}
    with tarfile.open(archive) as opened:
        return {name.partition("/")[2] for name in opened.getnames()}


def differences(written: set[str], packed: set[str]) -> str:
    """What a wheel lacks and what it should not have, in words; empty if it is right."""
    parts = {"lacks": written - packed, "should not have": packed - written}
    return "; ".join(f"{verb} {', '.join(sorted(names))}" for verb, names in parts.items() if names)


def use(library: Path, experiments: Path, place: Path) -> None:
    """A fit to the built-in table from the wheel alone, then the command that the second wheel brings."""
    run(sys.executable, "-m", "venv", place / "env")
    python, command = place / "env/bin/python", place / "env/bin/selfpaced"
    run(python, "-m", "pip", "install", "--quiet", f"{library}[{EXTRAS}]", at=place)
    run(command, "fit", "--out", place / "run", at=place)
    made = {path.name for path in (place / "run").iterdir() if path.stat().st_size}
    if missing := SHOWN - made:
        sys.exit(f"selfpaced fit did not write {', '.join(sorted(missing))}")
    run(python, "-m", "pip", "install", "--quiet", library, experiments, at=place)
    run(command, "reproduce", "table1", "--quick", "--quiet", "--out", place / "table1", at=place)


def run(*command: str | Path, at: Path = ROOT) -> None:
    """A command that must succeed; nothing of the checkout or of our own environment shows through."""
    say("$ " + " ".join(str(part) for part in command))
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    code = subprocess.run([str(part) for part in command], cwd=at, env=outside, check=False).returncode
    if code:
        sys.exit(f"{command[0]} ended with {code}")


def only(folder: Path, pattern: str) -> Path:
    """The one file of this pattern."""
    (found,) = folder.resolve().glob(pattern)
    return found


def say(text: str) -> None:
    """At once, so that it stands before what the commands print."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist"))
