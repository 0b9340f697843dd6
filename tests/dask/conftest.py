"""A small cluster for a test of Dask in which a worker dies: each has its own."""

import pytest


@pytest.fixture
def client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as found,
    ):
        yield found
