"""Which tests scripts/quick leaves out: those that take a process, a worker, a JVM, a browser, or seconds of their own.

They are found by what they ask for, so that a new test is where it belongs by itself; only what needs nothing and takes long is listed.
"""

import types

import pytest

# A fixture that a test asks for, itself or by way of another.
DEAR = {
    *("kafka", "broker", "outage_broker", "spark_holder", "spread_pipeline", "browser", "java", "secured"),
    *("shared_worker", "api", "worker", "ctl", "described", "connect_worker", "run_connector", "ui_worker", "on_embedded", "on_kafka"),
    *("command", "forks", "lab", "pytester", "run_tests", "search", "search_worker", "s3", "hdfs", "postgresql_server", "mariadb_server"),
}
# A parameter that names one of them: the fixture is asked for by that name alone.
DEAR_PARAMETERS = {f"{name}{more}" for name in ("postgresql", "mariadb") for more in ("", "_database", "_server")}
FOLDERS = ("tests/cli", "tests/rest", "tests/pipeline/test_own_", "tests/log/test_client_", "tests/log/test_broker_")
# Handlers of the embedded log, by themselves.
QUICK = tuple(f"tests/log/test_broker_{name}.py" for name in ("groups", "producers", "records", "segments", "topics", "versions"))
FILES = (
    *("tests/test_cli.py", "tests/test_cli_facts.py", "tests/test_docs.py", "tests/test_warm_up.py", "tests/test_golden.py", "tests/test_wheel.py", "tests/test_pages.py", "tests/test_testing.py"),
    *("tests/test_suites.py", "tests/log/test_broker_crash.py", "tests/log/test_broker_server.py", "tests/log/test_client.py"),
    *("tests/pipeline/test_session.py", "tests/pipeline/test_rows_equal_spark.py", "tests/pipeline/test_mixed.py"),
    *("tests/pipeline/test_errors_half.py", "tests/pipeline/test_engines.py"),
    *("tests/converters/test_json_quick.py", "tests/runtime/test_sink_ahead.py", "tests/runtime/test_errors_kill.py", "tests/runtime/test_providers.py"),
    *("tests/runtime/test_errors_sinks.py", "tests/runtime/test_errors_sources.py", "tests/runtime/test_errors_several.py", "tests/runtime/test_runners.py"),
    *("tests/runtime/test_errors_docs.py", "tests/runtime/test_errors_transforms.py", "tests/runtime/test_restarts.py", "tests/runtime/test_worker.py"),
    *("tests/runtime/test_bad_input.py", "tests/runtime/test_errors_golden.py", "tests/runtime/test_many_callers.py", "tests/runtime/test_spark_kill.py"),
    *("tests/runtime/test_machine.py", "tests/runtime/test_exactly_once.py", "tests/runtime/test_exactly_once_kill.py", "tests/connectors/test_mirror.py"),
    *("tests/schema_registry/test_connectors.py", "tests/schema_registry/test_worker.py", "tests/log/test_histories.py"),
    *("tests/log/test_transactions.py", "tests/runtime/test_crash_points.py", "tests/runtime/test_hostile.py", "tests/runtime/test_private_files.py"),
    *("tests/connectors/test_file_rotation.py", "tests/connectors/test_allowed_files.py", "tests/test_kernels.py"),
    *("tests/connectors/storage/test_lake_worker.py", "tests/connectors/storage/test_exactly_once.py", "tests/connectors/storage/test_files_source.py"),
    *("tests/connectors/jdbc/test_jdbc_exactly_once.py", "tests/connectors/jdbc/test_jdbc_source.py", "tests/connectors/jdbc/test_jdbc_machine.py"),
    # scripts/check runs it.
    "tests/test_layout.py",
    *("tests/connectors/logs/test_many_files.py", "tests/connectors/logs/test_nginx_example.py", "tests/connectors/logs/test_rotation_cases.py"),
    *("tests/schema_registry/test_embedded.py", "tests/runtime/test_resident.py", "tests/runtime/test_secured_log.py"),
    *("tests/connectors/logs/test_rotation.py", "tests/connectors/logs/test_log_source_in_a_worker.py", "tests/connectors/elasticsearch/test_faults.py", "tests/log/test_group_protocols.py"),
)
NOT_SLOW = "not slow"
_NONE = types.SimpleNamespace(params={})


def pytest_ignore_collect(collection_path, config):
    """Whole files of them are not even read: that took a quarter of the time."""
    if config.option.markexpr != NOT_SLOW or collection_path.suffix != ".py":
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    return True if not path.startswith(QUICK) and path.startswith((*FOLDERS, *FILES)) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks them `slow` before -m is looked at."""
    for item in items:
        if is_slow(item):
            item.add_marker(pytest.mark.slow)


def is_slow(item):
    if item.get_closest_marker("kafka") or item.get_closest_marker("spark") or DEAR & set(getattr(item, "fixturenames", ())):
        return True
    if item.nodeid.startswith(QUICK):
        return False
    if any(isinstance(value, str) and value in DEAR_PARAMETERS for value in getattr(item, "callspec", _NONE).params.values()):
        return True
    return item.nodeid.startswith((*FOLDERS, *FILES))
