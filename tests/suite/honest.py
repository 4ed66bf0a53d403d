"""A suite that proves what it says: no skips where everything is known to be there, and a list of what failed for those who ask.

CONNECT_TEST_REQUIRE_SERVERS=1   a skip is a failure, unless its reason is listed here
CONNECT_TEST_FAILED=FILE         the tests that failed, a line each; written only when the run came to its end
"""

import os
import pathlib
import re

import pytest

# Reasons that are in the machine's nature, not in something that was forgotten.
MAY_SKIP = (
    r"Python 3\.10 has no atomic groups",
    r"no systemd-analyze",
    r"SCHEMA_REGISTRY_PEER=apicurio starts Apicurio's registry",  # 140 MB: at night
)
ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


def are_servers_required():
    return os.environ.get("CONNECT_TEST_REQUIRE_SERVERS") == "1"


def refused(reason):
    """What to say of a skip for that reason, or None where it may be."""
    if not are_servers_required() or any(re.search(known, reason) for known in MAY_SKIP):
        return None
    return f"skipped where nothing may be skipped (CONNECT_TEST_REQUIRE_SERVERS=1): {reason}"


def _refuse_skip(report):
    # An expected failure is reported as skipped, too: wasxfail distinguishes them.
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        said = refused(reason)
        if said is not None:
            report.outcome = "failed"
            report.longrepr = said


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector):
    report = yield
    _refuse_skip(report)
    return report


class Failures:
    """Notes down what failed: in the one process, or in the one that hands out to others."""

    def __init__(self, path):
        self._path = path
        self._ids = {}
        path.unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._ids[report.nodeid] = None

    def pytest_collectreport(self, report):
        if report.failed:
            self._ids[report.nodeid] = None

    def pytest_sessionfinish(self, exitstatus):
        if exitstatus in ENDED:
            self._path.write_text("".join(f"{each}\n" for each in self._ids), encoding="utf-8")


def pytest_configure(config):
    path = os.environ.get("CONNECT_TEST_FAILED")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(pathlib.Path(path)), "failures")
