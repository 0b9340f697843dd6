"""What `make package` checks: a wheel that lacks a file, or has one too many, is found out."""

import importlib.util
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def package():
    spec = importlib.util.spec_from_file_location("package", ROOT / ".ci" / "package.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path):
    """A small project, and functions that pack it."""
    for name in ("LICENSE", "README.md", "pyproject.toml", "src/small/__init__.py", "src/small/page.html.j2"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "src/small/__pycache__").mkdir()
    (tmp_path / "src/small/__pycache__/__init__.pyc").write_text("compiled")
    return tmp_path


def wheel(project, *names):
    path = project / "small-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in (*names, "small-1.dist-info/METADATA"):
            archive.writestr(name, "")
    return path


def sdist(project, *names):
    path = project / "small-1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.add(project / name, f"small-1/{name}")
    return path


PACKED = ("small/__init__.py", "small/page.html.j2")
SOURCES = ("LICENSE", "README.md", "pyproject.toml", "src/small/__init__.py", "src/small/page.html.j2")


def test_whole_packages_pass(package, project):
    package.check("small", project, wheel(project, *PACKED), sdist(project, *SOURCES))


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (PACKED[:1], "lacks small/page.html.j2"),
        ((*PACKED, "tests/test_small.py"), "should not have tests/test_small.py"),
        ((*PACKED, "small/__pycache__/__init__.pyc"), "should not have small/__pycache__/__init__.pyc"),
    ],
)
def test_a_wrong_wheel_is_found_out(package, project, packed, words):
    with pytest.raises(SystemExit, match=words):
        package.check("small", project, wheel(project, *packed), sdist(project, *SOURCES))


@pytest.mark.parametrize("missing", SOURCES)
def test_an_sdist_that_lacks_something_is_found_out(package, project, missing):
    rest = [name for name in SOURCES if name != missing]
    with pytest.raises(SystemExit, match=f"lacks {missing}"):
        package.check("small", project, wheel(project, *PACKED), sdist(project, *rest))


def test_a_command_that_fails_ends_the_script(package):
    with pytest.raises(SystemExit, match="ended with 3"):
        package.run("sh", "-c", "exit 3")


def test_the_library_is_typed_for_others(package):
    assert (ROOT / "src/selfpaced/py.typed").is_file()


def test_both_distributions_come_with_the_licence(package):
    texts = {(project / "LICENSE").read_text(encoding="utf-8") for project in package.PROJECTS.values()}
    assert len(texts) == 1


def test_a_fit_writes_what_the_script_looks_for(package):
    from selfpaced.cli.fit import FILES

    assert set(FILES) == package.SHOWN
