"""A real PostgreSQL for JDBC and for change data, one for a whole run."""

import pytest

from tests.servers.postgresql import PostgreSql
from tests.suite.shared import shared_server


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory):
    with shared_server(tmp_path_factory, PostgreSql()) as server:
        yield server
