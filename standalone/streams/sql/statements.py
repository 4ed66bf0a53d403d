"""Parsed statements (parser.py). Expressions and column names are Spark SQL strings."""

from typing import NamedTuple

STREAM, TABLE = "STREAM", "TABLE"
CHANGES, FINAL = "CHANGES", "FINAL"
TUMBLING, HOPPING, SESSION = "TUMBLING", "HOPPING", "SESSION"


class Column(NamedTuple):
    name: str
    type: str  # as ksqlDB writes it
    is_key: bool


class Window(NamedTuple):
    kind: str  # TUMBLING, HOPPING or SESSION
    size_ms: int
    advance_ms: int | None
    grace_ms: int | None


class Relation(NamedTuple):
    """A stream or table in FROM; `at` is its position in the text."""

    name: str
    alias: str
    at: int


class Join(NamedTuple):
    kind: str  # INNER, LEFT, RIGHT, FULL
    relation: Relation
    before_ms: int | None  # WITHIN
    after_ms: int | None
    grace_ms: int | None
    on: str


class Item(NamedTuple):
    """A column of a SELECT: `*`, or an expression with its name."""

    text: str
    name: str
    at: int

    @property
    def is_star(self):
        return self.text == "*" or self.text.endswith(".*")


class Select(NamedTuple):
    text: str
    at: int
    items: list
    source: Relation
    joins: list
    window: Window | None
    where: str | None
    group_by: list  # of strings
    partition_by: list
    having: str | None
    emit: str | None  # CHANGES, FINAL, or None: a pull query
    limit: int | None


class CreateSource(NamedTuple):
    kind: str
    name: str
    columns: list
    properties: dict
    or_replace: bool
    if_not_exists: bool
    read_only: bool  # CREATE SOURCE STREAM|TABLE


class CreateAs(NamedTuple):
    kind: str
    name: str
    properties: dict
    select: Select
    or_replace: bool
    if_not_exists: bool


class InsertSelect(NamedTuple):
    target: str
    properties: dict
    select: Select
    at: int


class InsertValues(NamedTuple):
    target: str
    columns: list | None
    rows: list  # of lists of strings
    at: int


class Drop(NamedTuple):
    kind: str
    name: str
    if_exists: bool
    delete_topic: bool
    at: int


class CreateConnector(NamedTuple):
    kind: str  # SOURCE or SINK
    name: str
    properties: dict
    if_not_exists: bool


class OnConnector(NamedTuple):
    verb: str  # DROP, DESCRIBE, PAUSE, RESUME, RESTART
    name: str
    if_exists: bool


class Show(NamedTuple):
    what: str  # TOPICS, STREAMS, TABLES, QUERIES, CONNECTORS, PROPERTIES, FUNCTIONS, TYPES
    filter: str | None  # SOURCE or SINK
    extended: bool


class Describe(NamedTuple):
    name: str | None  # None: all streams, or all tables
    kind: str | None
    extended: bool
    at: int


class Explain(NamedTuple):
    query: str | None  # name of a persistent query
    statement: object | None
    at: int


class OnQuery(NamedTuple):
    verb: str  # TERMINATE, PAUSE, RESUME
    name: str | None  # None: ALL
    at: int


class Print(NamedTuple):
    topic: str
    from_beginning: bool
    interval: int
    limit: int | None
    at: int


class Set(NamedTuple):
    key: str
    value: str | None  # None: UNSET


class Define(NamedTuple):
    name: str
    value: str | None  # None: UNDEFINE
