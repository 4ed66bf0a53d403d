"""Real databases for the tests of JDBC source and sink, each started once for a whole run; a test makes its own tables in them."""

import itertools
import os

import pytest

from tests.connectors.jdbc import databases
from tests.servers.mariadb import MariaDb
from tests.suite.shared import shared_server

_numbers = itertools.count()


@pytest.fixture
def sqlite_database(tmp_path):
    return databases.SqliteDatabase(tmp_path / "test.db")


@pytest.fixture
def postgresql_database(postgresql_server):
    """A schema of the test's own, in which its tables are."""
    with databases.PostgresqlDatabase(postgresql_server, f"test_{os.getpid()}_{next(_numbers)}") as database:
        yield database


@pytest.fixture
def generic_database(postgresql_server):
    with databases.GenericDatabase(postgresql_server, f"test_{os.getpid()}_{next(_numbers)}") as database:
        yield database


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory):
    with shared_server(tmp_path_factory, MariaDb()) as server:
        yield server


@pytest.fixture
def mariadb_database(mariadb_server):
    with databases.MariadbDatabase(mariadb_server, f"test_{os.getpid()}_{next(_numbers)}") as database:
        yield database


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database(request):
    """Each database in turn."""
    return request.getfixturevalue(f"{request.param}_database")
