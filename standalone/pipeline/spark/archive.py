"""Class-data archive: a memory image of Spark's loaded classes in the cache folder. It halves Spark's start time.

Made once per Java and Spark version, by the set-up or by a separate process at the lowest priority, which runs typical jobs of chains:
`python -m standalone.pipeline.spark.archive [CACHE_DIR JAVA]`.
"""

import contextlib
import fcntl
import hashlib
import os
import signal
import subprocess
import sys

from standalone.pipeline.spark import java as jvm

DEADLINE_SECONDS = 300
_MAKE, _USE = 0, 1
_OPTIONS = {  # Java version -> options to write and to use an archive, valid from that version on
    17: ("-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="),
    25: ("-XX:AOTCacheOutput=", "-XX:AOTCache="),  # includes linked classes, and needs no base archive of the runtime
}
KEPT = 3


def path(cache_dir, java):
    """The path of the archive for that Java and the installed Spark, whether or not it exists."""
    key = "\n".join([java, jvm.full_version(java), *jvm.command(java, "1m")[1:]])
    return os.path.join(cache_dir, f"spark-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa")


def flag(cache_dir, java):
    """The Java option that uses the archive, or None if there is none."""
    file = path(cache_dir, java)
    return _options(java)[_USE] + file if os.path.isfile(file) else None


def _options(java):
    version = jvm.java_version(java)
    return _OPTIONS[max((since for since in _OPTIONS if since <= version), default=min(_OPTIONS))]


def is_wanted(cache_dir, java):
    """Whether there is no archive yet and no attempt has failed."""
    file = path(cache_dir, java)
    return not os.path.exists(file) and not os.path.exists(file + ".failed")


def make(cache_dir, java, stopping):
    """Make the archive in another process; return when it is done, or at once on stop."""
    process = subprocess.Popen(
        [sys.executable, "-m", "standalone.pipeline.spark.archive", cache_dir, java],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )
    while process.poll() is None:
        if stopping.wait(0.5):
            process.terminate()
            process.wait()
            return


def build(cache_dir, java):
    """Make the archive in this process, unless another process is doing so. Return whether there is one then."""
    file = path(cache_dir, java)
    os.makedirs(cache_dir, exist_ok=True)
    with open(file + ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        if os.path.exists(file):
            return True
        making = file + ".making"
        for left in (making, making + ".config"):  # left by a killed process
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left)
        done = _train(cache_dir, java, _options(java)[_MAKE] + making)
        if done and os.path.isfile(making):
            os.replace(making, file)
            _forget_old(cache_dir)
        elif done is not None:  # a runtime without a base archive cannot make one: do not retry at every start
            open(file + ".failed", "w").close()
        return os.path.exists(file)


def _train(cache_dir, java, option):
    """Run a session that writes an archive when it ends. Return whether it did; None if stopped."""
    from standalone.pipeline.spark.session import SessionHolder

    conf = {"spark.driver.extraJavaOptions": option, "spark.master": "local[1]"}
    holder = SessionHolder(conf, cache_dir=cache_dir, java=java, archive_after_seconds=None)
    try:
        holder.request()
        started = holder.wait(DEADLINE_SECONDS) is not None
        if started:
            _first_jobs(holder)
    except KeyboardInterrupt:  # stopped
        holder.stop(patience=0)
        return None
    holder.stop(patience=DEADLINE_SECONDS)
    return started and holder.exit_code == 0


def _first_jobs(holder):
    """Run typical jobs of chains, so that the archive also holds the classes of a task's first batch."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    from standalone.pipeline.spark.job import Projection

    rows = range(1000)
    table = pa.table(
        {
            "text": [str(row) for row in rows], "count": list(rows), "ratio": [float(row) for row in rows], "ok": [row % 2 == 0 for row in rows],
            "time": ["2026-01-01 00:00:00"] * len(rows), "inner": [{"name": "a", "size": row} for row in rows],
        }
    )  # fmt: skip

    def select(frame):
        inner = F.col("inner")
        return frame.select(
            F.col("text").cast("bigint").alias("number"), F.col("count").cast("string").alias("words"), F.col("ratio").cast("int").alias("whole"),
            F.col("ok").cast("tinyint").alias("flag"), F.concat(F.upper("text"), F.lit("!")).alias("loud"),
            F.when(F.col("count") > 10, F.lit("many")).otherwise(F.lit("few")).alias("some"), inner["name"].alias("name"),
            F.struct(inner["size"].alias("size"), F.col("text")).alias("both"), F.unix_millis(F.to_timestamp("time")).alias("millis"),
            F.date_format(F.to_timestamp("time"), "yyyy/MM/dd").alias("day"), F.regexp_replace("text", "[0-9]+", "-").alias("dashed"),
        )  # fmt: skip

    try:
        projection = Projection(select)
        for _ in range(2):
            projection.run(holder, table)
        session = holder.ready()
        session.createDataFrame(table).createOrReplaceTempView("rows_of_the_archive")
        session.sql("SELECT *, length(text) AS size FROM rows_of_the_archive WHERE count > 1")._jdf.queryExecution().analyzed().toJSON()
    except Exception as error:  # an archive of the start alone is useful too
        print(f"The archive is without the classes of a chain's first jobs: {error}", file=sys.stderr)


def _forget_old(cache_dir):
    """Delete all but the newest archives: each is 150 MB, and those of older Java or Spark versions are useless."""
    archives = [entry for entry in os.scandir(cache_dir) if entry.name.startswith("spark-") and entry.name.endswith(".jsa")]
    for entry in sorted(archives, key=lambda entry: entry.stat().st_mtime)[:-KEPT]:
        os.unlink(entry.path)


def main(arguments):
    """Return the exit code. Without arguments, use the Java and cache folder that the worker would use."""
    from standalone.pipeline.spark.session import default_cache_dir

    cache_dir, java = arguments or (default_cache_dir(), jvm.find_java())
    if java is None:
        print(f"No Java {jvm.OLDEST} or newer was found.", file=sys.stderr)
        return 1
    return 0 if build(cache_dir, java) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.argv[1:]:  # started by a worker, which has priority
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, 19)
    sys.exit(main(sys.argv[1:]))
