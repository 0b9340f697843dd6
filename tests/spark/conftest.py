"""One Spark session for all tests of this folder, on two threads of this machine."""

import os
import shutil
from pathlib import Path

import pytest

WITHOUT_JAVA = shutil.which("java") is None and "JAVA_HOME" not in os.environ


def pytest_collection_modifyitems(config, items):
    """With several workers, one of them runs these tests: each worker would start a session of its own."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    pytest.importorskip("pyspark", reason='tables on Spark need the extra "spark"')
    if WITHOUT_JAVA:
        pytest.skip("Spark needs Java: install openjdk-17-jre-headless")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        for name in ("PYSPARK_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP", "SPARK_WORKER_DIR", "SPARK_LOCAL_DIRS"):
            patch.setenv(name, os.environ.get(name, ""))  # and as it was afterwards
        import sessions

        session = sessions.start("local[2]", tmp_path_factory.mktemp("spark"))
        yield session
        session.stop()
