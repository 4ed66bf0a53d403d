"""Real databases for the tests of JDBC source and sink, each started once for a whole run; a test makes tables of its own in them."""

import itertools
import os

import pytest

from tests.connectors.jdbc import databases
from tests.suite.shared import run_folder, shared

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory, load_server, give_up):
    servers = load_server("postgresql")
    try:
        with shared(run_folder(tmp_path_factory), "postgresql", lambda: servers.PostgreSql().start().handed_over()) as server:
            yield server
    except servers.Unavailable as reason:
        give_up(f"no PostgreSQL: {reason}")


@pytest.fixture
def sqlite_database(tmp_path):
    return databases.SqliteDatabase(tmp_path / "test.db")


@pytest.fixture
def postgresql_database(postgresql_server):
    """A schema of the test's own, in which its tables are."""
    with databases.PostgresqlDatabase(postgresql_server, f"test_{os.getpid()}_{next(_numbers)}") as database:
        yield database


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory, load_server, give_up):
    servers = load_server("mariadb")
    try:
        with shared(run_folder(tmp_path_factory), "mariadb", lambda: servers.MariaDb().start().handed_over()) as server:
            yield server
    except servers.Unavailable as reason:
        give_up(f"no MariaDB: {reason}")


@pytest.fixture
def mariadb_database(mariadb_server):
    with databases.MariadbDatabase(mariadb_server, f"test_{os.getpid()}_{next(_numbers)}") as database:
        yield database


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database(request):
    """Each database in turn."""
    return request.getfixturevalue(f"{request.param}_database")
