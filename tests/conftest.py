"""Shared by all tests."""

import os

import pytest
from hypothesis import settings

# The same examples in every run; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Fail where a file of tests cannot be imported: skipping is for the doctests of modules that need an extra."""
    skipped = report.skipped and "unable to import module" in str(report.longrepr)
    if skipped and report.nodeid.rpartition("/")[2].startswith("test_"):
        report.outcome = "failed"
