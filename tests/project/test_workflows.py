"""CI calls the Makefile on Linux and pytest elsewhere; templates and policies are in place."""

import ast
import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB, GITLAB, RELEASE = ".github/workflows/ci.yml", ".gitlab-ci.yml", ".github/workflows/release.yml"
GITLAB_KEYWORDS = {"default", "include", "stages", "variables", "workflow"}


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def targets():
    """What the Makefile can make by a plain name."""
    return set(re.findall(r"^([a-z][\w-]*):", text_of("Makefile"), re.MULTILINE))


def all_jobs(name):
    return yaml.safe_load(text_of(name))["jobs"]


def github_jobs():
    """The jobs on Linux."""
    return [job for job in all_jobs(GITHUB).values() if job["runs-on"].startswith("ubuntu")]


def gitlab_jobs():
    found = yaml.safe_load(text_of(GITLAB))
    return [job for name, job in found.items() if name not in GITLAB_KEYWORDS]


def commands(name):
    """The shell commands of a CI file."""
    if name == GITHUB:
        return [step["run"] for job in github_jobs() for step in job["steps"] if "run" in step]
    if name == GITLAB:
        return [job["script"] for job in gitlab_jobs()]
    return re.findall(r"^make .*$", text_of(name), re.MULTILINE)


def called(name):
    """The targets a CI file asks for."""
    words = [word for command in commands(name) for word in shlex.split(command)[1:]]
    return {word for word in words if "=" not in word}


@pytest.mark.parametrize("name", [GITHUB, GITLAB, ".ci/run"])
def test_every_step_is_a_target_of_the_makefile(name):
    assert commands(name)
    for command in commands(name):
        assert shlex.split(command)[0] == "make", command
    assert called(name) <= targets()


def test_what_make_test_leaves_out_is_there_and_runs_in_ci():
    tree = ast.parse(text_of("tests/conftest.py"))
    (slow,) = [ast.literal_eval(node.value) for node in tree.body if ast.unparse(node).startswith("SLOW =")]
    for name in slow:
        file, _, test = name.partition("::")
        assert (ROOT / "tests" / file).exists()
        assert not test or f"def {test.partition('[')[0]}" in text_of(f"tests/{file}")
    assert "$(PYTEST) $(ONLY)" in text_of("Makefile")
    assert "\t$(MAKE) test\n\t$(PYTEST) -m slow\n" in text_of("Makefile")  # the README's command, then the rest
    every = [command for name in (GITHUB, GITLAB) for command in commands(name) if "test" in shlex.split(command)]
    assert every
    assert all("ONLY=" in shlex.split(command) for command in every)


def test_all_ci_files_ask_for_the_same():
    assert called(GITHUB) == called(GITLAB) == called(".ci/run") | {"test"}  # test-all begins with test
    assert called(GITHUB) == {"demo", "docs", "lint", "lowest", "package", "test", "test-all", "types"}


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "docs/install.md", ".github/pull_request_template.md"]
)
def test_documents_name_targets_that_exist(name):
    lines = re.findall(r"(?:^\s*|`)make ([a-z][a-z -]*[a-z])", text_of(name), re.MULTILINE)
    assert lines
    assert {word for line in lines for word in line.split()} <= targets()


def test_every_supported_python_is_tested():
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    named = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in project["classifiers"]]
    pythons = [found[1] for found in named if found]
    assert project["requires-python"] == f">={pythons[0]}"
    (github,) = [job["strategy"]["matrix"]["python"] for job in github_jobs() if "strategy" in job]
    (gitlab,) = [job["parallel"]["matrix"][0]["VERSION"] for job in gitlab_jobs() if "parallel" in job]
    documented = re.findall(r"^\| (3\.\d+) \|", text_of("docs/versions.md"), re.MULTILINE)
    assert github == gitlab == documented == pythons


@pytest.mark.parametrize("name", [GITHUB, RELEASE])
def test_actions_are_pinned_and_may_only_read(name):
    used = [step["uses"] for job in all_jobs(name).values() for step in job["steps"] if "uses" in step]
    assert used
    assert [action for action in used if not re.fullmatch(r"(actions|pypa)/[\w-]+@v\d+\.\d+\.\d+", action)] == []
    assert yaml.safe_load(text_of(name))["permissions"] == {"contents": "read"}


def test_macos_and_windows_are_tested():
    job = all_jobs(GITHUB)["systems"]
    assert [system.partition("-")[0] for system in job["strategy"]["matrix"]["system"]] == ["macos", "windows"]
    steps = [shlex.split(step["run"]) for step in job["steps"] if "run" in step]
    assert {tuple(words[:2]) for words in steps} == {("python", "-m")}  # as on Linux, without a shell or make
    assert steps[-1][2] == "pytest"
    (demo,) = [words[2:] for words in steps if words[2] == "selfpaced"]
    assert shlex.join(demo) in text_of("Makefile")


def test_only_the_upload_of_a_release_may_ask_for_an_identity():
    jobs = all_jobs(RELEASE)
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "build"
    asked = {word for step in jobs["build"]["steps"] for word in shlex.split(step.get("run", ""))}
    assert {"released", "lint", "types", "docs", "test-all", "package"} <= asked & targets()


@pytest.fixture(scope="module")
def released():
    spec = importlib.util.spec_from_file_location("released", ROOT / ".ci" / "released.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_version_and_state_of_the_release_are_the_same_everywhere(released):
    assert len(set(released.versions(ROOT).values())) == 1
    changelog, citation = released.dates(ROOT)
    assert changelog == citation


@pytest.mark.parametrize(
    ("changelog", "citation", "tag", "words"),
    [
        ("## 0.1.0 (2027-01-05)", "version: 0.1.0\ndate-released: 2027-01-05", "v0.1.0", None),
        ("## 0.1.0 (unreleased)", "version: 0.1.0", "v0.1.0", "CHANGELOG.md has the date unreleased"),
        ("## 0.1.0 (2027-01-05)", "version: 0.1.0", "v0.1.0", "CITATION.cff unreleased"),
        ("## 0.1.0 (2027-01-05)", "version: 0.1.0\ndate-released: 2027-01-05", "v0.2.0", "states version 0.1.0"),
    ],
)
def test_a_tag_is_released_only_if_all_files_agree(released, tmp_path, changelog, citation, tag, words):
    texts = {
        "src/selfpaced/__init__.py": '__version__ = "0.1.0"',
        "experiments/pyproject.toml": 'version = "0.1.0"',
        "CITATION.cff": citation,
        "CHANGELOG.md": changelog,
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    problems = released.problems(tmp_path, tag)
    assert not problems if words is None else words in " ".join(problems)


@pytest.mark.parametrize("name", [GITHUB, GITLAB, RELEASE])
def test_no_secret_is_read(name):
    assert not re.search(r"secrets\.|TOKEN|PASSWORD", text_of(name))


def test_the_form_for_bugs_asks_for_what_is_needed():
    form = yaml.safe_load(text_of(".github/ISSUE_TEMPLATE/bug.yml"))
    asked = {part["id"]: part for part in form["body"] if part["type"] != "markdown"}
    assert set(asked) == {"example", "happened", "data", "termination", "versions"}
    assert "termination_" in asked["termination"]["attributes"]["description"]
    must = {name for name, part in asked.items() if part.get("validations", {}).get("required")}
    assert must == {"example", "happened", "data", "versions"}


def test_the_versions_a_reporter_is_asked_for_can_be_printed(capsys):
    form = text_of(".github/ISSUE_TEMPLATE/bug.yml")
    exec(re.search(r'python -c "(.+?)"`', form)[1], {})
    printed = capsys.readouterr().out
    assert "selfpaced" in printed
    assert "scipy" in printed


@pytest.mark.parametrize("name", ["feature.yml", "config.yml"])
def test_the_other_templates_can_be_read(name):
    assert isinstance(yaml.safe_load(text_of(f".github/ISSUE_TEMPLATE/{name}")), dict)


def test_a_change_is_asked_what_was_measured_and_where_it_loses():
    headings = re.findall(r"^## (.+)$", text_of(".github/pull_request_template.md"), re.MULTILINE)
    assert {"What was measured", "Where we lose"} <= set(headings)


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "README.md"])
def test_links_between_documents_lead_somewhere(name):
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text_of(name))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_hooks_before_a_commit_are_those_of_make_lint_with_a_pinned_version():
    (local,) = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    assert len({tuple(hook["additional_dependencies"]) for hook in local["hooks"]}) == 1
    assert re.fullmatch(r"ruff==\d+\.\d+\.\d+", local["hooks"][0]["additional_dependencies"][0])
    commands = [hook["entry"].split()[1] for hook in local["hooks"]]
    assert commands == ["check", "format"]
    assert all(f"$(BIN)/ruff {command}" in text_of("Makefile") for command in commands)
