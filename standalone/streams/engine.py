"""The SQL engine: runs statements and owns their queries, with a herder like that of connectors.

    Streams.execute(text)    runs statements; each returns a message, a table, or a cursor to fetch rows from
    cursors.py               push queries and PRINT
    answers.py               results of SHOW and DESCRIBE

Statements run one at a time. Persistent state is in state.dir/queries: the catalog, the herder's state, and each query's checkpoint folder.
"""

import collections
import logging
import os
import re
import threading

import pyspark  # noqa: F401  whole, before its parts: the session's thread may import it at this moment, and both would wait for each other

from standalone import __version__
from standalone.errors import BadRequestError, ConnectError, NotFoundError
from standalone.runtime.herder import Herder
from standalone.runtime.supervision.state import State
from standalone.streams import answers, udf
from standalone.streams.cursors import Cursors, PushQuery, Tail
from standalone.streams.frames import analysed, empty, frame_of, make_current, register
from standalone.streams.made import Made, Place, projected
from standalone.streams.output import forget, make_topic, write_table
from standalone.streams.query import QueryRunner, forget_state
from standalone.streams.sql import statements as s
from standalone.streams.sql.catalog import FORMATS, KAFKA, NONE, REGISTRY, Catalog, Source, quoted
from standalone.streams.sql.functions import in_spark, spark_type
from standalone.streams.sql.parser import SqlError, error_at, read
from standalone.streams.sql.plan import plan

log = logging.getLogger(__name__)

QUERY_CLASS = "standalone.streams.query.QueryConnector"
_SPARK_SECONDS = 150.0
_SETTABLE = ("auto.offset.reset", "max.offsets.per.batch", "exactly.once", "errors.tolerance", "state.store")
_WITH = (
    *("kafka_topic", "value_format", "key_format", "format", "partitions", "replicas", "timestamp", "timestamp_format", "value_delimiter"),
    *("key_delimiter", "wrap_single_value", "window_type", "window_size", "retention_ms", "query_id"),
)


class Streams:
    """Created with the worker's state folder; `close` stops all queries."""

    def __init__(self, worker, connectors, clock, failed_for_good=lambda what, trace: None):
        self._worker, self._connectors, self._clock = worker, connectors, clock
        self.folder = os.path.join(worker.config.state_dir, "queries")
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        self._state = State(self.folder, clock).open()
        self.catalog = Catalog(self.folder)
        self.functions = udf.load(worker.config["sql.functions"])
        self._place = Place(self.folder, worker.clients, worker.config, worker.registry_url)
        self._place.clear()
        self.queries = Herder(_QueryWorker(worker, self), self._state, clock, failed_for_good)
        self.cursors = Cursors(clock)
        self._lock = threading.RLock()
        self._session = None
        self._session_of = None
        self._starts = collections.Counter()  # starts per query, in this process

    def restore(self):
        """Start the stored queries."""
        self._drop_interrupted()
        self.queries.restore(())

    def _drop_interrupted(self):
        """Remove sources whose statement was interrupted by the worker's end, before its query was stored: it can be run again."""
        stored = {name for name, *_ in self._state.connectors()}
        for source in self.catalog.all():
            if source.query and source.query not in stored:
                log.warning("The statement that creates %s was interrupted when the worker ended: run it again", source.name)
                self.catalog.remove(source.name)

    def close(self, seconds):
        self.cursors.close()
        try:
            return self.queries.close(seconds)
        finally:
            self._state.close()

    # ---------------------------------------------------------------- statements
    def execute(self, text, properties=None):
        """Run all statements; return [result]. The first failure raises SqlError or another error, after the earlier statements took effect."""
        with self._lock:
            run = _Run(self, text, dict(properties or {}))
            try:
                return [run.answer(*each) for each in read(_defined(text))]
            finally:
                if self._session_of is not None and self._session_of is self._worker.session.ready():
                    make_current(self._session_of)  # the thread may have used the pipeline's session

    def run_file(self, path):
        """Run a file's statements at the worker's start; those that ran at an earlier start are skipped."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        properties = {}
        with self._lock:
            for statement, own in read(_defined(text)):
                name = getattr(statement, "name", None)
                if isinstance(statement, (s.CreateSource, s.CreateAs)) and (there := self.catalog.get(name)) is not None:
                    if there.statement.split() != own.split():
                        log.warning("%s: %s exists with another definition and is not changed: DROP it first", path, name)
                    continue
                if isinstance(statement, s.InsertSelect) and own.split() in [info["config"]["statement"].split() for info in self._infos()]:
                    continue
                if isinstance(statement, s.CreateConnector) and name in self._connectors.names():
                    continue
                _Run(self, own, properties).answer(statement, own)

    def _infos(self):
        return [self.queries.info(name) for name in self.queries.names()]

    # ---------------------------------------------------------------- internal, for statements and runners
    def session(self):
        """Return a session for pull queries. Raise ConnectError without Spark."""
        found = self._worker.session.wait(_SPARK_SECONDS)
        if found is None:
            raise ConnectError(f"Spark does not start: {self._worker.session.failure or 'it takes too long'}. SQL statements need it.")
        if self._session_of is not found:
            self._session, self._session_of = register(found, self.functions), found
        make_current(self._session)
        return self._session

    def new_runner(self, query, base):
        """Return a QueryRunner for a query's configuration."""
        statement, _ = read(query["statement"])[0]
        sink = self.catalog.get(query["into"])
        if sink is None:
            raise NotFoundError(f"The stream or table '{query['into']}' that the query writes no longer exists. TERMINATE the query.")
        made = plan(statement.select, self.catalog, query["statement"], makes=_makes(statement, sink))
        folder = os.path.join(self.folder, query["name"])
        os.makedirs(folder, mode=0o700, exist_ok=True)
        made = Made(query["name"], made, sink, self._place, query, self.functions)
        self._starts[query["name"]] += 1
        return QueryRunner(made, self._worker.session, folder, self._clock, restarts=self._starts[query["name"]] - 1, **base)

    @property
    def place(self):
        return self._place

    @property
    def connectors(self):
        return self._connectors

    @property
    def worker(self):
        return self._worker


class _QueryWorker:
    """The parts of the worker that the herder of queries needs."""

    def __init__(self, worker, streams):
        self._worker, self._streams = worker, streams
        self.config, self.id, self.topics = worker.config, worker.id, _NoTopics()

    @property
    def graceful_seconds(self):
        return self._worker.graceful_seconds

    def plan(self, props):
        return self._worker.plan(props)

    def version(self, plan):
        return __version__

    def task_configs(self, plan, connector):
        return [dict(plan.originals)]

    def new_runner(self, plan, number, task_config, listen, paused):
        return self._streams.new_runner(plan, {"connector": plan["name"], "number": number, "listener": listen, "paused": paused})

    def offsets_of(self, plan):
        raise BadRequestError("A query's offsets are in its checkpoint.")

    source_offsets = offsets_of


class _NoTopics:
    def of(self, name):
        return []

    def forget(self, name):
        """Nothing to do: nothing is stored."""


class _Run:
    """Runs the statements of one text."""

    def __init__(self, streams, text, properties):
        self._streams, self._text, self._properties = streams, text, properties
        self._catalog = streams.catalog

    def answer(self, statement, own):
        done = getattr(self, f"_{type(statement).__name__}")(statement, own)
        return {"statement": own, **done}

    def _wrong(self, at, message):
        return error_at(self._text, at, message)

    # ---------------------------------------------------------------- streams and tables
    def _CreateSource(self, statement, own):
        there = self._catalog.get(statement.name)
        if there is not None and (statement.if_not_exists or not statement.or_replace):
            return self._there(statement, there)
        if not statement.columns:
            raise SqlError(f"{statement.name} has no columns: write them after its name, each with its type.")
        props = self._with(statement.properties, statement.name)
        columns = tuple((column.name, spark_type(column.type), column.is_key) for column in statement.columns)
        if statement.kind == s.TABLE and not any(is_key for *_, is_key in columns):
            raise SqlError(f"The table {statement.name} has no key: write PRIMARY KEY after the key column.")
        source = self._source(statement.kind, statement.name, columns, props, own)._replace(read_only=statement.read_only)
        self._try_types(source)
        if "partitions" in props:
            self._make_topic(source)
        elif source.topic not in self._streams.worker.log_view().names():
            raise SqlError(f"There is no topic '{source.topic}'. Create it, or create it here: WITH (…, partitions = 1).")
        self._catalog.put(source)
        return _said(f"{statement.kind.capitalize()} {statement.name} is created on topic {source.topic}.")

    def _there(self, statement, there):
        if statement.if_not_exists:
            return _said(f"{there.kind.capitalize()} {there.name} already exists.")
        raise SqlError(f"There is a {there.kind.lower()} '{there.name}' already. DROP it first, or write CREATE OR REPLACE, or IF NOT EXISTS.")

    def _source(self, kind, name, columns, props, own):
        formats = []
        for part, usual in (("key", KAFKA), ("value", "JSON")):
            found = props.get(f"{part}_format", props.get("format", usual)).upper()
            if found not in FORMATS:
                raise SqlError(f"There is no format '{found}' ({part}_format). Formats: {', '.join(FORMATS)}.")
            formats.append(found)
        keys = [column for column in columns if column[2]]
        if not keys:
            formats[0] = NONE
        elif len(keys) > 1 and "key_format" not in props and "format" not in props:
            formats[0] = "JSON"
        windows = props.get("window_type")
        source = Source(
            *(kind, name, props.get("kafka_topic", name), columns, *formats),
            timestamp=props.get("timestamp"),
            timestamp_format=props.get("timestamp_format"),
            windows=None if windows is None else "session" if windows.upper() == s.SESSION else "time",
            window_ms=_duration(props["window_size"]) if "window_size" in props else None,
            delimiter={"TAB": "\t", "SPACE": " "}.get(props.get("value_delimiter", ",").upper(), props.get("value_delimiter", ",")),
            partitions=int(props["partitions"]) if "partitions" in props else None,
            statement=own,
        )
        if source.timestamp is not None and source.column(source.timestamp) is None:
            raise SqlError(f"timestamp = '{source.timestamp}' is not a column of {name}. Its columns: {', '.join(column[0] for column in columns)}.")
        source.converter_keys(self._streams.worker.registry_url())
        return source

    def _with(self, given, name):
        props = {key.lower().strip('"`'): value for key, value in given.items()}
        for key in props:
            if key not in _WITH:
                raise SqlError(f"'{key}' is not a property in WITH of {name}. Properties: {', '.join(_WITH)}.")
        return props

    def _try_types(self, source):
        try:
            empty(self._streams.session(), source)
        except ConnectError:
            raise
        except Exception as error:
            raise SqlError(f"The columns of {source.name} are invalid: {_spark_message(error)}") from error

    def _make_topic(self, source, compacted=False):
        configs = {"cleanup.policy": "compact"} if compacted else {}
        make_topic(self._streams.place.clients, source.topic, source.partitions, configs)

    def _CreateAs(self, statement, own):
        there = self._catalog.get(statement.name)
        if there is not None:
            if statement.if_not_exists or not statement.or_replace:
                return self._there(statement, there)
            if there.query:
                self._terminate(there.query)
            self._catalog.remove(there.name)
        made = plan(statement.select, self._catalog, self._text, makes=statement.kind)
        frame = self._analysed(statement.select, made)
        props = self._with(statement.properties, statement.name)
        types = {field.name.lower(): field.dataType for field in frame.schema.fields}
        columns = tuple((name, _ddl(types[name.lower()]), name in made.keys) for name in made.names)
        columns = tuple(sorted(columns, key=lambda column: not column[2]))
        first = self._catalog.get(statement.select.source.name)
        props.setdefault("value_format", props.get("format", first.value_format if first.value_format not in (KAFKA, NONE) else "JSON"))
        if first.keys and len(made.keys) == 1 and first.key_format in REGISTRY:
            props.setdefault("key_format", props.get("format", first.key_format))
        source = self._source(statement.kind, statement.name, columns, props, own)
        source = source._replace(windows=made.windows, window_ms=made.window_ms, timestamp=props.get("timestamp"))
        if not source.values and source.kind == s.TABLE:
            raise self._wrong(statement.select.at, "the table has only its key: select another column, or AS_VALUE(key).")
        if source.topic in {view.source.topic for view in made.views}:
            raise SqlError(f"{statement.name} would write into {source.topic}, which it reads: choose another topic by WITH (kafka_topic = '…').")
        name = self._new_name(props, f"C{statement.kind[0]}AS_{statement.name}")
        self._make_topic(source, compacted=source.kind == s.TABLE and not source.windows)
        self._catalog.put(source._replace(query=name))
        try:
            self._start(name, own, source.name)
        except BaseException:
            self._catalog.remove(source.name)
            raise
        return {**_said(f"{statement.kind.capitalize()} {statement.name} is created by query {name}."), "query": name}

    def _new_name(self, props, usual):
        """Return a new query name. A name given by the user may be that of an earlier query, whose marks are in the log."""
        name = props.get("query_id")
        if name is None:
            return f"{usual}_{self._catalog.next_number()}"
        if name in self._streams.queries.names():
            raise SqlError(f"There is a query '{name}' already: TERMINATE it first, or give another query_id.")
        forget(name, self._streams.place.clients)
        return name

    def _start(self, name, own, into):
        forget_state(os.path.join(self._streams.folder, name))  # left by an interrupted TERMINATE
        config = {"connector.class": QUERY_CLASS, "statement": own, "into": into, "task.restart.max.attempts": "-1"}
        config.update({key: value for key, value in self._properties.items() if key in _SETTABLE})
        self._streams.queries.create(name, {**config, "name": name}, wait=False)

    def _analysed(self, select, made):
        try:
            return analysed(self._streams.session(), made)
        except ConnectError:
            raise
        except Exception as error:
            raise self._told(select, error) from error

    def _told(self, select, error):
        """Convert Spark's error to a SqlError at the word that it is about."""
        words, at = _spark_message(error), select.at
        try:
            for context in error.getQueryContext():
                word = context.fragment().split(".")[-1].strip("`")
                found = re.compile(rf"(?i)\b{re.escape(word)}\b").search(self._text, select.at)
                at = found.start() if found else at
        except Exception:  # not every error has a context
            pass
        return self._wrong(at, words)

    def _InsertSelect(self, statement, own):
        sink = self._sink(statement)
        made = plan(statement.select, self._catalog, self._text, makes=sink.kind)
        frame = self._analysed(statement.select, made)
        for name in made.names:
            if sink.column(name) is None:
                has = ", ".join(column[0] for column in sink.columns)
                raise self._wrong(statement.select.at, f"'{name}' is not a column of {sink.name}, which has {has}. Name it so with AS.")
        self._checked(statement.select, lambda: projected(frame, made, sink))
        name = f"INSERTQUERY_{self._catalog.next_number()}"
        self._start(name, own, sink.name)
        return {**_said(f"Query {name} writes into {sink.name}."), "query": name}

    def _checked(self, select, work):
        try:
            return work()
        except ConnectError:
            raise
        except Exception as error:
            raise self._told(select, error) from error

    def _sink(self, statement):
        sink = self._catalog.get(statement.target)
        if sink is None:
            raise self._wrong(statement.at, f"there is no stream or table '{statement.target}' to insert into. CREATE it first.")
        if sink.read_only:
            raise self._wrong(statement.at, f"{sink.name} was created by CREATE SOURCE, so it is read-only.")
        return sink

    def _InsertValues(self, statement, own):
        sink = self._sink(statement)
        names = statement.columns or [column[0] for column in sink.columns]
        for name in names:
            if sink.column(name) is None and name.upper() != "ROWTIME":
                raise self._wrong(statement.at, f"'{name}' is not a column of {sink.name}: {', '.join(column[0] for column in sink.columns)}.")
        rows = []
        for row in statement.rows:
            if len(row) != len(names):
                raise self._wrong(statement.at, f"a row has {len(row)} values for {len(names)} columns ({', '.join(names)}).")
            cells = ", ".join(f"{in_spark(cell)} AS {quoted(name)}" for name, cell in zip(names, row))
            rows.append(f"SELECT {cells}")
        given = {name.upper() for name in names}
        moment = "timestamp_millis(ROWTIME)" if "ROWTIME" in given else f"timestamp_millis({self._streams.worker.clock.now_ms()}L)"
        session = self._streams.session()
        try:
            frame = session.sql(" UNION ALL ".join(rows)).selectExpr("*", f"{moment} AS __timestamp")
            made = _Values([name for name in names if name.upper() != "ROWTIME"])
            table = projected(frame, made, sink)
            found = table.toArrow()
        except ConnectError:
            raise
        except Exception as error:
            raise self._wrong(statement.at, f"the values are invalid: {_spark_message(error)}") from error
        write_table(self._streams.place.settings(sink), sink, found, table.schema)
        return _said(f"{len(rows)} row{'s are' if len(rows) > 1 else ' is'} in {sink.topic}.")

    def _Drop(self, statement, own):
        there = self._catalog.get(statement.name)
        if there is None or there.kind != statement.kind:
            if statement.if_exists:
                return _said(f"There was no {statement.kind.lower()} {statement.name}.")
            raise self._wrong(statement.at, f"there is no {statement.kind.lower()} '{statement.name}'.")
        users = [name for name, reads, writes in self._uses() if there.name.lower() in reads or writes == there.name.lower() and name != there.query]
        if users:
            raise self._wrong(statement.at, f"{there.name} is used by {', '.join(users)}: TERMINATE them first.")
        if there.query:
            self._terminate(there.query)
        self._catalog.remove(there.name)
        if statement.delete_topic:
            self._streams.place.clients.admin({}).delete_topics(there.topic)
        return _said(f"{there.kind.capitalize()} {there.name} is dropped{f', and topic {there.topic} deleted' if statement.delete_topic else ''}.")

    def _uses(self):
        """Return [(query, names it reads, name it writes)], in lower case."""
        for info in self._streams._infos():
            config = info["config"]
            select = read(config["statement"])[0][0].select
            reads = {relation.name.lower() for relation in (select.source, *(join.relation for join in select.joins))}
            yield info["name"], reads, config["into"].lower()

    # ---------------------------------------------------------------- queries once, and inspection
    def _Select(self, statement, own):
        if statement.emit is None:
            made = plan(statement, self._catalog, self._text, pull=True)
            self._analysed(statement, made)
            session = self._streams.session()

            def pulled():
                frame = frame_of(session, made, lambda source, is_stream: self._streams.place.options(source))
                return frame.select(*[quoted(name) for name in made.names]).toArrow()

            return answers.table(self._checked(statement, pulled))
        made = plan(statement, self._catalog, self._text)
        self._analysed(statement, made)
        config = {"auto.offset.reset": "latest", **self._properties}
        push = PushQuery(self._streams, made, config)
        return {"kind": "cursor", "cursor": self._streams.cursors.add(push), "columns": made.names}

    def _Print(self, statement, own):
        worker = self._streams.worker
        if statement.topic not in worker.log_view().names():
            raise self._wrong(statement.at, f"there is no topic '{statement.topic}'.")
        tail = Tail(self._streams.place.clients, statement)
        return {"kind": "cursor", "cursor": self._streams.cursors.add(tail), "columns": tail.columns}

    def _Show(self, statement, own):
        return answers.show(self._streams, statement)

    def _Describe(self, statement, own):
        if statement.name is None:
            return answers.show(self._streams, s.Show(f"{statement.kind}S", None, True))
        source = self._catalog.get(statement.name)
        if source is None:
            raise self._wrong(statement.at, f"there is no stream or table '{statement.name}'.")
        return answers.describe(self._streams, source, [each for each in self._uses() if source.name.lower() in (*each[1], each[2])])

    def _Explain(self, statement, own):
        inner = statement.statement
        if statement.query is not None:
            name = self._query_name(statement.query, statement.at)
            inner, own = read(self._streams.queries.config(name)["statement"])[0]
        select = inner if isinstance(inner, s.Select) else getattr(inner, "select", None)
        if select is None:
            raise self._wrong(statement.at, "EXPLAIN is for a SELECT, for CREATE … AS SELECT, INSERT INTO … SELECT, and the name of a query.")
        pull = isinstance(inner, s.Select) and inner.emit is None
        made = plan(select, self._catalog, own, makes=getattr(inner, "kind", None), pull=pull)
        frame = analysed(self._streams.session(), made)
        lines = [("Spark SQL", made.sql), ("output mode", made.mode), ("reads", ", ".join(view.source.name for view in made.views))]
        lines.append(("how", "recomputed at each change of a table" if made.of_tables else "asked once" if pull else "a streaming query"))
        fields = [field for field in frame.schema.fields if not field.name.startswith("__")]
        lines.append(("columns", ", ".join(f"{field.name} {_ddl(field.dataType)}" for field in fields)))
        lines.append(("key", ", ".join(made.keys) or "none"))
        return answers.rows(["what", "is"], lines)

    # ---------------------------------------------------------------- persistent queries
    def _OnQuery(self, statement, own):
        names = self._streams.queries.names() if statement.name is None else [self._query_name(statement.name, statement.at)]
        for name in names:
            if statement.verb == "TERMINATE":
                self._terminate(name)
            else:
                getattr(self._streams.queries, statement.verb.lower())(name)
        done = {"TERMINATE": "terminated", "PAUSE": "paused", "RESUME": "resumed"}[statement.verb]
        return _said(f"{', '.join(names) or 'No query'} {done}.")

    def _query_name(self, name, at):
        found = next((each for each in self._streams.queries.names() if each.lower() == name.lower()), None)
        if found is None:
            known = ", ".join(self._streams.queries.names()) or "none"
            raise self._wrong(at, f"there is no query '{name}'. There are: {known}.")
        return found

    def _terminate(self, name):
        streams = self._streams
        if name not in streams.queries.names():
            return
        into = self._catalog.get(streams.queries.config(name)["into"])
        if into is not None and into.query == name:  # first: a stream without a stored query counts as interrupted
            self._catalog.put(into._replace(query=None))
        streams.queries.delete(name)
        forget_state(os.path.join(streams.folder, name))
        forget(name, streams.place.clients)

    # ---------------------------------------------------------------- connectors
    def _CreateConnector(self, statement, own):
        connectors = self._streams.connectors
        if statement.name in connectors.names():
            if statement.if_not_exists:
                return _said(f"Connector {statement.name} already exists.")
        info, _ = connectors.create(statement.name, {**statement.properties, "name": statement.name})
        if info["type"] != statement.kind.lower():
            connectors.delete(statement.name)
            raise SqlError(f"{statement.properties.get('connector.class')} is a {info['type']}: write CREATE {info['type'].upper()} CONNECTOR.")
        return _said(f"Created connector {statement.name}.")

    def _OnConnector(self, statement, own):
        connectors = self._streams.connectors
        if statement.verb == "DROP" and statement.if_exists and statement.name not in connectors.names():
            return _said(f"There was no connector {statement.name}.")
        if statement.verb == "DESCRIBE":
            return answers.connector(connectors.status(statement.name), connectors.config(statement.name))
        if statement.verb == "RESTART":
            connectors.restart(statement.name, include_tasks=True)
        else:
            getattr(connectors, {"DROP": "delete"}.get(statement.verb, statement.verb.lower()))(statement.name)
        done = {"DROP": "dropped", "PAUSE": "paused", "RESUME": "resumed", "RESTART": "restarted"}[statement.verb]
        return _said(f"Connector {statement.name} is {done}.")

    # ---------------------------------------------------------------- settings
    def _Set(self, statement, own):
        if statement.key not in _SETTABLE:
            raise SqlError(f"'{statement.key}' is not a property of queries. Properties: {', '.join(_SETTABLE)}.")
        if statement.value is None:
            self._properties.pop(statement.key, None)
        else:
            self._properties[statement.key] = statement.value
        return _said(f"{statement.key} is {statement.value or 'the default'} for later statements.")

    def _Define(self, statement, own):
        return _said(f"{statement.name} is {'set' if statement.value is not None else 'gone'}.")


class _Values:
    """The plan interface that `projected` needs, for given rows."""

    def __init__(self, names):
        self.names = names


def _makes(statement, sink):
    return statement.kind if isinstance(statement, s.CreateAs) else sink.kind


def _defined(text):
    """Replace ${name} in the text by values from DEFINE."""
    at = 0
    while (said := re.compile(r"(?i)\bDEFINE\s+(\w+)\s*=\s*'([^']*)'\s*;").search(text, at)) is not None:
        at = said.end()
        text = text[:at] + text[at:].replace("${" + said[1] + "}", said[2])
    return text


def _said(message):
    return {"kind": "message", "message": message}


def _ddl(kind):
    return kind.simpleString().upper() if not any(mark in kind.simpleString() for mark in "<") else kind.simpleString()


def _duration(text):
    from standalone.streams.sql.parser import duration_ms

    return duration_ms(text)


def _spark_message(error):
    """Return the first sentences of Spark's error, without its error class and plan."""
    text = str(getattr(error, "desc", None) or error)
    text = text.split(" SQLSTATE:")[0].split("\n== SQL")[0].split(";\n'")[0].strip()
    if text.startswith("[") and "] " in text:
        text = text.split("] ", 1)[1]
    return text if text.endswith(".") else f"{text}."
