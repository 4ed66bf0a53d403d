"""What the suite itself promises: nothing skipped in silence, luck counted, servers shared and stopped, soaks that can fail."""

import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import urllib.error

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.servers import kafka_broker
from tests.suite import examples, groups
from tests.suite.shared import is_running, shared, shared_server

pytest_plugins = "pytester"

ROOT = pathlib.Path(__file__).parent.parent


# --- Nothing is skipped in silence -----------------------------------------------------------------------------------


@pytest.fixture
def run_tests(pytester, monkeypatch):
    """run_tests(code, option…): pytest with the suite's rules on a file of tests; a skip is allowed unless `required`."""

    def run(code, *options, required=True):
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setenv("CONNECT_TEST_REQUIRE_SERVERS", "1" if required else "0")
        monkeypatch.setenv("CONNECT_TEST_FAILED", str(pytester.path / "failed"))
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # those that are installed take four fifths of such a run
        monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
        pytester.makepyfile(f"import pytest\n{code}")
        wanted = ["-p", "tests.suite.honest", "-p", "tests.suite.groups", "-p", "no:cacheprovider", *(("-p", "xdist") if "-n" in options else ())]
        return pytester.runpytest_subprocess(*wanted, *options)

    return run


SKIPS = {
    "in the test": "def test(): pytest.skip('no server')",
    "by a mark": "@pytest.mark.skipif(True, reason='no server')\ndef test(): pass",
    "in a fixture": "@pytest.fixture\ndef server(): pytest.skip('no server')\ndef test(server): pass",
    "a module": "pytest.importorskip('no_such_library', reason='no server')\ndef test(): pass",
}


@pytest.mark.parametrize("code", SKIPS.values(), ids=SKIPS)
def test_a_skip_is_a_failure_where_servers_are_required(run_tests, code):
    done = run_tests(code)
    assert done.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    done.stdout.fnmatch_lines(["*CONNECT_TEST_REQUIRE_SERVERS=1*no server*"])


@pytest.mark.parametrize("code", SKIPS.values(), ids=SKIPS)
def test_a_skip_is_a_skip_elsewhere(run_tests, code):
    done = run_tests(code, required=False)
    assert done.ret in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


@pytest.mark.parametrize(
    "code",
    ["@pytest.mark.xfail(strict=True)\ndef test(): assert False", "def test(): pytest.skip('no systemd-analyze')"],
    ids=["an expected failure", "a reason that is in the machine"],
)
def test_what_may_be_skipped_everywhere(run_tests, code):
    assert run_tests(code).ret == pytest.ExitCode.OK


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadgroup")], ids=["one process", "several"])
def test_what_failed_is_noted_by_name(run_tests, pytester, options):
    run_tests("@pytest.mark.parametrize('at', ['a@b', 'c'])\ndef test(at): assert at == 'c'\ndef test_good(): pass", *options)
    (name,) = (pytester.path / "failed").read_text().splitlines()
    assert name.endswith("::test[a@b]")


def test_a_run_that_did_not_end_notes_nothing(run_tests, pytester):
    run_tests("def test_bad(): assert False\ndef test(): raise KeyboardInterrupt")
    assert not (pytester.path / "failed").exists()


# --- Luck is counted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failed, known, passes_now, code, counted",
    [
        pytest.param("t.py::a\n", "", True, 0, ["1 t.py::a"], id="the first time it is noted"),
        pytest.param("t.py::a\n", "1 t.py::a\n", True, 1, ["2 t.py::a"], id="the second time it fails"),
        pytest.param("t.py::a[x y]\nt.py::b\n", "1 t.py::b\n", True, 1, ["1 t.py::a[x y]", "2 t.py::b"], id="one of two not for the first time"),
        pytest.param("t.py::a\n", "1 t.py::b\n", True, 0, ["1 t.py::a", "1 t.py::b"], id="others stay listed"),
        pytest.param("t.py::a\n", "", False, 1, [], id="what fails again is a failure"),
        pytest.param("".join(f"t.py::a{at}\n" for at in range(11)), "", True, 1, [], id="eleven at once are not luck"),
        pytest.param("", "", True, 1, [], id="none failed, so the run did"),
        pytest.param(None, "", True, 1, [], id="the run did not end"),
    ],
)
def test_a_test_that_passes_when_run_again(tmp_path, failed, known, passes_now, code, counted):
    if failed is not None:
        (tmp_path / "failed").write_text(failed)
    (tmp_path / "flaky.txt").write_text(f"# a comment\n{known}")
    command = [sys.executable, "-c", f"import sys; open(r'{tmp_path}/ran', 'w').write(repr(sys.argv[1:])); sys.exit({0 if passes_now else 1})"]
    done = subprocess.run([sys.executable, ROOT / ".ci/flaky.py", tmp_path / "failed", tmp_path / "flaky.txt", *command], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    lines = [line for line in (tmp_path / "flaky.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines == (counted or known.splitlines())
    if counted:
        assert (tmp_path / "ran").read_text() == repr(failed.splitlines())


# --- Examples --------------------------------------------------------------------------------------------------------


@settings(max_examples=7)
@given(st.integers())
def tried(number):
    pass


def test_the_night_tries_more_examples_and_other_ones():
    held = getattr(tried, examples._HELD)
    assert (held.max_examples, held.deadline) == (7, None)
    longer = examples.scaled(held, 20)
    assert (longer.max_examples, longer.derandomize, longer.deadline) == (140, False, None)


def test_the_quick_tests_try_fewer_examples_and_the_same_ones():
    held = examples.scaled(settings(max_examples=100, derandomize=True), 0.2)
    assert (held.max_examples, held.derandomize) == (20, True)
    assert examples.scaled(settings(max_examples=4), 0.2).max_examples == 4


def test_a_server_that_the_quick_tests_ask_for_fails_them(tmp_path_factory, monkeypatch):
    """Else each process starts it, and nobody sees where the minute goes."""
    monkeypatch.setenv("CONNECT_TEST_QUICK", "1")
    with pytest.raises(AssertionError, match="no server, and kafka is asked for"), shared_server(tmp_path_factory, kafka_broker.KafkaBroker()):
        pass


# --- Groups and ports ------------------------------------------------------------------------------------------------


def test_processes_choose_from_ports_of_their_own(monkeypatch):
    found = {}
    for worker in range(4):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{worker}")
        found[worker] = {kafka_broker.free_port() for _ in range(30)}
    assert all(not found[one] & found[other] for one in found for other in found if one < other)


@pytest.mark.parametrize("processes", [(), ("-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder")], ids=["one process", "several"])
def test_a_group_goes_to_one_process(run_tests, pytester, processes):
    """Ten files, five tests each, and one test of each file in a group across them."""
    code = "import os, pytest\n@pytest.fixture\ndef spark_holder(): pass\n"
    code += "def note(name): open('ran', 'a').write(f'{name} {os.getpid()}\\n')\n"
    code += "@pytest.mark.parametrize('at', range(4))\ndef test(at): note(__name__)\ndef test_spark(spark_holder): note('spark')\n"
    pytester.makepyfile(**{f"test_{number}": code for number in range(10)})
    done = run_tests("def test(): pass", *processes)
    assert done.ret == 0, done.stdout.str()
    pids = {}
    for line in (pytester.path / "ran").read_text().splitlines():
        group, pid = line.split()
        pids.setdefault(group, []).append(pid)
    assert len(pids) == 11 and {group: len(each) for group, each in pids.items()} == {**dict.fromkeys(pids, 4), "spark": 10}
    assert all(len(set(each)) == 1 for each in pids.values()), pids


class Item:
    def __init__(self, nodeid, *fixtures, mark=None):
        self.nodeid, self.fixturenames, self._mark = nodeid, fixtures, mark

    def get_closest_marker(self, name):
        return name if name == self._mark else None


@pytest.mark.parametrize(
    "item, group",
    [
        pytest.param(Item("tests/a.py::t[1]"), "tests/a.py", id="by file"),
        pytest.param(Item("tests/a.py::t", "tmp_path", "spark_holder"), "spark", id="by what is shared"),
        pytest.param(Item("tests/a.py::t", mark="spark"), "spark", id="by its mark"),
    ],
)
def test_tests_are_grouped(item, group):
    assert groups.group_of(item) == group


def test_the_order_knows_every_group_and_names_no_file_that_is_gone():
    assert set(groups.BY_FIXTURE.values()) <= set(groups.LONG)
    assert [each for each in groups.LONG if each.startswith("tests/") and not (ROOT / each).exists()] == []


def test_what_ends_the_server_that_its_group_shares_comes_last(tmp_path):
    class Config:
        workerinput = {"groups": str(tmp_path / "groups.json")}

    items = [Item("tests/b.py::t"), Item("tests/rest/test_replay.py::kills", mark="last"), Item("tests/rest/test_replay.py::t"), Item("tests/a.py::t", "browser")]
    groups.pytest_collection_modifyitems(Config, items)
    assert [item.nodeid for item in items] == ["tests/a.py::t", "tests/rest/test_replay.py::t", "tests/rest/test_replay.py::kills", "tests/b.py::t"]


# --- Servers that are shared -----------------------------------------------------------------------------------------


def test_the_first_starts_a_server_and_the_last_stops_it(tmp_path):
    started = []

    def start():
        (tmp_path / "data").mkdir()
        started.append(subprocess.Popen(["sleep", "60"]))
        return {"pid": started[-1].pid, "folder": str(tmp_path / "data")}

    with shared(tmp_path, "server", start) as first:
        with shared(tmp_path, "server", start) as second:
            assert second == first
        assert is_running(first["pid"])
    assert len(started) == 1 and not is_running(first["pid"]) and not (tmp_path / "data").exists()
    with shared(tmp_path, "server", start) as third:
        assert is_running(third["pid"]) and len(started) == 2


def test_one_that_cannot_start_is_tried_again_by_the_next(tmp_path):
    def start():
        raise OSError("no room")

    for _ in range(2):
        with pytest.raises(OSError, match="no room"), shared(tmp_path, "server", start):
            pass


# --- Soaks -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def soak(monkeypatch):
    """soak(name): a module of scripts/soak."""
    import importlib

    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "soak"))
    return importlib.import_module


def test_a_thread_of_a_soak_that_failed_fails_the_soak(soak):
    def work():
        raise OSError("disk full")

    thread = soak("watched").watched(work)
    with pytest.raises(RuntimeError, match="work.*disk full"):
        thread.finish(10)


@pytest.mark.parametrize(
    "code, said",
    [
        pytest.param("raise SystemExit(3)", "by itself, with status 3", id="it was gone before"),
        pytest.param("import signal; print(flush=True); signal.sigwait([15]); raise SystemExit(1)", "status 1 after SIGTERM, not with 0", id="it failed on the way out"),
    ],
)
def test_a_worker_that_failed_fails_the_soak(soak, code, said):
    code = code if "sigwait" not in code else "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [15]); " + code
    worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    worker.stdout.readline()
    if "sigwait" not in code:
        worker.wait()
    with pytest.raises(SystemExit, match=said):
        soak("watched").end(worker, 15, "its log")
    worker.stdout.close()


def test_acts_that_are_answered_with_500_fail_the_soak(soak, tmp_path):
    import random

    run = soak("acts").Busy(tmp_path, "embedded", 1000, "none")

    def ask(method, path, body=None):
        raise urllib.error.HTTPError(path, 500, "broken", {}, None)

    run.ask = ask
    thread = soak("watched").watched(run.acts, "name", 3, random.Random(1))
    with pytest.raises(RuntimeError, match="500"):
        thread.finish(30)


@pytest.mark.parametrize("done, refused", [(3, 0), (10, 6)], ids=["too few were tried", "most were refused"])
def test_acts_that_prove_nothing_fail_the_soak(soak, tmp_path, done, refused):
    run = soak("acts").Busy(tmp_path, "embedded", 1000, "none")
    run.done, run.refused = ["pause"] * done, ["refused"] * refused
    with pytest.raises(SystemExit, match="proves nothing"):
        run.check_acts(10)


def test_every_line_that_is_to_be_made_wrong_is_there_and_its_tests_are():
    loader = importlib.machinery.SourceFileLoader("mutate", str(ROOT / "scripts" / "mutate"))
    mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
    loader.exec_module(mutate)
    places = mutate.chosen("")  # ends with what is not there once
    assert len(places) >= 40 and {module.partition("/")[0] for module, *_ in places} >= {"runtime", "log", "pipeline"}
    assert [name for _, _, tests, _ in places for name in tests.split() if not (ROOT / "tests" / name).exists()] == []


def test_the_night_runs_every_soak_with_options_that_it_has():
    steps = re.findall(r'soak (\w+) "([^"]*)" \\?\s*"([^"]*)"', (ROOT / "scripts/nightly").read_text())
    scripts = {path.stem: path.read_text() for path in (ROOT / "scripts/soak").glob("*.py") if "__main__" in path.read_text()}
    assert {name for name, *_ in steps} == scripts.keys() - {"fuzz"}  # what it needs is not installed for tests
    for name, *forms in steps:
        for option in re.findall(r"--[a-z-]+", " ".join(forms)):
            assert f'"{option}"' in scripts[name], (name, option)


# --- At night --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_night, ran", [(False, 2), (True, 4)])
def test_what_is_for_the_night_is_left_out_by_day(run_tests, monkeypatch, is_night, ran):
    monkeypatch.setenv("CONNECT_TEST_NIGHT", "1" if is_night else "")
    code = "from tests.suite.night import night\n@pytest.mark.parametrize('at', [1, *night(2)])\ndef test(at): pass\n"
    done = run_tests(code + "def test_always(): pass\n@pytest.mark.night\ndef test_long(): pass", "-p", "tests.suite.night")
    done.assert_outcomes(passed=ran, deselected=4 - ran)


def test_what_is_for_the_night_is_listed_with_what_covers_it_by_day():
    files = {path for path in (ROOT / "tests").rglob("test_*.py") if path.name != "test_suite.py" and re.search(r"mark\.night\b|\bnight\(|\bIS_NIGHT\b", path.read_text())}
    listed = (ROOT / "docs/CONTRIBUTING.md").read_text()
    missing = [path.relative_to(ROOT).as_posix() for path in files if path.relative_to(ROOT / "tests").as_posix() not in listed]
    assert missing == []


def test_scripts_are_shell_that_parses():
    for name in ("scripts/test", "scripts/quick", "scripts/nightly", "scripts/check", "scripts/environment", ".ci/run"):
        subprocess.run(["bash", "-n", ROOT / name], check=True)
        assert os.access(ROOT / name, os.X_OK), name
