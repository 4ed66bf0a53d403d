"""Long-running work on a Spark cluster: one job with one task, which occupies an executor core until it returns.

    jobs = LongJobs(holder, send)                    send(session): sees to it that executors have the modules
    jobs.run("task-1", "package.module:function", payload)   what `function(payload, place)` returned there

If an executor dies, Spark reschedules its task on another, without limit: `place["attempt"]` counts. Only the closure is sent, under
Spark's own authentication and encryption.
"""

import contextlib

from standalone.errors import ConnectError
from standalone.pipeline.spark.job import SparkGone

ARCHIVE = "connect-standalone-modules"  # the folder into which executors unpack it
_WAIT_SECONDS = 0.5


class NotThere(ConnectError):
    """An executor lacks packages that the work needs."""


class LongJobs:
    """Any thread may call; `run` waits until the work is done."""

    def __init__(self, holder, send):
        self._holder = holder
        self._send = send

    def driver(self, stopping):
        """(host at which executors reach this process, address to listen on), once a session runs. Raises ConnectError, SparkGone."""
        conf = self._session(stopping).sparkContext.getConf()
        host = conf.get("spark.driver.host")
        return host, conf.get("spark.driver.bindAddress", host)

    def run(self, group, entry, payload, stopping):
        """Run the work. Raise SparkGone if it was cancelled or Spark's Java process ended, NotThere, or Spark's error."""
        session = self._session(stopping)
        context = session.sparkContext
        try:
            self._send(session)
            context.setJobGroup(group, group, interruptOnCancel=True)
            (done,) = context.parallelize([0], 1).mapPartitions(_work(entry, payload, ARCHIVE)).collect()
        except Exception as error:
            if self._holder.died(session, error) or "cancelled" in str(error):
                raise SparkGone("the job was cancelled, or Spark's Java process ended") from error
            raise
        if isinstance(done, dict) and "missing" in done:
            raise NotThere(
                f"The executor on {done['host']} cannot run tasks: {done['missing']}. Its Python ({done['python']}) needs the packages that this "
                "worker has: install connect-standalone there, with the same extras, or name a Python that has them in spark.pyspark.python."
            )
        return done

    def cancel(self, group):
        session = self._holder.ready()
        if session is not None:
            with contextlib.suppress(Exception):  # the Java process may have ended, and the job with it
                session.sparkContext.cancelJobGroup(group)

    def _session(self, stopping):
        while (session := self._holder.wait(_WAIT_SECONDS)) is None:
            if stopping.is_set():
                raise SparkGone("the task is being stopped")
            if self._holder.failure is not None:
                raise ConnectError(f"Spark does not start: {self._holder.failure}")
        return session


def _work(entry, payload, archive):
    """Return the closure to send. It is pickled by value and imports nothing of ours at first: executors do not have our modules yet."""

    def work(_):
        import importlib
        import os
        import socket
        import sys
        import time

        from pyspark import SparkFiles, TaskContext

        context = TaskContext.get()
        place = {"host": socket.gethostname(), "attempt": context.attemptNumber() if context else 0, "stage": context.stageId() if context else 0}
        began = time.monotonic()
        folder = os.path.abspath(os.path.join(SparkFiles.getRootDirectory(), archive))
        if folder not in sys.path:
            sys.path.insert(0, folder)
        module, _, name = entry.partition(":")
        try:
            function = getattr(importlib.import_module(module), name)
        except ImportError as error:
            return iter([{"missing": f"{type(error).__name__}: {error}", "host": place["host"], "python": sys.executable}])
        return iter([function(payload, {**place, "folder": folder, "import_seconds": time.monotonic() - began})])

    work.__module__ = "__main__"  # forces pickling by value
    return work
