"""The Spark that Iceberg and Delta have jars for, beside the one that the project installs; from PyPI, once, into a cache folder.

    python -m tests.servers.spark_of_tables      prints the folder to put before the others in PYTHONPATH
"""

import shutil
import subprocess
import sys

from tests.servers.server import CACHE, Unavailable, java, locked

VERSION = "4.1.4"
PACKAGES = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,io.delta:delta-spark_4.1_2.13:4.4.0,org.apache.spark:spark-avro_2.13:4.1.1"
SETTINGS = {
    "spark.jars.packages": PACKAGES,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.master": "local[2]",
}


def folder():
    """Where pyspark is; fetched if it is not there."""
    java()
    place = CACHE / f"pyspark-{VERSION}"
    if not place.is_dir():
        with locked("pyspark.lock"):
            if not place.is_dir():
                _fetch(place)
    return place


def _fetch(place):
    part = place.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(part)]
    done = subprocess.run([*command, f"pyspark=={VERSION}"], capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"pip could not fetch pyspark {VERSION}: {(done.stdout + done.stderr)[-500:]}")
    part.rename(place)


if __name__ == "__main__":
    print(folder())
