"""A small cluster for a test of Dask in which a worker dies: each has its own."""

import gc
import warnings

import pytest


@pytest.fixture
def client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as found,
    ):
        yield found
    # What a dead worker leaves behind is Dask's, XGBoost's and LightGBM's: collected here, it fails no later test.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def pytest_collection_modifyitems(items):
    for item in items:
        if "client" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
