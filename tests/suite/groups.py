"""Which tests share a process when several run at once (pytest -n): those of a file, and across files those that share something dear.

Under `--dist loadgroup` a group goes to one process as a whole. Groups are handed out in the order given here, the longest first, so that
no long one is left for the end. CONNECT_TEST_ORDER=SEED takes another order.
"""

import json
import os
import pathlib
import random
import shutil
import tempfile
import zlib

import pytest

ORDER = os.environ.get("CONNECT_TEST_ORDER")  # a seed: the tests of a file, and the files, in another order

# What a test asks for -> its group: one Spark session, one broker that is killed and frozen, one browser, one search server that is frozen.
BY_FIXTURE = {"spark_holder": "spark", "outage_broker": "outage", "browser": "browser", "search": "search"}
# Folders and files that take long, the longest first; the others follow as they are collected.
LONG = (
    "spark",
    "search",
    "browser",
    "outage",
    "tests/connectors/tables",
    "tests/log/test_kafka_faults.py",
    "tests/rest/test_replay.py",
    "tests/test_cli.py",
    "tests/log/test_broker_clients.py",
    "tests/rest/test_blocking.py",
    "tests/test_cli_facts.py",
    "tests/log/test_consumer.py",
    "tests/connectors/storage",
    "tests/rest/test_secrets.py",
    "tests/cli/test_offsets.py",
    "tests/log/test_producer.py",
    "tests/runtime/test_errors_sinks.py",
    "tests/log/test_group.py",
    "tests/runtime/test_crash_points.py",
    "tests/log/test_broker_transactions.py",
    "tests/runtime/test_sink_ahead.py",
    "tests/log/test_broker_crash.py",
    "tests/test_warm_up.py",
    "tests/test_suite.py",
    "tests/connectors/jdbc",
    "tests/connectors/postgres_cdc",
    "tests/pipeline",
    "tests/runtime",
    "tests/log",
    "tests/rest",
    "tests/cli",
)


def pytest_collection_modifyitems(config, items):
    groups = {item.nodeid: group_of(item) for item in items}
    if ORDER:
        random.Random(ORDER).shuffle(items)
        items.sort(key=lambda item: zlib.crc32(f"{ORDER} {item.nodeid.partition('::')[0]}".encode()))  # files stay together: they share fixtures
    elif hasattr(config, "workerinput"):
        # Stable: within a group as they were collected, but for those that end what it shares.
        items.sort(key=lambda item: (_turn(groups[item.nodeid]), item.get_closest_marker("last") is not None))
    if hasattr(config, "workerinput"):
        told = pathlib.Path(config.workerinput["groups"])
        part = told.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(groups))
        part.rename(told)


def group_of(item):
    for fixture, group in BY_FIXTURE.items():
        if fixture in item.fixturenames:
            return group
    return "spark" if item.get_closest_marker("spark") else item.nodeid.partition("::")[0]


def _turn(group):
    return next((turn for turn, long in enumerate(LONG) if group.startswith(long)), len(LONG))


# --- In the process that hands out the tests --------------------------------------------------------------------------
# It collects nothing itself, and knows of a test its name alone: the others tell it the groups by a file.


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["groups"] = _told(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        """As xdist's own of that name, which as of 3.8 looks for the group in a part of the name that pytest 9 no longer has."""

        groups = None

        def _split_scope(self, nodeid):
            self.groups = self.groups or json.loads(pathlib.Path(_told(config)).read_text())
            return self.groups[nodeid]

    return ByGroup(config, log)


def pytest_unconfigure(config):
    if hasattr(config, "told_groups"):
        shutil.rmtree(config.told_groups, ignore_errors=True)


def _told(config):
    if not hasattr(config, "told_groups"):
        config.told_groups = tempfile.mkdtemp(prefix="connect-test-groups-")
    return f"{config.told_groups}/groups.json"
