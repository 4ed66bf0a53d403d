"""A database for a test: statements run in it by its own driver, and the URL that a connector is given."""

import contextlib
import sqlite3


class SqliteDatabase:
    kind = "sqlite"
    counting = "INTEGER PRIMARY KEY"
    timestamp = "TIMESTAMP"

    def __init__(self, path):
        self.path = path
        self.url = f"jdbc:sqlite:{path}"
        self.tables = {}  # what a source needs to find the test's tables alone
        self.catalog = ""

    def full(self, table):
        """As a source partition has it."""
        return table

    def connect(self):
        return sqlite3.connect(self.path, timeout=20)

    def run(self, *statements):
        with contextlib.closing(self.connect()) as connection:
            for each in statements:
                connection.execute(each)
            connection.commit()

    def rows(self, sql):
        with contextlib.closing(self.connect()) as connection:
            return connection.execute(sql).fetchall()


class PostgresqlDatabase:
    kind = "postgresql"
    counting = "BIGSERIAL PRIMARY KEY"
    timestamp = "TIMESTAMP"

    def __init__(self, server, schema):
        self.schema = schema
        self.port = server["port"]
        self.url = f"{server['jdbc']}&currentSchema={schema}&ApplicationName={schema}"
        self.tables = {"schema.pattern": schema}

    def __enter__(self):
        self.run(f"CREATE SCHEMA {self.schema}")
        return self

    def __exit__(self, *_):
        self.run(f"DROP SCHEMA {self.schema} CASCADE")

    def full(self, table):
        return f"{self.schema}.{table}"

    def cut_connections(self):
        """Those of connectors that were given this database's URL, and no others: other tests use the same server."""
        self.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{self.schema}'")

    def connect(self):
        import psycopg

        options = f"-c search_path={self.schema} -c TimeZone=UTC"
        return psycopg.connect(host="127.0.0.1", port=self.port, user="postgres", dbname="postgres", options=options)

    def run(self, *statements):
        with self.connect() as connection:
            for each in statements:
                connection.execute(each)

    def rows(self, sql):
        with self.connect() as connection:
            return connection.execute(sql).fetchall()


class GenericDatabase(PostgresqlDatabase):
    """The same server as any other that there is a dialect of SQLAlchemy for."""

    kind = "generic"

    def __init__(self, server, schema):
        super().__init__(server, schema)
        options = f"-csearch_path%3D{schema}"
        self.url = f"postgresql+psycopg://postgres:not-looked-at@127.0.0.1:{self.port}/postgres?options={options}&application_name={schema}"
        self.tables = {}

    def full(self, table):
        return table


class MariadbDatabase:
    """A database of the test's own in the server."""

    kind = "mariadb"
    counting = "BIGINT AUTO_INCREMENT PRIMARY KEY"
    timestamp = "DATETIME(6)"
    tables = {}

    def __init__(self, server, name):
        self.name = name
        self.port, self._password = server["port"], server["password"]
        self.url = f"{server['jdbc']}{name}?user=root&password={self._password}"

    def __enter__(self):
        self._run(None, [f"CREATE DATABASE {self.name} CHARACTER SET utf8mb4"])
        return self

    def __exit__(self, *_):
        self._run(None, [f"DROP DATABASE {self.name}"])

    def full(self, table):
        return f"{self.name}.{table}"

    def connect(self, database=""):
        import pymysql

        database = self.name if database == "" else database
        return pymysql.connect(host="127.0.0.1", port=self.port, user="root", password=self._password, database=database, charset="utf8mb4")

    def run(self, *statements):
        self._run("", statements)

    def _run(self, database, statements):
        with contextlib.closing(self.connect(database)) as connection:
            cursor = connection.cursor()
            cursor.execute("SET time_zone = '+00:00'")
            for each in statements:
                cursor.execute(each)
            connection.commit()

    def rows(self, sql):
        with contextlib.closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            return list(cursor.fetchall())
