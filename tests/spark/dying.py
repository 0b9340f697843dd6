"""Two executor processes, one killed before the fourth pass of a fit: the coefficients are the same bits."""

import os
import signal
import sys

import numpy as np
import pandas as pd
import psutil

from selfpaced import SelfPacedLogisticRegression
from selfpaced.distributed import MemoryTable, spark_table
from selfpaced.linear import _folds
from selfpaced.spark import SparkTable

FATAL = 4
ROWS = 6_000  # more than are gathered in one place


def executor(batches):
    """The process of the executor: a worker is forked by a daemon that the executor has started."""
    import pyarrow as pa

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"pid": [psutil.Process().parent().parent().pid]})


class Mortal(SparkTable):
    killed = 0

    def reduce(self, function, *args):
        if self.passes + 1 == FATAL:
            pids = {row.pid for row in self.packed[["part"]].mapInArrow(executor, "pid long").collect()}
            os.kill(min(pids), signal.SIGKILL)
            self.killed += 1
        return super().reduce(function, *args)


def main(folder):
    from sessions import start  # beside this file: where a script is run, it is found

    _folds.SAMPLED_ROWS, spark_table.ONE_PLACE_ROWS = 2_000, 5_000
    session = start("local-cluster[2,1,1024]", folder)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 2))
    y = (X[:, 0] + rng.logistic(size=ROWS) > 0) ^ (rng.random(ROWS) < 0.1)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y.astype(int), "id": np.arange(ROWS)})
    with Mortal(session.createDataFrame(frame), ["a", "b"], "y", id="id") as table:
        found = SelfPacedLogisticRegression(C=1.0, tol=1e-2).fit(table)
        assert table.sizes.tolist() == [ROWS // 2, ROWS // 2]
    here = MemoryTable(X, y.astype(int), classes=np.array([0.0, 1.0]), n_blocks=2)
    expected = SelfPacedLogisticRegression(C=1.0, tol=1e-2).fit(here)
    print("killed", table.killed, "same", bool((found.coef_ == expected.coef_).all()))
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
