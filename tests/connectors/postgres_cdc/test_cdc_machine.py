"""Insertions, updates, deletions, changes of keys, truncations, open transactions, lost connections and restarts in any order.

What comes is checked against a model: after the rows each change of each committed transaction comes once, in the order of the commits; after a restart those
come again of which no offset was stored, and no others.
"""

import itertools

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.connectors.postgres_cdc.database import Driver, values

_tables = itertools.count()
SETTINGS = settings(max_examples=5, stateful_step_count=16, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
OPTIONS = {"skipped.operations": "none", "tombstones.on.delete": "false", "snapshot.mode": "no_data", "max.batch.size": "3"}


class Changes(RuleBasedStateMachine):
    database = None

    @initialize()
    def begin(self):
        self.table = f"t{next(_tables)}"
        self.database.run(f"CREATE TABLE {self.table} (id serial PRIMARY KEY, v int)")
        self.options = {**OPTIONS, "table.include.list": f"public.{self.table}", "slot.name": f"{self.database.name}_{self.table}"}
        self.driver = Driver(self.database)
        self.expected, self.found, self.open = [], [], []
        self.rows, self.number, self.kept = {}, 0, 0
        self.task = self.driver.start(**self.options).until_streaming()

    # --- What happens in the database ------------------------------------------------------------------------------------
    @rule(kinds=st.lists(st.sampled_from("iiuudk"), min_size=1, max_size=6), ends=st.sampled_from(["commit", "commit", "rollback"]))
    def transaction(self, kinds, ends):
        rows, told = dict(self.rows), []
        connection = self.database.connect()
        for kind in kinds:
            told += self._done(connection, kind, rows)
        getattr(connection, ends)()
        connection.close()
        if ends == "commit":
            self.rows = rows
            self.expected += told

    @precondition(lambda self: len(self.open) < 2)
    @rule()
    def begin_another(self):
        """Its row is inserted now, and told when it is committed."""
        connection = self.database.connect()
        self.number += 1
        connection.execute(f"INSERT INTO {self.table} (v) VALUES ({self.number})")
        [(key,)] = connection.execute(f"SELECT currval('{self.table}_id_seq')").fetchall()
        self.open.append((connection, ("c", key, self.number)))

    @precondition(lambda self: self.open)
    @rule()
    def end_another(self):
        connection, told = self.open.pop(0)
        connection.commit()
        connection.close()
        self.expected.append(told)
        self.rows[told[1]] = told[2]

    @precondition(lambda self: not self.open)
    @rule()
    def truncate(self):
        self.database.run(f"TRUNCATE {self.table}")
        self.rows = {}
        self.expected.append(("t",))

    def _done(self, connection, kind, rows):
        self.number += 1
        if kind == "i" or not rows:
            [(key,)] = connection.execute(f"INSERT INTO {self.table} (v) VALUES ({self.number}) RETURNING id").fetchall()
            rows[key] = self.number
            return [("c", key, self.number)]
        key = min(rows)
        if kind == "u":
            connection.execute(f"UPDATE {self.table} SET v = {self.number} WHERE id = {key}")
            rows[key] = self.number
            return [("u", key, self.number)]
        if kind == "d":
            connection.execute(f"DELETE FROM {self.table} WHERE id = {key}")
            del rows[key]
            return [("d", key, None)]
        [(other,)] = connection.execute(f"UPDATE {self.table} SET id = nextval('{self.table}_id_seq') WHERE id = {key} RETURNING id").fetchall()
        rows[other] = rows.pop(key)
        return [("d", key, None), ("c", other, rows[other])]

    # --- What happens to the connector ---------------------------------------------------------------------------------
    @rule()
    def poll(self):
        self.found += self.task.poll_all()

    @rule()
    def lose_connections(self):
        self.database.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'connect-standalone%'"
        )

    @rule(acknowledged=st.integers(0, 4), syncs=st.booleans())
    def restart(self, acknowledged, syncs):
        """The last few that came were not acknowledged."""
        kept = max(self.kept, len(self.found) - acknowledged)
        if kept > self.kept:
            self.driver.stored.store(self.found[kept - 1])
            # Of a change of the key two records come: after the first alone both come again.
            self.kept = kept - any(header.name == "__debezium.newkey" for header in self.found[kept - 1].headers)
        if syncs:
            self.task.commit()
        self.task.close()
        del self.found[self.kept :]
        self.task = self.driver.start(**self.options).until_streaming()

    def teardown(self):
        if hasattr(self, "task"):
            while self.open:
                self.end_another()
            self.found += self.task.take(max(0, len(self.expected) - len(self.found)))
            self.driver.__exit__()
            self.database.run(f"SELECT pg_drop_replication_slot('{self.options['slot.name']}')")
            assert values(self.found) == self.expected


def test_any_history_is_told_once_and_in_order(database):
    run_state_machine_as_test(type("Machine", (Changes,), {"database": database}), settings=SETTINGS)
