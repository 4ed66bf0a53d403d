"""A real PostgreSQL for the tests of PostgresCdcSource; each test has a database of its own in it, and slots named after that."""

import itertools
import os

import pytest

from tests.connectors.postgres_cdc.database import Database
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
def database(postgresql_server):
    with Database(postgresql_server["port"], f"cdc_{os.getpid()}_{next(_numbers)}") as database:
        yield database
