"""Translate a ksqlDB SELECT to one Spark SQL statement over views, and choose how to run it.

| sources | how it runs |
|---|---|
| streams only | a streaming query; GROUP BY keeps state and updates rows, or with EMIT FINAL emits each window once, when it closes |
| a stream and tables | the same; a table is read from its topic when a batch starts |
| tables only | each change of a table recomputes the whole result, and differences are written |
"""

import re
from typing import NamedTuple

from standalone.streams.columns import SESSION, TIME
from standalone.streams.sql import statements as s
from standalone.streams.sql.catalog import quoted
from standalone.streams.sql.functions import in_spark
from standalone.streams.sql.parser import SqlError, error_at

DAY_MS = 86_400_000
KEEP, TIMESTAMP, START, END = "__keep", "__timestamp", "__start", "__end"
_EXPLODE = re.compile(r"(?i)\s*explode\s*\(")
_PSEUDO = ("ROWTIME", "ROWPARTITION", "ROWOFFSET", "WINDOWSTART", "WINDOWEND")


class View(NamedTuple):
    """A stream or table, with its alias in the statement."""

    alias: str
    source: object
    latest: bool  # a table: the newest row per key
    watermark_ms: int | None


class Plan(NamedTuple):
    views: list
    sql: str
    mode: str  # append or update
    of_tables: bool  # tables only
    at_once: bool  # over current contents: of tables, or a pull query
    kind: str  # STREAM or TABLE: the result
    keys: list  # names of the key columns
    names: list  # names of all columns, in order
    windows: str | None
    window_ms: int | None
    limit: int | None


def plan(select, catalog, text=None, makes=None, pull=False):
    """Return the Plan of a Select. Raise SqlError. `makes`: STREAM or TABLE, if the statement names it; `pull`: read current contents."""
    text = select.text if text is None else text
    return _Planner(select, catalog, text, makes, pull).plan()


class _Planner:
    def __init__(self, select, catalog, text, makes, pull):
        self._select, self._catalog, self._text, self._makes, self._pull = select, catalog, text, makes, pull
        self._relations = [select.source, *(join.relation for join in select.joins)]
        self._sources = [self._source(relation) for relation in self._relations]
        self._exploded = self._exploded_item()
        aliases = [relation.alias.lower() for relation in self._relations]
        for number, alias in enumerate(aliases):
            if alias in aliases[:number]:
                raise self._wrong(self._relations[number].at, f"'{alias}' occurs twice in FROM: give one of them an alias")

    def plan(self):
        select = self._select
        has_streams = any(source.kind == s.STREAM for source in self._sources)
        grouped = bool(select.group_by)
        as_changes = self._makes is None and not grouped and not select.joins  # push query: a single table's changes as they arrive
        self._of_tables = not has_streams and not self._pull and not as_changes
        self._check(has_streams, grouped)
        items = self._items()
        keys = self._keys(items, grouped)
        mode, watermark = "append", None
        if grouped and not self._of_tables and not self._pull and select.emit != s.FINAL and self._window_kind() != s.SESSION:
            mode = "update"
        if select.window is not None:
            watermark = DAY_MS if select.window.grace_ms is None else select.window.grace_ms
        views = [self._view(number, watermark) for number in range(len(self._sources))]
        updates = mode == "update"
        sql = self._sql(items, grouped, updates or self._of_tables)
        kind = self._kind(grouped, has_streams)
        windows, window_ms = self._windows()
        at_once, names = self._of_tables or self._pull, [name for _, name, _ in items]
        return Plan(views, sql, mode, self._of_tables, at_once, kind, keys, names, windows, window_ms, select.limit)

    # ---------------------------------------------------------------- checks
    def _check(self, has_streams, grouped):
        select = self._select
        if self._makes == s.STREAM and (grouped or not has_streams):
            what = "GROUP BY makes a table" if grouped else "a SELECT from tables is a table"
            raise self._wrong(select.at, f"CREATE STREAM … AS does not fit this SELECT: {what}. Write CREATE TABLE")
        if self._makes == s.TABLE and has_streams and not grouped:
            raise self._wrong(select.at, "CREATE TABLE … AS from a stream needs a GROUP BY: without one the result is a stream. Write CREATE STREAM")
        if select.window is not None and not grouped:
            raise self._wrong(select.at, "WINDOW needs a GROUP BY")
        if select.having is not None and not grouped:
            raise self._wrong(select.at, "HAVING needs a GROUP BY; put conditions on rows into WHERE")
        if select.emit == s.FINAL and select.window is None:
            raise self._wrong(select.at, "EMIT FINAL needs a WINDOW, since results are final when a window closes. Write EMIT CHANGES")
        if self._window_kind() == s.SESSION and select.emit == s.CHANGES:
            raise self._wrong(select.at, "SESSION windows are emitted when they close: write EMIT FINAL")
        if select.window is not None and self._of_tables:
            raise self._wrong(select.at, "WINDOW needs a stream: rows of a table have no time")
        if select.partition_by and grouped:
            raise self._wrong(select.at, "PARTITION BY cannot be combined with GROUP BY, which sets the key")
        if self._of_tables and self._makes is None:
            raise self._wrong(select.at, "push queries on tables computed from tables are not supported: CREATE TABLE … AS, and select from it")
        for number, join in enumerate(select.joins, 1):
            streams = self._sources[0].kind == s.STREAM and self._sources[number].kind == s.STREAM
            if streams and join.before_ms is None and not self._pull:
                raise self._wrong(join.relation.at, f"a join of two streams needs WITHIN (such as WITHIN 1 HOUR) after {join.relation.name}")
            if not streams and join.before_ms is not None:
                raise self._wrong(join.relation.at, "WITHIN is only for joins of two streams: a table has one row per key")
            if self._sources[0].kind == s.TABLE and self._sources[number].kind == s.STREAM:
                raise self._wrong(join.relation.at, "a table cannot be joined with a stream on its right: put the stream first")
            if self._sources[0].kind == s.STREAM and self._sources[number].kind == s.TABLE and join.kind in ("RIGHT", "FULL"):
                raise self._wrong(join.relation.at, f"a stream and a table are joined by JOIN or LEFT JOIN, not by {join.kind} JOIN")

    def _source(self, relation):
        source = self._catalog.get(relation.name)
        if source is None:
            known = ", ".join(sorted(each.name for each in self._catalog.all())) or "none yet"
            raise self._wrong(relation.at, f"there is no stream or table '{relation.name}'. There are: {known}")
        return source

    def _wrong(self, at, message):
        return error_at(self._text, at, f"{message}.") if at <= len(self._text) else SqlError(f"{message}.")

    # ---------------------------------------------------------------- columns
    def _items(self):
        """Return [(expression in Spark SQL, name, original text)]."""
        found = []
        for item in self._select.items:
            if item.is_star:
                found += self._star(item)
                continue
            if item is self._exploded:
                found.append((quoted(item.name), item.name, item.text))
                continue
            name = item.name or f"KSQL_COL_{sum(not each.name for each in self._select.items[: self._select.items.index(item)])}"
            found.append((self._expression(item.text), name, item.text))
        names = [name.lower() for _, name, _ in found]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise self._wrong(self._select.at, f"two columns are named '{found[number][1]}': rename one of them with AS")
            if name.startswith("__"):
                raise self._wrong(self._select.at, f"'{found[number][1]}' begins with two underscores, which is reserved: rename it with AS")
        return found

    def _exploded_item(self):
        """Return the `explode(…) AS name` that GROUP BY names. Spark groups only by columns that are there: a subquery adds this one."""
        select = self._select
        if select.joins or not select.group_by:
            return None
        by = {_norm(each) for each in select.group_by}
        for item in select.items:
            if not item.is_star and item.name and _norm(item.name) in by and _EXPLODE.match(item.text):
                if any(_norm(item.name) == _norm(name) for name, _, _ in self._sources[0].columns):
                    raise self._wrong(item.at, f"'{item.name}' is also a column of {select.source.name}: rename what explode returns with AS")
                return item
        return None

    def _star(self, item):
        wanted = None if item.text == "*" else item.text[:-2].strip("`").lower()
        found, several = [], len(self._relations) > 1
        for relation, source in zip(self._relations, self._sources):
            if wanted not in (None, relation.alias.lower()):
                continue
            for name, _, _ in source.columns:
                shown = f"{relation.alias}_{name}" if several else name
                found.append((f"{quoted(relation.alias)}.{quoted(name)}", shown, f"{relation.alias}.{name}"))
            if source.windows and self._pull or source.windows and self._makes is None:
                found += [(f"{quoted(relation.alias)}.{each}", each, each) for each in ("WINDOWSTART", "WINDOWEND")]
        if not found:
            raise self._wrong(item.at, f"'{item.text}' matches nothing in FROM")
        return found

    def _expression(self, text):
        made = in_spark(text)
        if self._select.window is not None:
            made = re.sub(r"(?i)\bWINDOWSTART\b", "unix_millis(__window.start)", made)
            made = re.sub(r"(?i)\bWINDOWEND\b", "unix_millis(__window.end)", made)
            made = made.replace("__window.", f"{self._window_name()}.")
        return made

    def _window_kind(self):
        return self._select.window.kind if self._select.window is not None else None

    def _window_name(self):
        return "session_window" if self._window_kind() == s.SESSION else "window"

    def _keys(self, items, grouped):
        """Return the names of the result's key columns."""
        select = self._select
        if grouped:
            return self._named(items, select.group_by, "GROUP BY")
        if select.partition_by:
            if [each.upper() for each in select.partition_by] == ["NULL"]:
                return []
            return self._named(items, select.partition_by, "PARTITION BY")
        if select.joins:
            for join in select.joins:
                for side in re.split(r"(?<![<>!])=", join.on):
                    found = [name for _, name, text in items if self._same(text, side)]
                    if found:
                        return found[:1]
            if self._makes is not None:
                on = select.joins[0].on
                raise self._wrong(select.at, f"the key is missing: select a side of the condition '{on}', the key of the result")
            return []
        wanted = [name for name, _, _ in self._sources[0].keys]
        found = [next((name for _, name, text in items if self._same(text, key)), None) for key in wanted]
        if None in found:
            if self._makes is None:
                return []
            missing = wanted[found.index(None)]
            raise self._wrong(select.at, f"the key column '{missing}' is missing: select it, or use PARTITION BY (PARTITION BY NULL for no key)")
        return found

    def _named(self, items, wanted, clause):
        found = []
        for each in wanted:
            name = next((name for _, name, text in items if self._same(text, each) or name.lower() == _norm(each)), None)
            if name is None:
                if self._makes is None:
                    continue
                raise self._wrong(self._select.at, f"'{each}' is in {clause} and must be selected, as it is the key of the result")
            found.append(name)
        return found

    def _same(self, one, other):
        one, other = _norm(one), _norm(other)
        if one == other:
            return True
        strip = lambda text: next((text[len(r.alias) + 1 :] for r in self._relations if text.startswith(r.alias.lower() + ".")), text)  # noqa: E731
        return len(self._relations) == 1 and strip(one) == strip(other)

    # ---------------------------------------------------------------- the statement
    def _view(self, number, watermark):
        source, relation = self._sources[number], self._relations[number]
        if source.kind == s.TABLE:
            return View(relation.alias, source, self._pull or self._of_tables or len(self._sources) > 1, None)
        if self._pull:
            return View(relation.alias, source, False, None)
        joined = [join for index, join in enumerate(self._select.joins, 1) if self._sources[index].kind == s.STREAM]
        if joined:
            grace = max(DAY_MS if join.grace_ms is None else join.grace_ms for join in joined)
            watermark = grace if watermark is None else max(watermark, grace)
        return View(relation.alias, source, False, watermark)

    def _from(self):
        relation = self._relations[0]
        text = quoted(relation.alias)
        if self._exploded is not None:
            text = f"(SELECT *, {self._expression(self._exploded.text)} AS {quoted(self._exploded.name)} FROM {text}) AS {text}"
        left = quoted(relation.alias)
        for number, join in enumerate(self._select.joins, 1):
            right = quoted(join.relation.alias)
            on = self._expression(join.on)
            if join.before_ms is not None:
                on = (
                    f"({on}) AND {right}.__time >= {left}.__time - INTERVAL '{join.before_ms / 1000:.3f}' SECOND "
                    f"AND {right}.__time <= {left}.__time + INTERVAL '{join.after_ms / 1000:.3f}' SECOND"
                )
            text += f" {join.kind} JOIN {right} ON {on}"
        return text

    def _time(self):
        """Return a row's time; for a join of streams, the later one."""
        moments = [f"{quoted(r.alias)}.__time" for r, source in zip(self._relations, self._sources) if source.kind == s.STREAM or self._of_tables]
        moments = moments or [f"{quoted(self._relations[0].alias)}.__time"]
        return moments[0] if len(moments) == 1 else f"greatest({', '.join(moments)})"

    def _sql(self, items, grouped, keeps_all):
        select = self._select
        columns = [f"{expression} AS {quoted(name)}" for expression, name, _ in items]
        time = self._time()
        if not self._pull:
            columns.append(f"{f'max({time})' if grouped else time} AS {TIMESTAMP}")
        group = [self._expression(each) for each in select.group_by]
        if select.window is not None:
            window = select.window
            if window.kind == s.SESSION:
                group.append(f"session_window({time}, '{window.size_ms} milliseconds')")
            else:
                advance = f", '{window.advance_ms} milliseconds'" if window.advance_ms else ""
                group.append(f"window({time}, '{window.size_ms} milliseconds'{advance})")
            name = self._window_name()
            columns += [f"unix_millis({name}.start) AS {START}", f"unix_millis({name}.end) AS {END}"]
        elif self._windows()[0] is not None:
            columns += [f"WINDOWSTART AS {START}", f"WINDOWEND AS {END}"]
        having = self._expression(select.having) if select.having is not None else None
        if having is not None and keeps_all and not self._of_tables:
            columns.append(f"coalesce({having}, false) AS {KEEP}")
            having = None
        text = f"SELECT {', '.join(columns)} FROM {self._from()}"
        if select.where is not None:
            text += f" WHERE {self._expression(select.where)}"
        if group:
            text += f" GROUP BY {', '.join(group)}"
        if having is not None:
            text += f" HAVING {having}"
        if self._pull and select.limit is not None:
            text += f" LIMIT {select.limit}"
        return text

    def _kind(self, grouped, has_streams):
        return s.TABLE if grouped or not has_streams else s.STREAM

    def _windows(self):
        window = self._select.window
        if window is not None:
            return (SESSION, None) if window.kind == s.SESSION else (TIME, window.size_ms)
        if not self._select.group_by and not self._select.joins and not self._select.partition_by:
            return self._sources[0].windows, self._sources[0].window_ms
        return None, None


def _norm(text):
    return re.sub(r"[\s`]", "", text.replace("->", ".")).lower()
