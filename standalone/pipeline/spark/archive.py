"""The class-data archive: Spark's classes as Java's memory has them once loaded, kept in the cache folder. It halves Spark's start.

Made once per Java and Spark, by the set-up or by its own process at the lowest priority, which runs the kinds of jobs that chains begin
with: `python -m standalone.pipeline.spark.archive [CACHE_DIR JAVA]`.
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
_OPTIONS = {  # from that version of Java on: the options that make an archive, and that use it
    17: ("-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="),
    25: ("-XX:AOTCacheOutput=", "-XX:AOTCache="),  # holds linked classes as well, and needs no archive of the runtime's own beneath
}
KEPT = 3


def path(cache_dir, java):
    """Where the archive of that Java and the installed Spark is, or would be."""
    key = "\n".join([java, jvm.full_version(java), *jvm.command(java, "1m")[1:]])
    return os.path.join(cache_dir, f"spark-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa")


def flag(cache_dir, java):
    """The option by which Java uses the archive, or None while there is none."""
    file = path(cache_dir, java)
    return _options(java)[_USE] + file if os.path.isfile(file) else None


def _options(java):
    version = jvm.java_version(java)
    return _OPTIONS[max((since for since in _OPTIONS if since <= version), default=min(_OPTIONS))]


def is_wanted(cache_dir, java):
    """Whether there is none yet, and none has been tried without success."""
    file = path(cache_dir, java)
    return not os.path.exists(file) and not os.path.exists(file + ".failed")


def make(cache_dir, java, stopping):
    """Have it made by another process; come back when that is done, or at once when we are to stop."""
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
    """Make the archive, here and now, unless another process is at it. True if there is one then."""
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
        for left in (making, making + ".config"):  # by one that was killed
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left)
        done = _train(cache_dir, java, _options(java)[_MAKE] + making)
        if done and os.path.isfile(making):
            os.replace(making, file)
            _forget_old(cache_dir)
        elif done is not None:  # a runtime without a base archive cannot make one: try it once, not at every start
            open(file + ".failed", "w").close()
        return os.path.exists(file)


def _train(cache_dir, java, option):
    """Start a session that leaves an archive when it ends: whether it did; None where it was told to stop."""
    from standalone.pipeline.spark.session import SessionHolder

    conf = {"spark.driver.extraJavaOptions": option, "spark.master": "local[1]"}
    holder = SessionHolder(conf, cache_dir=cache_dir, java=java, archive_after_seconds=None)
    try:
        holder.request()
        started = holder.wait(DEADLINE_SECONDS) is not None
        if started:
            _first_jobs(holder)
    except KeyboardInterrupt:  # told to stop
        holder.stop(patience=0)
        return None
    holder.stop(patience=DEADLINE_SECONDS)
    return started and holder.exit_code == 0


def _first_jobs(holder):
    """What chains compute most: the archive then holds the classes of a task's first batch as well as those of the session's start."""
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
    except Exception as error:  # an archive of the start alone is of use, too
        print(f"The archive is without the classes of a chain's first jobs: {error}", file=sys.stderr)


def _forget_old(cache_dir):
    """Keep the newest few: each is 150 MB, and those of an upgraded Java or Spark are of no use."""
    archives = [entry for entry in os.scandir(cache_dir) if entry.name.startswith("spark-") and entry.name.endswith(".jsa")]
    for entry in sorted(archives, key=lambda entry: entry.stat().st_mtime)[:-KEPT]:
        os.unlink(entry.path)


def main(arguments):
    """The exit code. Without arguments: for the Java that the worker would find, where the worker would look for the archive."""
    from standalone.pipeline.spark.session import default_cache_dir

    cache_dir, java = arguments or (default_cache_dir(), jvm.find_java())
    if java is None:
        print(f"No Java {jvm.OLDEST} or newer was found.", file=sys.stderr)
        return 1
    return 0 if build(cache_dir, java) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.argv[1:]:  # beside a worker, which comes first
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, 19)
    sys.exit(main(sys.argv[1:]))
