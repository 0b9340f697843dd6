"""Spark sessions for tests: small, and without compilers that a long run alone would pay for."""

import os
import sys

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
OPTIONS = {
    "spark.driver.extraJavaOptions": QUICK,
    "spark.driver.memory": "1g",
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": "1024m",
    "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def start(master, folder):
    """A session that leaves nothing outside the folder."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_HOME=os.path.dirname(pyspark.__file__))
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", SPARK_WORKER_DIR=str(folder), SPARK_LOCAL_DIRS=str(folder))
    builder = SparkSession.builder.master(master).appName("selfpaced")
    for name, value in {**OPTIONS, "spark.sql.warehouse.dir": str(folder)}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
