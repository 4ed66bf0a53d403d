"""Inserts, updates, late commits, deletes and restarts in any order: what the source brings is what a model of its modes says.

Incrementing on PostgreSQL: every row that was ever committed comes, and comes once, whenever its transaction ends and wherever the task is
begun again. Timestamps and numbers on SQLite: the newest version of every row that stays comes, and no version comes twice but after a restart.
"""

import contextlib
import itertools

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.connectors.jdbc.tasks import SourceDriver

_tables = itertools.count()
SETTINGS = settings(max_examples=6, stateful_step_count=14, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


class _Machine(RuleBasedStateMachine):
    database = None
    options = {}

    @initialize()
    def begin(self):
        self.table = f"t{next(_tables)}"
        self.driver = SourceDriver(self.database)
        self.records = []
        self.last = None
        self.create()
        self.task = self._started()

    def _started(self):
        return self.driver.start(stored=self.last, **{"table.whitelist": self.table, **self.options})

    @rule()
    def poll(self):
        for _ in range(3):
            found = self.task.poll()
            self.records += found
            self.last = found[-1] if found else self.last

    @rule(back=st.integers(0, 3))
    def restart(self, back):
        """Begun again after the last record that was acknowledged; those after it come again."""
        self.task.close()
        kept = max(0, len(self.records) - back)
        del self.records[kept:]
        self.last = self.records[-1] if self.records else None
        self.task = self._started()

    def teardown(self):
        if hasattr(self, "task"):
            self.check()
            self.driver.__exit__()
            self.database.run(f"DROP TABLE {self.table}")

    def create(self):
        raise NotImplementedError

    def check(self):
        raise NotImplementedError


class LateCommits(_Machine):
    options = {"mode": "incrementing", "incrementing.column.name": "id", "batch.max.rows": "2"}

    def create(self):
        self.database.run(f"CREATE TABLE {self.table} (id BIGSERIAL PRIMARY KEY)")
        self.open, self.committed = [], set()

    @rule(count=st.integers(1, 3))
    def insert(self, count):
        with contextlib.closing(self.database.connect()) as connection:
            self.committed |= set(self._inserted(connection, count))
            connection.commit()

    @precondition(lambda self: len(self.open) < 3)
    @rule(count=st.integers(1, 2))
    def insert_and_wait(self, count):
        connection = self.database.connect()
        self.open.append((connection, self._inserted(connection, count)))

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 2), commits=st.booleans())
    def end_one(self, which, commits):
        connection, numbers = self.open.pop(which % len(self.open))
        connection.commit() if commits else connection.rollback()
        connection.close()
        self.committed |= set(numbers) if commits else set()

    def _inserted(self, connection, count):
        rows = connection.execute(f"INSERT INTO {self.table} SELECT nextval('{self.table}_id_seq') FROM generate_series(1, {count}) RETURNING id")
        return [number for (number,) in rows.fetchall()]

    def check(self):
        while self.open:
            self.end_one(0, True)
        for _ in range(4):
            self.poll()
        found = [record.value["id"] for record in self.records]
        assert sorted(found) == sorted(self.committed)


class Updates(_Machine):
    options = {"mode": "timestamp+incrementing", "incrementing.column.name": "id", "timestamp.column.name": "at", "batch.max.rows": "2"}

    def create(self):
        self.database.run(f"CREATE TABLE {self.table} (id INTEGER PRIMARY KEY AUTOINCREMENT, at TIMESTAMP NOT NULL, v INTEGER NOT NULL)")
        self.rows, self.version, self.seen = {}, 0, set()

    @rule()
    def insert(self):
        self.version += 1
        self.database.run(f"INSERT INTO {self.table} (at, v) VALUES ({1_577_836_800_000 + self.version // 2}, {self.version})")
        number = self.database.rows(f"SELECT max(id) FROM {self.table}")[0][0]
        self.rows[number] = self.version

    @precondition(lambda self: self.rows)
    @rule(which=st.integers(0, 9))
    def update(self, which):
        number = sorted(self.rows)[which % len(self.rows)]
        self.version += 2  # a later time
        self.database.run(f"UPDATE {self.table} SET v = {self.version}, at = {1_577_836_800_000 + self.version // 2} WHERE id = {number}")
        self.rows[number] = self.version

    @precondition(lambda self: self.rows)
    @rule(which=st.integers(0, 9))
    def delete(self, which):
        number = sorted(self.rows)[which % len(self.rows)]
        self.database.run(f"DELETE FROM {self.table} WHERE id = {number}")
        del self.rows[number]

    def check(self):
        for _ in range(4):
            self.poll()
        found = [(record.value["id"], record.value["v"]) for record in self.records]
        assert len(found) == len(set(found))
        assert set(self.rows.items()) <= set(found)


@pytest.mark.parametrize("machine, fixture", [(LateCommits, "postgresql_database"), (Updates, "sqlite_database")])
def test_any_history_is_told_as_the_mode_says(request, machine, fixture):
    database = request.getfixturevalue(fixture)
    run_state_machine_as_test(type("Machine", (machine,), {"database": database}), settings=SETTINGS)
