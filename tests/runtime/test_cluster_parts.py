"""What tasks on a cluster are made of, each part alone: shares of partitions, the channel, the relayed group, keys and secrets, the archive."""

import dataclasses
import importlib.util
import os
import pathlib
import py_compile
import socket
import subprocess
import sys
import threading
import zipfile

import orjson
import pytest
from pyspark.serializers import read_int
from pytest import param

from standalone.clock import SYSTEM
from standalone.errors import ConfigError, ConnectError, LogRetriableError
from standalone.log.group_link import ASSIGNED, LOST, REVOKED
from standalone.log.link import Waker
from standalone.log.relayed_group import RelayedGroup
from standalone.pipeline.spark import executors
from standalone.pipeline.spark.executors import ARCHIVE
from standalone.runtime.cluster import executor_task, shares
from standalone.runtime.cluster.control_channel import ChannelLost, ChannelServer, new_key, open_channel
from standalone.runtime.cluster.modules import make_archive
from standalone.runtime.cluster.options import PROTECTIONS, check_protection, for_executors, runs_on_cluster, secret_texts
from standalone.runtime.cluster.payload import TaskPayload
from standalone.runtime.cluster.shares import Holder, Shares, shared_out
from tests.runtime.local import wait_for
from tests.suite.patience import PATIENCE_SECONDS

EIGHT = {("t", number) for number in range(8)}


# ---- shares


@pytest.mark.parametrize(
    "had, sizes",
    [
        param({0: set()}, [8], id="one has all"),
        param({0: set(), 1: set(), 2: set()}, [3, 3, 2], id="evenly"),
        param({0: EIGHT, 1: set()}, [4, 4], id="the second gets half"),
        param({number: set() for number in range(10)}, [1] * 8 + [0, 0], id="more tasks than partitions"),
        param({0: EIGHT - {("t", 0)}, 1: {("t", 0)}, 2: {("gone", 1)}}, [3, 3, 2], id="what is no more is forgotten"),
    ],
)
def test_partitions_are_shared_out_evenly_and_stay_where_they_can(had, sizes):
    found = shared_out(EIGHT, had)
    assert sorted(map(len, found.values()), reverse=True) == sizes
    assert set().union(*found.values()) == EIGHT and sum(map(len, found.values())) == 8
    assert shared_out(EIGHT, found) == found
    for number, before in had.items():
        assert len(found[number] & before) == min(len(found[number]), len(before & EIGHT))


class _Member:
    """The group's member as far as Shares uses it; `group` is told what happens to it, on the thread of `poll`."""

    def __init__(self, listener):
        self.listener, self.committed, self.paused = listener, {}, set()
        self.group = []
        self.woken, self.closed = threading.Event(), False

    def subscribe(self, topics):
        self.group.append(("on_assigned", sorted(EIGHT)))

    def poll(self, seconds):
        self.woken.wait(min(seconds, 0.05))
        self.woken.clear()
        while self.group:
            kind, pairs = self.group.pop(0)
            getattr(self.listener, kind)(pairs)

    def wakeup(self):
        self.woken.set()

    def pause(self, pairs):
        self.paused |= set(pairs)

    def marks(self, pairs, seconds):
        return {pair: (self.committed[pair], "", -1) for pair in pairs if pair in self.committed}

    def commit(self, offsets, seconds):
        self.committed.update({pair: mark[0] for pair, mark in offsets.items()})

    def close(self, seconds):
        self.closed = True


class _Task:
    """A task's end: takes what it is given, and lets go at once of what is asked back unless it `hangs`."""

    def __init__(self, shared, number):
        self.shared, self.given, self.hangs = shared, {}, False
        self.holder = Holder(number, self._told)
        shared.there(self.holder)

    def _told(self, kind, pairs):
        if kind == "give":
            self.given.update(pairs)
        elif not self.hangs:
            for pair in pairs:
                del self.given[pair]
            self.shared.released(self.holder, pairs)

    def commit(self, offsets):
        answered, said = threading.Event(), []
        self.shared.commit(self.holder, {pair: (offset, "", -1) for pair, offset in offsets.items()}, 1, lambda error: (said.append(error), answered.set()))
        assert answered.wait(60)
        return said[0]


@pytest.fixture
def sharing(monkeypatch):
    monkeypatch.setattr(shares, "SETTLE_SECONDS", 0.2)
    monkeypatch.setattr(shares, "GRACE_SECONDS", 1.0)
    members, failures = [], []

    def new_member(listener):
        members.append(_Member(listener))
        return members[-1]

    shared = Shares("tested", new_member, {"topics": ["t"]}, SYSTEM, 0.5, lambda _, error: failures.append(error))
    shared.member, shared.failures = members[0], failures
    yield shared
    shared.close(60)
    assert shared.member.closed and not failures


def test_two_tasks_have_all_partitions_and_the_member_fetches_none(sharing):
    for number in (0, 1):
        sharing.expect(number)
    one, two = _Task(sharing, 0), _Task(sharing, 1)
    wait_for(lambda: len(one.given) == len(two.given) == 4)
    assert one.given.keys() | two.given.keys() == EIGHT == sharing.member.paused


def test_a_task_that_was_cut_off_finds_its_own_partitions_again_from_what_is_committed(sharing):
    one, two = _Task(sharing, 0), _Task(sharing, 1)
    wait_for(lambda: len(one.given) == len(two.given) == 4)
    mine = set(two.given)
    assert two.commit(dict.fromkeys(mine, 7)) is None
    sharing.gone(two.holder, for_good=False)
    again = _Task(sharing, 1)
    wait_for(lambda: len(again.given) == 4)
    assert again.given == dict.fromkeys(mine, (7, "", -1)) and len(one.given) == 4


def test_what_a_zombie_commits_is_refused(sharing):
    old = _Task(sharing, 0)
    wait_for(lambda: len(old.given) == 8)
    sharing.gone(old.holder, for_good=False)
    new = _Task(sharing, 0)
    wait_for(lambda: len(new.given) == 8)
    assert isinstance(old.commit({("t", 0): 99}), LogRetriableError)
    assert sharing.member.committed == {} and new.commit({("t", 0): 5}) is None and sharing.member.committed == {("t", 0): 5}


def test_the_share_of_a_task_that_does_not_come_back_goes_to_the_others(sharing):
    one, two = _Task(sharing, 0), _Task(sharing, 1)
    wait_for(lambda: len(one.given) == len(two.given) == 4)
    sharing.gone(two.holder, for_good=False)
    wait_for(lambda: len(one.given) == 8)


def test_the_share_of_a_task_that_failed_goes_to_the_others_at_once(sharing, monkeypatch):
    monkeypatch.setattr(shares, "GRACE_SECONDS", 3600)
    one, two = _Task(sharing, 0), _Task(sharing, 1)
    wait_for(lambda: len(one.given) == len(two.given) == 4)
    sharing.gone(two.holder, for_good=True)
    wait_for(lambda: len(one.given) == 8)


def test_a_partition_is_anothers_only_once_it_was_let_go(sharing):
    one = _Task(sharing, 0)
    wait_for(lambda: len(one.given) == 8)
    one.hangs = True
    two = _Task(sharing, 1)
    wait_for(lambda: len(one.holder.asked_back) == 4)
    assert not two.given and one.commit({pair: 3 for pair in one.given}) is None  # what it flushes on its way out counts
    sharing.released(one.holder, set(one.holder.asked_back))
    wait_for(lambda: len(two.given) == 4)
    assert set(two.given.values()) == {(3, "", -1)}


def test_what_the_group_takes_back_is_committed_before_others_have_it(sharing):
    one = _Task(sharing, 0)
    wait_for(lambda: len(one.given) == 8)
    sharing.member.group.append(("on_revoked", [("t", 0), ("t", 1)]))
    wait_for(lambda: len(one.given) == 6 and len(one.holder.held) == 6)
    assert isinstance(one.commit({("t", 0): 9}), LogRetriableError)


# ---- the control channel


@pytest.fixture
def server():
    channels = []

    def serve(channel):
        channels.append(channel)
        while True:
            kind, number, body = channel.receive()
            if kind == "double":
                channel.answer(number, 2 * body)

    server = ChannelServer("127.0.0.1", 0, serve)
    server.channels = channels
    yield server
    server.close()


def _listening(channel):
    def listen():
        with pytest.raises(ChannelLost):
            channel.receive()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    return thread


def test_a_question_is_answered_and_an_end_is_heard(server):
    channel = open_channel(("127.0.0.1", server.port), server.key)
    thread = _listening(channel)
    assert [channel.ask("double", number) for number in (1, 21)] == [2, 42]
    wait_for(lambda: server.channels)
    server.channels[0].close()
    thread.join(60)
    with pytest.raises(ChannelLost):
        channel.ask("double", 1)


def test_who_does_not_know_the_key_is_not_heard(server):
    with pytest.raises(ChannelLost, match="cannot be reached"):
        open_channel(("127.0.0.1", server.port), new_key())
    with socket.create_connection(("127.0.0.1", server.port)) as stranger:
        stranger.sendall(b"\0\0\0\x05hello")
        stranger.settimeout(60)
        while stranger.recv(1000):
            pass  # it is hung up on
    assert not server.channels


def test_a_task_that_is_slow_to_be_configured_is_not_silent(monkeypatch):
    monkeypatch.setattr(executor_task, "HEARTBEAT_SECONDS", 0.01)
    kinds, configured = [], threading.Event()

    def serve(channel):
        while True:
            kinds.append(orjson.loads(channel._connection.recv_bytes())[0])
            if kinds.count("heartbeat") > 2:
                configured.set()

    def slow(self):
        assert configured.wait(PATIENCE_SECONDS), kinds
        raise ConnectError("no such connector")

    monkeypatch.setattr(executor_task._ExecutorTask, "_new_runner", slow)
    server = ChannelServer("127.0.0.1", 0, serve)
    names = [field.name for field in dataclasses.fields(TaskPayload)]
    payload = {**dict.fromkeys(names), "connector": {"name": "slow"}, "hidden": [], "address": ("127.0.0.1", server.port), "key": server.key}
    ended = executor_task.run(payload, {"attempt": 0, "host": "there", "import_seconds": 0.0})
    server.close()
    assert ended["state"] == "FAILED" and "no such connector" in ended["trace"]


# ---- the group of a consumer whose member is elsewhere


class _Relay:
    def __init__(self):
        self.given_back, self.committed = [], []

    def commit(self, offsets, seconds):
        self.committed.append(offsets)

    def released(self, pairs):
        self.given_back.append(sorted(pairs))


def test_a_relayed_group_gives_what_it_is_given_and_tells_what_was_let_go():
    relay, waker = _Relay(), Waker()
    group = RelayedGroup(relay, waker)
    assert group.advance() is None
    group.give({("t", 0): (5, "m", 1), ("t", 1): None})
    assert group.advance() == (ASSIGNED, [("t", 0), ("t", 1)])
    assert group.read([("t", 0), ("t", 1)], 1) == {("t", 0): (5, "m", 1)}
    group.taken([("t", 0), ("t", 1)])
    group.take_back([("t", 0)])
    assert group.advance() == (REVOKED, [("t", 0)])
    group.write({("t", 0): (6, "m", 1)}, 1)
    group.let_go(REVOKED, [("t", 0)])
    assert relay.committed == [{("t", 0): (6, "m", 1)}] and relay.given_back == [[("t", 0)]]
    group.lose([("t", 1)])
    assert group.advance() == (LOST, [("t", 1)])
    group.let_go(LOST, [("t", 1)])
    assert group.advance() is None and relay.given_back == [[("t", 0)]]
    waker.close()


# ---- keys, secrets, modules


class _Plan:
    def __init__(self, **texts):
        self.originals = {key.replace("__", "."): value for key, value in texts.items()}


class _Config(dict):
    def spark(self):
        return {"spark.master": self["spark.master"]} if "spark.master" in self else {}


@pytest.mark.parametrize(
    "worker, own, there",
    [
        param({"tasks.run.on": "worker"}, {}, False, id="in the worker"),
        param({"tasks.run.on": "cluster", "spark.master": "spark://m:7077"}, {}, True, id="on a cluster"),
        param({"tasks.run.on": "cluster", "spark.master": "local-cluster[2,1,1024]"}, {}, True, id="on a small one"),
        param({"tasks.run.on": "cluster", "spark.master": "yarn"}, {"tasks__run__on": "worker"}, False, id="the connector's own key goes before"),
        param({"tasks.run.on": "worker", "spark.master": "k8s://m"}, {"tasks__run__on": "cluster"}, True, id="either way"),
    ],
)
def test_where_tasks_run(worker, own, there):
    assert runs_on_cluster(_Plan(**own), _Config(worker)) is there


def test_a_cluster_must_be_named():
    with pytest.raises(ConfigError, match=r"spark.master=local\[2\] has none"):
        runs_on_cluster(_Plan(), _Config({"tasks.run.on": "cluster", "spark.master": "local[2]"}))


def test_secrets_do_not_travel_in_the_clear():
    check_protection(set(), {})
    check_protection({"connection.password"}, dict.fromkeys(PROTECTIONS, "true"))
    for missing in PROTECTIONS:
        with pytest.raises(ConfigError, match=f"connection.password.*set {missing}=true in"):
            check_protection({"connection.password"}, {**dict.fromkeys(PROTECTIONS, "true"), missing: "false"})


def test_what_looks_like_a_secret_of_the_workers():
    texts = {"producer.sasl.jaas.config": "x", "ssl.key.password": "", "bootstrap.servers": "a:1", "admin.ssl.keystore.key": "k"}
    assert secret_texts(texts) == {"producer.sasl.jaas.config", "admin.ssl.keystore.key"}


@pytest.mark.slow
def test_the_archive_has_our_packages_and_the_plugins(tmp_path):
    package = tmp_path / "plugins" / "some"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "words.txt").write_text("data")
    (tmp_path / "plugins" / "lone.py").write_text("")
    (tmp_path / "plugins" / "java.jar").write_text("")
    entries = make_archive(tmp_path / "modules.zip", [str(tmp_path / "plugins")])
    names = set(zipfile.ZipFile(tmp_path / "modules.zip").namelist())
    assert entries == ["plugin-path/0"]
    assert {"standalone/__init__.py", "connectors/file/source.py", "plugin-path/0/lone.py", "plugin-path/0/some/words.txt"} <= names
    assert not any(name.endswith(".jar") for name in names)


@pytest.mark.slow
def test_the_archive_has_the_bytecode_of_the_present_text_and_executors_use_it(tmp_path):
    names = ("compiled", "edited", "fresh", "wrong")
    for name in names:
        (tmp_path / f"{name}.py").write_text("FOUND = 'first'")
    for name in ("compiled", "edited"):
        py_compile.compile(tmp_path / f"{name}.py", invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    (tmp_path / "edited.py").write_text("FOUND = 'edited'")
    (tmp_path / "wrong.py").write_text("no Python")
    entries = make_archive(tmp_path / "modules.zip", [str(tmp_path / f"{name}.py") for name in names])
    zipfile.ZipFile(tmp_path / "modules.zip").extractall(tmp_path / "unpacked")
    files = [tmp_path / "unpacked" / entry / f"{name}.py" for entry, name in zip(entries, names)]
    for file in files:
        file.write_text("FOUND = 'compiled where it is unpacked'")
    assert [_imported(file).FOUND for file in files] == ["first", "edited", "first", "compiled where it is unpacked"]
    assert (tmp_path / "unpacked" / importlib.util.cache_from_source("standalone/errors.py")).exists()


def _imported(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_an_executor_s_python_daemon_has_imported_what_its_tasks_need(tmp_path):
    """And has one thread yet, since it forks, but for those that are made for it."""
    make_archive(tmp_path / "modules.zip", [])
    zipfile.ZipFile(tmp_path / "modules.zip").extractall(tmp_path / ARCHIVE)
    environment = {**os.environ, **{key.removeprefix("spark.executorEnv."): value for key, value in for_executors({}).items()}, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", for_executors({})["spark.python.daemon.module"], "pyspark.worker"]
    environment["CONNECT_DAEMON_MODULES"] = f"a_package_that_nobody_has,{environment['CONNECT_DAEMON_MODULES']}"  # a task says so, where it is asked for
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        port = read_int(daemon.stdout)
        names = [thread.joinpath("comm").read_text().strip() for thread in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()]
        assert len([name for name in names if not name.startswith("jemalloc")]) == 1, names  # pyarrow's allocator takes care of forks
        with socket.create_connection(("127.0.0.1", port)) as spark, spark.makefile("rb") as said:
            task = read_int(said)
            maps = pathlib.Path(f"/proc/{task}/maps").read_text()
            assert task != daemon.pid and "pyarrow" in maps and "llvmlite" in maps and "orjson" in maps
        daemon.stdin.close()  # as when the executor ends
        daemon.wait(PATIENCE_SECONDS)


def test_a_user_s_settings_for_executors_stay():
    assert for_executors({"spark.executorEnv.PYTHONPATH": "/theirs"})["spark.executorEnv.PYTHONPATH"] == f"{ARCHIVE}:/theirs"
    assert for_executors({"spark.python.daemon.module": "pyspark.daemon"})["spark.python.daemon.module"] == "pyspark.daemon"


def test_an_executor_that_lacks_what_the_work_imports_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("pyspark.SparkFiles.getRootDirectory", lambda: str(tmp_path))
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "needy.py").write_text("import a_package_that_nobody_has")
    (said,) = executors._work("needy:run", {}, "modules")(())
    assert "a_package_that_nobody_has" in said["missing"] and said["python"] == sys.executable
    (tmp_path / "modules" / "ready.py").write_text("def run(payload, place): return payload, place")
    ((payload, place),) = executors._work("ready:run", 42, "modules")(())
    assert (payload, place["folder"]) == (42, str(tmp_path / "modules")) and place["import_seconds"] >= 0


def test_a_plugin_that_is_too_large_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("standalone.runtime.cluster.modules._MOST_BYTES", 10)
    with pytest.raises(ConnectError, match="too much to send"):
        make_archive(tmp_path / "modules.zip", [])
