"""Shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

#: What is slow by its nature, a folder, a file or the beginning of a test's name: `make test` leaves it out, `make
#: test-all` and CI run it.
SLOW = {
    "spark/": "sessions of Spark",
    "dask/test_dask.py::test_a_worker_that_dies": "a cluster for each test",
    "dask/test_dask.py::test_values_and_a_worker_that_dies": "a cluster for each test",
    "dask/test_wrapping.py::test_a_stage_that_loses_a_worker": "a cluster for each test",
    "dask/test_wrapping.py::test_a_training_that_is_left": "a cluster for each test",
    "report/test_report_browser.py": "a browser",
    "report/test_review_browser.py": "a browser",
    "project/test_examples.py::test_a_script_of_the_gallery": "all pictures of the gallery",
    "torch/test_distributed.py": "several processes for each test",
    "torch/test_frameworks.py": "frameworks of others that train networks",
    "test_docs.py::test_the_site_builds": "the whole site",
    "test_docs.py::test_no_page_of_the_api": "the whole site in a browser",
    "test_docs.py::test_every_block_runs[guide/spark.md]": "sessions of Spark",
    "test_docs.py::test_every_block_runs[guide/pytorch.md]": "trains networks",
    "test_estimator_checks.py::test_scikit_learn_checks": "all of scikit-learn's checks for 31 models",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            name = f"{item.path.relative_to(here).as_posix()}::{item.nodeid.partition('::')[2]}"
            if name.startswith(tuple(SLOW)):
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Fail where a file of tests cannot be imported: skipping is for the doctests of modules that need an extra."""
    skipped = report.skipped and "unable to import module" in str(report.longrepr)
    if skipped and report.nodeid.rpartition("/")[2].startswith("test_"):
        report.outcome = "failed"
