"""Spark on this machine alone, all cores, with one SQLite catalog named "default"."""
import glob
import os
import sys


def start(database):
    from pyspark.sql import SparkSession

    jars = os.path.join(os.path.dirname(os.path.abspath(sys.prefix)), "jars", "*.jar")
    catalog = "spark.sql.catalog.default"
    config = {
        "spark.jars": ",".join(glob.glob(jars)),
        "spark.driver.memory": "3g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{database}",
        f"{catalog}.warehouse": os.path.dirname(database),
        f"{catalog}.jdbc.schema-version": "V1",
    }
    builder = SparkSession.builder.master("local[*]")
    for key, value in config.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def stop(spark):
    """Ends the session and waits for its Java, whose memory and CPU are counted only then."""
    java = spark.sparkContext._gateway.proc
    spark.stop()
    java.stdin.close()
    java.wait()
