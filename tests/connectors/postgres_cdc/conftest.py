"""Each test of PostgresCdcSource has its own database in the PostgreSQL of the run, and slots named after that."""

import itertools
import os

import pytest

from tests.connectors.postgres_cdc.database import Database

_numbers = itertools.count()


@pytest.fixture
def database(postgresql_server):
    with Database(postgresql_server["port"], f"cdc_{os.getpid()}_{next(_numbers)}") as database:
        yield database
