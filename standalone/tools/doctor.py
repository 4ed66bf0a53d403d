"""Checks a worker's prerequisites, on the machine and on the servers that it uses, without starting a worker.

    for finding in checks(worker_props): print(finding.level, finding.check, finding.found, finding.advice)

Each check is read-only, covers one thing and gives advice. An exception in a check is a FAIL of that check.
"""

import contextlib
import ctypes
import os
import pathlib
import resource
import shutil
import socket
import sys
import time
from typing import NamedTuple

from standalone import extras
from standalone.errors import ConnectError

OK, WARN, FAIL = "OK", "WARN", "FAIL"
_GIB = 1 << 30
_LEAST_FREE, _ENOUGH_FREE = _GIB // 4, 2 * _GIB
_LEAST_FILES, _ENOUGH_FILES = 256, 4096
_SPARK_SECONDS = 60
_UNSYNCHRONISED = 0x40  # STA_UNSYNC of adjtimex(2)
_OLDEST_PLAUSIBLE = 1_704_067_200  # 2024: an earlier time means that the clock was never set
_INOTIFY = "/proc/sys/fs/inotify"


class Finding(NamedTuple):
    check: str
    level: str
    found: str
    advice: str = ""


def checks(props=None, start_spark=False):
    """Yields findings. `props` are the properties in a worker's file; without them only the machine is checked."""
    config = None
    yield _python()
    yield _guarded("extras", _extras)
    yield _guarded("Java", _java)
    yield _guarded("Spark", _spark, start_spark)
    yield _guarded("clock", _clock)
    yield _guarded("open files", _open_files)
    yield _guarded("inotify", _inotify)
    if props is not None:
        from standalone.runtime.configuration.worker_config import WorkerConfig

        try:
            config = WorkerConfig.of(props)
        except ConnectError as error:
            yield Finding("worker's file", FAIL, str(error), "Correct these keys; docs/configuration.md lists all keys.")
        else:
            yield _keys(config)
    try:
        yield _guarded("state", _state, config)
        yield _guarded("disk", _disk, config)
        if config is not None:
            yield from (_guarded("listener", _listener, *address) for address in _addresses(config))
            yield _guarded("Kafka", _kafka, config)
            yield from (_guarded("schema registry", _registry, url, keys) for url, keys in _registries(config).items())
    finally:
        if config is not None:
            config.providers.close()


def _guarded(check, look, *arguments):
    try:
        return look(*arguments)
    except Exception as error:  # report it and continue with the other checks
        return Finding(check, FAIL, f"{error}" if isinstance(error, ConnectError) else f"{type(error).__name__}: {error}")


# --- The machine -----------------------------------------------------------------------------------------------------


def _python():
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 10):
        return Finding("Python", FAIL, version, "Install Python 3.10 or later.")
    return Finding("Python", OK, f"{version}, {sys.executable}")


def _extras():
    there = extras.installed()
    missing = [name for name, is_there in there.items() if not is_there and name not in ("jre", "kerberos")]
    if missing:
        advice = f"If you need them: pip install 'connect-standalone[{','.join(missing)}]'"
        return Finding("extras", WARN, f"not installed: {', '.join(missing)}", advice)
    return Finding("extras", OK, ", ".join(name for name, is_there in there.items() if is_there))


def _java():
    from standalone.pipeline.spark import java

    path = java.find_java()
    if path is None:
        return Finding("Java", WARN, f"no Java {java.OLDEST} or later", "Spark needs Java: install it, or pip install 'connect-standalone[jre]'.")
    return Finding("Java", OK, f"{java.full_version(path)}, {path}")


def _spark(start):
    if not extras.is_installed("pyspark"):
        return Finding("Spark", WARN, "not installed; the rows engine processes all records", "pip install pyspark")
    from importlib.metadata import version

    if not start:
        return Finding("Spark", OK, f"pyspark {version('pyspark')} (--spark starts it)")
    from standalone.pipeline.spark.session import SessionHolder

    began = time.monotonic()
    holder = SessionHolder(archive_after_seconds=None)
    try:
        session = holder.wait(_SPARK_SECONDS)
        if session is None:
            why = holder.failure or f"not started after {_SPARK_SECONDS} s"
            return Finding("Spark", FAIL, why, "The rows engine processes all records until Spark starts.")
        return Finding("Spark", OK, f"Spark {session.version} started in {time.monotonic() - began:.1f} s")
    finally:
        holder.stop()


def _clock():
    if time.time() < _OLDEST_PLAUSIBLE:
        return Finding("clock", FAIL, time.strftime("%Y-%m-%d %H:%M:%S"), "Set the clock: timestamps and retention depend on it.")
    zone = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    libc = ctypes.CDLL(None, use_errno=True)
    answer = ctypes.create_string_buffer(512)  # struct timex, all zero: only query
    if not hasattr(libc, "adjtimex") or libc.adjtimex(answer) < 0:
        return Finding("clock", OK, f"{zone}; synchronisation cannot be checked here")
    status = ctypes.c_int.from_buffer(answer, 5 * ctypes.sizeof(ctypes.c_long)).value  # modes (padded), offset, freq, maxerror, esterror
    if status & _UNSYNCHRONISED:
        advice = "Start a time service (systemd-timesyncd, chrony): tokens and certificates depend on the clock."
        return Finding("clock", WARN, f"{zone}, not synchronised", advice)
    return Finding("clock", OK, f"{zone}, synchronised")


def _open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{_limit(soft)} (at most {_limit(hard)})"
    if soft != resource.RLIM_INFINITY and soft < _ENOUGH_FILES:
        level = FAIL if soft < _LEAST_FILES else WARN
        return Finding("open files", level, found, f"ulimit -n {_ENOUGH_FILES}, or LimitNOFILE= in the unit: followed files and segments need them.")
    return Finding("open files", OK, found)


def _limit(number):
    return "no limit" if number == resource.RLIM_INFINITY else str(number)


def _inotify():
    limits = {}
    for name in ("max_user_watches", "max_user_instances"):
        with contextlib.suppress(OSError, ValueError):
            limits[name] = int(pathlib.Path(_INOTIFY, name).read_text())
    if not limits:
        return Finding("inotify", WARN, "not available", "File sources poll for new lines instead.")
    found = ", ".join(f"{name} {number}" for name, number in limits.items())
    if limits.get("max_user_watches", _ENOUGH_FILES) < _ENOUGH_FILES or limits.get("max_user_instances", 128) < 128:
        return Finding("inotify", WARN, found, "sysctl fs.inotify.max_user_watches=65536 fs.inotify.max_user_instances=512")
    return Finding("inotify", OK, found)


# --- The worker's own ------------------------------------------------------------------------------------------------


def _keys(config):
    if config.warnings:
        return Finding("worker's file", WARN, " ".join(config.warnings))
    return Finding("worker's file", OK, "all keys are known")


def _state(config):
    """Whether the state folder is writable and private."""
    folder = pathlib.Path(config.state_dir if config else ".").absolute()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        return Finding("state", FAIL, f"{nearest} is not writable", f"Change its owner to user {os.getuid()}, or set state.dir.")
    paths = [folder, *(folder.glob("*") if folder != pathlib.Path.cwd() else ())]
    open_to_all = [path for path in paths if path.is_file() and path.stat().st_mode & 0o077]
    if open_to_all:
        return Finding("state", WARN, f"other users can read {open_to_all[0]}", f"chmod go= {folder}/*")
    return Finding("state", OK, str(folder) + ("" if folder.exists() else " (will be created)"))


def _disk(config):
    folders = {"state": config.state_dir, "log": config.log_dir()} if config else {"here": "."}
    least, found = None, []
    for name, folder in folders.items():
        path = pathlib.Path(folder).absolute()
        usage = shutil.disk_usage(next(each for each in (path, *path.parents) if each.exists()))
        least = usage.free if least is None else min(least, usage.free)
        found.append(f"{name} {usage.free / _GIB:.1f} GiB free of {usage.total / _GIB:.1f}")
    if least < _ENOUGH_FREE:
        level = FAIL if least < _LEAST_FREE else WARN
        return Finding("disk", level, ", ".join(found), "Free disk space, or set embedded.log.retention.bytes: tasks fail when the disk is full.")
    return Finding("disk", OK, ", ".join(found))


# --- Network and servers ---------------------------------------------------------------------------------------------


def _addresses(config):
    """[(key, host, port)] that the worker will listen on."""
    from urllib.parse import urlsplit

    found = [("listeners", urlsplit(each).hostname, urlsplit(each).port) for each in config["listeners"] or ()]
    if config.embedded:
        for each in config["embedded.log.listener"].split(","):
            host, _, port = each.rpartition("://")[2].rpartition(":")
            found.append(("embedded.log.listener", host.strip("[]"), int(port)))
    return [(key, host or "127.0.0.1", port) for key, host, port in found if port]


def _listener(key, host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            return Finding(key, WARN, f"{host}:{port}: {error.strerror}", "A worker may be running already; otherwise choose another port.")
    return Finding(key, OK, f"{host}:{port} is free")


def _kafka(config):
    if config.embedded:
        return Finding("Kafka", OK, f"the embedded log in {config.log_dir()}")
    from standalone.tools.log_access import LogAccess

    with LogAccess.of_worker(config) as log:
        began = time.monotonic()
        topics = log.admin.list_topics()
        return Finding("Kafka", OK, f"{log.bootstrap}: {len(topics)} topics, answered in {1000 * (time.monotonic() - began):.0f} ms")


def _registries(config):
    """{address: the converter's keys} of the converters' registries."""
    from standalone.runtime.configuration.worker_config import converter_props
    from standalone.runtime.configuration.worker_keys import CONVERTERS, EMBEDDED

    found = {}
    for key in CONVERTERS:
        props = converter_props(key, config.originals)
        url = (props.get("schema.registry.url") or "").strip()
        if url and url != EMBEDDED:
            found.setdefault(url, props)
    return found


def _registry(url, keys):
    from standalone.schema_registry.client import SchemaRegistryClient

    client = SchemaRegistryClient.from_config({**keys, "max.retries": "0"})
    try:
        return Finding("schema registry", OK, f"{_without_user(url)}: {len(client.subjects())} subjects")
    finally:
        client.close()


def _without_user(url):
    return ",".join(f"{scheme}{slashes}{rest.rpartition('@')[2]}" for scheme, slashes, rest in (each.partition("://") for each in url.split(",")))
