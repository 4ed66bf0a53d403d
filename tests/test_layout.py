"""The walls of the house: who may import whom, one owner for each outside package, public names only for plugins."""

import ast
import pathlib

import pytest

from tests.suite.patience import PATIENCE_SECONDS

ROOT = pathlib.Path(__file__).parent.parent
OURS = "standalone"

# part -> the parts it may import. A part is a module or a folder of standalone/.
LEAVES = {"errors", "clock", "extras", "files", "kernels", "private", "secrets", "wire"}
MAY_SEE = {
    "errors": {"secrets"},
    "extras": set(),
    "files": {"errors"},
    "private": set(),
    "secrets": set(),
    "clock": set(),
    "kernels": {"machine_code"},
    "machine_code": set(),
    "wire": {"kernels"},
    "data": LEAVES,
    "config": LEAVES | {"data"},
    "properties": LEAVES | {"config"},
    "connector": LEAVES | {"data", "config"},
    "expression": set(),
    "stage": LEAVES | {"data", "config", "expression"},
    "provider": LEAVES,
    "config_providers": LEAVES | {"", "data", "properties"},
    "converters": LEAVES | {"", "data", "config", "stage", "schema_registry"},
    "transforms": LEAVES | {"", "data", "config", "stage"},
    "predicates": LEAVES | {"", "data", "config", "stage"},
    "pipeline": LEAVES | {"data", "config", "expression", "stage"},
    "log": LEAVES,
    "schema_registry": LEAVES | {"", "config", "log", "rest"},
    "plugins": LEAVES | {"", "config", "connector", "provider", "stage"},
    "runtime": LEAVES | {"", "data", "config", "properties", "connector", "provider", "stage", "plugins", "pipeline", "log", "rest", "schema_registry", "streams", "machine_code"},
    "streams": LEAVES | {"", "data", "config", "properties", "connector", "provider", "stage", "plugins", "pipeline", "log", "runtime"},
    "rest": LEAVES | {"", "config", "properties", "runtime", "schema_registry", "streams", "tools"},
    "tools": LEAVES | {"", "data", "config", "connector", "stage", "pipeline", "log", "runtime", "schema_registry"},
    "cli": LEAVES | {"", "config", "properties", "runtime", "rest", "tools", "schema_registry"},
    "testing": {"*"},
    "suites": {"*"},
    "local_worker": {"*"},
    "pytest_plugin": {"local_worker"},
    "warm_up": {"kernels", "machine_code"},
    "public": {"config", "connector", "converters", "data", "errors", "expression", "files", "log", "provider", "stage", "wire"},
    "": {"public"},
}

OWNERS = {  # outside package -> the parts that may import it
    "kafka": {"log"},
    "click": {"cli"},
    "rich": {"cli"},
    "sqlite3": {"runtime", "log", "schema_registry", "connectors"},
    "psycopg": {"connectors"},
    "pymysql": {"connectors"},
    "sqlalchemy": {"connectors"},
    "sqlite_utils": {"runtime", "schema_registry"},
    "starlette": {"rest", "schema_registry"},
    "uvicorn": {"rest"},
    "urllib3": {"schema_registry", "connectors"},
    "grpc_tools": {"schema_registry"},
    "prometheus_client": {"rest"},
    "pyspark": {"pipeline", "streams"},
    "sqlglot": {"streams"},
    "numba": {"kernels", "machine_code"},
    "pyarrow": {"wire", "data", "log", "converters", "pipeline", "connectors", "streams", "testing"},
    "cramjam": {"log"},
    "lz4": {"log"},
    "fastavro": {"converters", "schema_registry"},
    "jsonschema": {"converters", "schema_registry"},
    "google_crc32c": {"log"},
    "regex": {"data"},
    "freezegun": set(),
}


def _modules(folder):
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts)


def _imports(path):
    """(module, names) of every import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, ()
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", tuple(name.name for name in node.names)


def _part(path):
    first = path.relative_to(ROOT / OURS).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def _seen(module, names):
    """The parts of standalone/ that an import reaches."""
    pieces = module.split(".")
    if pieces[0] != OURS:
        return set()
    if len(pieces) > 1:
        return {pieces[1]}
    parts = {name for name in names if name in MAY_SEE}
    return parts | ({""} if set(names) - parts or not names else set())


@pytest.mark.parametrize("path", _modules(OURS), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path):
    part = _part(path)
    allowed = MAY_SEE[part] | {part}
    for module, names in _imports(path):
        strange = _seen(module, names) - allowed
        assert "*" in allowed or not strange, f"{part or 'the root'} must not import {strange} ({module})"


@pytest.mark.parametrize("path", _modules(OURS) + _modules("connectors"), ids=lambda path: str(path.relative_to(ROOT)))
def test_each_outside_package_has_one_home(path):
    part = _part(path) if path.is_relative_to(ROOT / OURS) else "connectors"
    for module, _ in _imports(path):
        owners = OWNERS.get(module.split(".")[0])
        assert owners is None or part in owners, f"{module} belongs to {sorted(owners)}"


@pytest.mark.parametrize("path", sorted((ROOT / OURS / "schema_registry").glob("*.py")), ids=lambda path: path.name)
def test_the_client_of_the_schema_registry_sees_no_server(path):
    for module, _ in _imports(path):
        assert not module.startswith((f"{OURS}.rest", f"{OURS}.schema_registry.server", "starlette", "sqlite")), module


ALSO_SEE = {
    "mirror": {f"{OURS}.log"},  # what copies a log is a client of logs
    "storage": {f"{OURS}.converters.json", f"{OURS}.converters.avro.rows"},  # files hold what converters write
}


@pytest.mark.parametrize("path", _modules("connectors"), ids=lambda path: str(path.relative_to(ROOT)))
def test_connectors_see_public_names_only(path):
    clients = next((seen for folder, seen in ALSO_SEE.items() if path.is_relative_to(ROOT / "connectors" / folder)), set())
    for module, _ in _imports(path):
        assert not module.startswith(f"{OURS}.") or module in clients, f"{module} is not public"


def test_nothing_in_standalone_imports_connectors():
    for path in _modules(OURS):
        assert not any(module.split(".")[0] == "connectors" for module, _ in _imports(path)), path


def test_threads_are_started_only_where_they_may():
    homes = {"runtime", "streams", "tools", "rest", "pipeline/spark/session.py", "log/broker/server.py", "log/broker/tokens.py", "testing.py", "local_worker.py"}
    homes |= {"warm_up.py", "kernels.py", "suites.py", "schema_registry/server/listener.py"}
    for path in _modules(OURS):
        where = str(path.relative_to(ROOT / OURS))
        if "threading.Thread(" in path.read_text():
            assert where in homes or where.split("/")[0] in homes, where


def test_files_stay_readable():
    for path in _modules(OURS) + _modules("connectors"):
        lines = path.read_text().count("\n")
        assert lines <= 700, f"{path.relative_to(ROOT)} has {lines} lines: it holds more than one idea"


def test_every_test_waits_as_long_as_the_slowest_machine_needs():
    """A wait ends as soon as what it is for is there; one that gives up early fails on a machine that has more to do."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        found = [node.lineno for node in ast.walk(ast.parse(path.read_text())) if _is_a_short_deadline(node)]
        assert not found, f"{path.relative_to(ROOT)} has its own deadline in lines {found}; the one for all is in tests/suite/patience.py"


def test_no_client_is_asked_what_it_dies_of():
    """tests/log/committed.py says why; the matrix asks it on purpose, in its own process, of a log that is always ready."""
    for path in sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]):
        if path != pathlib.Path(__file__) and "matrix-clients" not in path.parts:
            assert ".list_consumer_group_offsets(" not in path.read_text(), f"{path.relative_to(ROOT)}: ask group_offsets of tests/log/committed.py"


def _is_a_short_deadline(node):
    match node:
        case ast.Call(func=ast.Name(id="wait_for" | "until"), args=[_, ast.Constant(value=int() as seconds), *_]):
            return not isinstance(seconds, bool) and seconds < PATIENCE_SECONDS
        case ast.BinOp(left=ast.Call(func=ast.Attribute(attr="monotonic")), op=ast.Add(), right=ast.Constant(value=int() as seconds)):
            return seconds < PATIENCE_SECONDS
    return False
