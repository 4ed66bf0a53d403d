"""Parse statements with sqlglot's tokenizer for Spark SQL. Expressions are left to Spark unchanged.

    read(text)     the statements of a text in order: (statement, its text)

Errors are SqlErrors: the word, its line and column, and what is expected.
"""

import re

import sqlglot
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

from standalone.errors import BadRequestError
from standalone.streams.sql import statements as s

_UNITS = {"MILLISECOND": 1, "SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}
_UNITS |= {f"{name}S": ms for name, ms in _UNITS.items()}
_CLAUSES = ("FROM", "WINDOW", "WHERE", "GROUP BY", "PARTITION BY", "HAVING", "EMIT", "LIMIT")
_JOIN_WORDS = ("INNER", "LEFT", "RIGHT", "FULL", "JOIN")
_FIRST = (
    "CREATE, DROP, INSERT, SELECT, SHOW, LIST, DESCRIBE, EXPLAIN, TERMINATE, PAUSE, RESUME, RESTART, PRINT, SET, UNSET, DEFINE and UNDEFINE"
)


class _Ksql(Spark):
    """Spark's tokens, except that no keyword consumes the rest of its line."""

    class Tokenizer(Spark.Tokenizer):
        COMMANDS = set()
        COMMAND_PREFIX_TOKENS = set()


class SqlError(BadRequestError):
    """A statement that cannot be run. `line` and `column` (from 1) locate the word that the error is about, if there is one."""

    def __init__(self, message, line=None, column=None):
        super().__init__(message if line is None else f"line {line}, column {column}: {message}")
        self.line, self.column = line, column


def error_at(text, at, message):
    """Return a SqlError for that position in the text."""
    line = text.count("\n", 0, at) + 1
    return SqlError(message, line, at - (text.rfind("\n", 0, at) + 1) + 1)


def read(text):
    """Return [(statement, its own text)] of statements terminated by `;`. Raise SqlError."""
    found, reader = [], _Reader(text)
    while not reader.is_over:
        if reader.take(";"):
            continue
        begun = reader.here
        statement = reader.statement()
        found.append((statement, text[begun : reader.end_of_last].strip()))
        if not reader.is_over:
            reader.must(";")
    return found


class _Reader:
    def __init__(self, text):
        self.text = text
        try:
            self._tokens = _Ksql().tokenize(text)
        except (TokenError, ValueError, IndexError) as error:
            raise SqlError(f"The text cannot be parsed: {error}. Is a quote or a bracket left open?") from error
        self._at = 0

    # ---------------------------------------------------------------- tokens
    @property
    def is_over(self):
        return self._at >= len(self._tokens)

    @property
    def here(self):
        return self._tokens[self._at].start if not self.is_over else len(self.text)

    @property
    def end_of_last(self):
        return self._tokens[self._at - 1].end + 1 if self._at else 0

    def _raw(self, ahead=0):
        at = self._at + ahead
        return self.text[self._tokens[at].start : self._tokens[at].end + 1] if at < len(self._tokens) else ""

    def word(self, ahead=0):
        return " ".join(self._raw(ahead).upper().split())

    def take(self, *words):
        """Consume these words if they come next; return whether they did."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self._at += len(words)
            return True
        return False

    def must(self, *words):
        for word in words:
            if not self.take(word):
                raise self.wrong(f"expected {word}")

    def wrong(self, what, at=None):
        found = f"'{self._raw()}'" if not self.is_over else "the end of the text"
        return error_at(self.text, self.here if at is None else at, f"unexpected {found}: {what}.")

    def name(self, what):
        token = self._raw()
        if not re.fullmatch(r"`[^`]+`|[A-Za-z_][\w]*", token):
            raise self.wrong(f"expected the name of {what}")
        self._at += 1
        return token.strip("`")

    def string(self, what):
        token = self._raw()
        if not (len(token) >= 2 and token[0] == token[-1] and token[0] in "'\""):
            raise self.wrong(f"expected {what}, in quotes")
        self._at += 1
        return _unquoted(token)

    def number(self, what):
        if not self._raw().isdigit():
            raise self.wrong(f"expected {what}, a whole number")
        self._at += 1
        return int(self._raw(-1))

    def until(self, *stops):
        """Return the text before one of these words at this bracket depth, or before `;`."""
        begun, depth, first = self.here, 0, self._at
        while not self.is_over:
            word = self.word()
            if depth == 0 and (word in stops or word in (";", ")")):
                break
            depth += (word in ("(", "[")) - (word in (")", "]"))
            if word == "CASE":
                depth += 1
            elif word == "END" and depth:
                depth -= 1
            self._at += 1
        if self._at == first:
            raise self.wrong("expected an expression")
        return self.text[begun : self.end_of_last], begun

    # ---------------------------------------------------------------- statements
    def statement(self):
        first = self.word()
        at = self.here
        if first == "SELECT":
            return self.select()
        handler = {
            "CREATE": self._create, "DROP": self._drop, "INSERT": self._insert, "SHOW": self._show, "LIST": self._show,
            "DESCRIBE": self._describe, "EXPLAIN": self._explain, "TERMINATE": self._on_query, "PAUSE": self._on_query,
            "RESUME": self._on_query, "RESTART": self._on_query, "PRINT": self._print, "SET": self._set, "UNSET": self._set,
            "DEFINE": self._define, "UNDEFINE": self._define,
        }.get(first)  # fmt: skip
        if handler is None:
            raise self.wrong(f"a statement must begin with {_FIRST}")
        self._at += 1
        return handler(first, at)

    def _create(self, _, at):
        or_replace = self.take("OR", "REPLACE")
        if self.word() in ("SOURCE", "SINK") and self.word(1) == "CONNECTOR":
            kind = self.word()
            self._at += 2
            if_not_exists = self.take("IF", "NOT", "EXISTS")
            name = self.name("a connector")
            self.must("WITH")
            return s.CreateConnector(kind, name, self.properties(), if_not_exists)
        read_only = self.take("SOURCE")
        kind = self.word()
        if kind not in (s.STREAM, s.TABLE):
            raise self.wrong("CREATE must be followed by STREAM, TABLE, SOURCE CONNECTOR or SINK CONNECTOR")
        self._at += 1
        if_not_exists = self.take("IF", "NOT", "EXISTS")
        name = self.name(f"the {kind.lower()}")
        columns = self._columns() if self.word() == "(" else []
        properties = self.properties() if self.take("WITH") else {}
        if self.take("AS"):
            if columns:
                raise error_at(self.text, at, f"CREATE {kind} … AS takes its columns from the SELECT: remove the list of columns.")
            return s.CreateAs(kind, name, properties, self.select(), or_replace, if_not_exists)
        if not properties:
            raise self.wrong("expected WITH (kafka_topic = '…', value_format = '…') or AS SELECT … after the columns")
        return s.CreateSource(kind, name, columns, properties, or_replace, if_not_exists, read_only)

    def _columns(self):
        self.must("(")
        found = []
        while True:
            name = self.name("a column")
            kind, _ = self._type()
            is_key = self.take("PRIMARY KEY") or self.take("KEY")
            found.append(s.Column(name, kind, is_key))
            if self.take(")"):
                return found
            self.must(",")

    def _type(self):
        begun, depth = self.here, 0
        first = self._at
        while not self.is_over:
            word = self.word()
            if depth == 0 and self._at > first and word in (",", ")", "PRIMARY KEY", "KEY"):
                break
            if word in ("(", "<"):
                depth += 1
            elif word in (")", ">"):
                depth -= 1
            elif word == ">>":
                depth -= 2
            self._at += 1
        if self._at == first:
            raise self.wrong("expected the column's type")
        return self.text[begun : self.end_of_last], begun

    def properties(self):
        """Parse (key = value, …) as strings; keys may be quoted."""
        self.must("(")
        found = {}
        while not self.take(")"):
            begun, first = self.here, self._at
            if self._raw()[:1] in "'\"`":
                key = _unquoted(self._raw())
                self._at += 1
            else:
                while self.word() not in ("=", "", ",", ")"):
                    self._at += 1
                key = self.text[begun : self.end_of_last] if self._at > first else ""
            if not key:
                raise self.wrong("expected the name of a property")
            self.must("=")
            token = self._raw()
            if token[:1] in ("'", '"'):
                value = _unquoted(token)
                self._at += 1
            else:
                value, _ = self.until(",", ")")
            found[key] = value
            if not self.take(",") and self.word() != ")":
                raise self.wrong("expected a comma, or ) after the last property")
        return found

    def _drop(self, _, at):
        if self.take("CONNECTOR"):
            if_exists = self.take("IF", "EXISTS")
            return s.OnConnector("DROP", self.name("a connector"), if_exists)
        kind = self.word()
        if kind not in (s.STREAM, s.TABLE):
            raise self.wrong("DROP must be followed by STREAM, TABLE or CONNECTOR")
        self._at += 1
        if_exists = self.take("IF", "EXISTS")
        where = self.here
        return s.Drop(kind, self.name(f"the {kind.lower()}"), if_exists, self.take("DELETE", "TOPIC"), where)

    def _insert(self, _, at):
        self.must("INTO")
        where = self.here
        target = self.name("a stream or table")
        columns = None
        if self.take("("):
            columns = [self.name("a column")]
            while self.take(","):
                columns.append(self.name("a column"))
            self.must(")")
        properties = self.properties() if self.take("WITH") else {}
        if self.take("VALUES"):
            rows = [self._row()]
            while self.take(","):
                rows.append(self._row())
            return s.InsertValues(target, columns, rows, where)
        if self.word() != "SELECT":
            raise self.wrong("INSERT INTO and the name must be followed by VALUES (…) or SELECT")
        return s.InsertSelect(target, properties, self.select(), where)

    def _row(self):
        self.must("(")
        found = [self.until(",")[0]]
        while self.take(","):
            found.append(self.until(",")[0])
        self.must(")")
        return found

    def _show(self, _, at):
        kind = self.word() if self.word() in ("SOURCE", "SINK", "ALL") else None
        if kind:
            self._at += 1
        what = self.word()
        if what not in ("TOPICS", "STREAMS", "TABLES", "QUERIES", "CONNECTORS", "PROPERTIES", "FUNCTIONS"):
            raise self.wrong("SHOW must be followed by TOPICS, STREAMS, TABLES, QUERIES, CONNECTORS, FUNCTIONS or PROPERTIES")
        self._at += 1
        return s.Show(what, kind if kind != "ALL" else None, self.take("EXTENDED"))

    def _describe(self, _, at):
        if self.take("CONNECTOR"):
            return s.OnConnector("DESCRIBE", self.name("a connector"), False)
        if self.word() in ("STREAMS", "TABLES"):
            kind = self.word()[:-1]
            self._at += 1
            return s.Describe(None, kind, self.take("EXTENDED"), at)
        extended = self.take("EXTENDED")
        where = self.here
        name = self.name("a stream or table")
        return s.Describe(name, None, self.take("EXTENDED") or extended, where)

    def _explain(self, _, at):
        if self.word() in ("SELECT", "CREATE", "INSERT"):
            return s.Explain(None, self.statement(), at)
        return s.Explain(self.name("a query"), None, at)

    def _on_query(self, verb, at):
        if verb != "TERMINATE" and self.take("CONNECTOR"):
            return s.OnConnector(verb, self.name("a connector"), False)
        if verb == "RESTART":
            raise self.wrong("RESTART must be followed by CONNECTOR")
        where = self.here
        return s.OnQuery(verb, None if self.take("ALL") else self.name("a query"), where)

    def _print(self, _, at):
        where = self.here
        topic = self.string("a topic") if self._raw()[:1] in ("'", '"') else self.name("a topic")
        beginning, interval, limit = self.take("FROM", "BEGINNING"), 1, None
        while not self.is_over and self.word() != ";":
            if self.take("INTERVAL") or self.take("SAMPLE"):
                interval = self.number("the interval of records to show")
            elif self.take("LIMIT"):
                limit = self.number("how many records")
            else:
                raise self.wrong("PRINT and the topic may be followed by FROM BEGINNING, INTERVAL n, LIMIT n")
        return s.Print(topic, beginning, interval, limit, where)

    def _set(self, verb, at):
        key = self.string("a property")
        if verb == "UNSET":
            return s.Set(key, None)
        self.must("=")
        return s.Set(key, self.string("its value"))

    def _define(self, verb, at):
        name = self.name("a variable")
        if verb == "UNDEFINE":
            return s.Define(name, None)
        self.must("=")
        return s.Define(name, self.string("its value"))

    # ---------------------------------------------------------------- SELECT
    def select(self):
        begun = self.here
        self.must("SELECT")
        items = [self._item()]
        while self.take(","):
            items.append(self._item())
        self.must("FROM")
        source, joins = self._relation(), []
        while self.word() in _JOIN_WORDS:
            joins.append(self._join())
        window = where = having = emit = limit = None
        group_by, partition_by = [], []
        while not self.is_over and self.word() not in (";", ")"):
            if self.take("WINDOW"):
                window = self._window()
            elif self.take("WHERE"):
                where = self.until(*_CLAUSES)[0]
            elif self.take("GROUP BY"):
                group_by = self._list()
            elif self.take("PARTITION BY"):
                partition_by = self._list()
            elif self.take("HAVING"):
                having = self.until(*_CLAUSES)[0]
            elif self.take("EMIT"):
                emit = self.word()
                if emit not in (s.CHANGES, s.FINAL):
                    raise self.wrong("EMIT must be followed by CHANGES or FINAL")
                self._at += 1
            elif self.take("LIMIT"):
                limit = self.number("how many rows")
            else:
                known = "WINDOW, WHERE, GROUP BY, PARTITION BY, HAVING, EMIT and LIMIT"
                raise self.wrong(f"expected {known} after FROM; ORDER BY and UNION are not supported on unbounded streams")
        text = self.text[begun : self.end_of_last]
        return s.Select(text, begun, items, source, joins, window, where, group_by, partition_by, having, emit, limit)

    def _list(self):
        bracketed = self.word() == "(" and self._closes_at_clause()
        if bracketed:
            self.must("(")
        found = [self.until(",", *_CLAUSES)[0]]
        while self.take(","):
            found.append(self.until(",", *_CLAUSES)[0])
        if bracketed:
            self.must(")")
        return found

    def _closes_at_clause(self):
        """Whether the bracket that opens here encloses the whole list."""
        depth, ahead = 0, 0
        while self.word(ahead):
            depth += (self.word(ahead) == "(") - (self.word(ahead) == ")")
            ahead += 1
            if depth == 0:
                return self.word(ahead) in ("", ";", ")", *_CLAUSES)
        return False

    def _item(self):
        text, at = self.until(",", "FROM")
        if text == "*" or re.fullmatch(r"(`[^`]+`|\w+)\s*\.\s*\*", text):
            return s.Item(text.replace(" ", ""), "*", at)
        try:
            parsed = sqlglot.parse_one(f"SELECT {sparked(text)}", read="spark").expressions[0]
        except (ParseError, TokenError, IndexError) as error:
            raise error_at(self.text, at, f"'{text}' cannot be read: {_reason(error)}") from error
        name = parsed.alias_or_name if parsed.alias or type(parsed).__name__ in ("Column", "Dot") else ""
        body = text
        if parsed.alias:
            body = text[: _alias_at(text)].rstrip()
        return s.Item(body, name, at)

    def _relation(self):
        at = self.here
        if self.word() == "(":
            raise self.wrong("FROM must name a stream or table: create a stream for a subquery first (CREATE STREAM … AS SELECT)")
        name = self.name("a stream or table")
        alias = name
        if self.take("AS"):
            alias = self.name("an alias")
        elif self.word() not in (*_CLAUSES, *_JOIN_WORDS, "WITHIN", "ON", ";", ")", "") and re.fullmatch(r"`[^`]+`|[A-Za-z_]\w*", self._raw()):
            if self.word() in ("ORDER BY", "UNION", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LATERAL", "CROSS", "INTERSECT", "EXCEPT"):
                raise self.wrong("expected after FROM: JOIN, WINDOW, WHERE, GROUP BY, PARTITION BY, HAVING, EMIT and LIMIT")
            alias = self.name("an alias")
        return s.Relation(name, alias, at)

    def _join(self):
        kind = "INNER"
        if self.word() != "JOIN":
            kind = self.word()
            self._at += 1
            self.take("OUTER")
        self.must("JOIN")
        relation = self._relation()
        before = after = grace = None
        if self.take("WITHIN"):
            if self.take("("):
                before = self._duration()
                self.must(",")
                after = self._duration()
                self.must(")")
            else:
                before = after = self._duration()
            if self.take("GRACE"):
                self.must("PERIOD")
                grace = self._duration()
        self.must("ON")
        return s.Join(kind, relation, before, after, grace, self.until(*_CLAUSES, *_JOIN_WORDS)[0])

    def _window(self):
        kind = self.word()
        if kind not in (s.TUMBLING, s.HOPPING, s.SESSION):
            raise self.wrong("a window must be TUMBLING, HOPPING or SESSION")
        self._at += 1
        self.must("(")
        size = advance = grace = None
        if kind == s.SESSION:
            size = self._duration()
        while not self.take(")"):
            if self.take(","):
                continue
            if self.take("SIZE"):
                size = self._duration()
            elif self.take("ADVANCE", "BY"):
                advance = self._duration()
            elif self.take("GRACE", "PERIOD"):
                grace = self._duration()
            elif self.take("RETENTION"):
                self._duration()  # here the topic's config sets a table's retention
            else:
                raise self.wrong("a window takes SIZE, ADVANCE BY (HOPPING) and GRACE PERIOD, each with a number and a time unit")
        if size is None:
            raise self.wrong(f"WINDOW {kind} has no SIZE", self.here - 1)
        if (kind == s.HOPPING) is not (advance is not None):
            raise self.wrong("HOPPING windows require ADVANCE BY, other windows do not allow it", self.here - 1)
        return s.Window(kind, size, advance, grace)

    def _duration(self):
        count = self.number("the number of time units")
        unit = self.word()
        if unit not in _UNITS:
            raise self.wrong("time units are MILLISECONDS, SECONDS, MINUTES, HOURS and DAYS")
        self._at += 1
        return count * _UNITS[unit]


def duration_ms(text):
    """Parse a duration such as `10 SECONDS` to milliseconds. Raise SqlError."""
    return _Reader(text)._duration()


def _unquoted(token):
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


def _alias_at(text):
    """Return the position of ` AS name`, or of the name alone, after an expression."""
    found = re.search(r"(?is)\s+as\s+(`[^`]+`|\w+)\s*$", text) or re.search(r"(?s)\s+(`[^`]+`|\w+)\s*$", text)
    return found.start() if found else len(text)


def _reason(error):
    errors = getattr(error, "errors", None)
    return errors[0]["description"] if errors else str(error)


def sparked(text):
    """Translate a ksqlDB expression to Spark SQL: `a->b`, ARRAY[…], MAP(k := v), STRUCT(a := v), and renamed functions.

    Quoted strings stay unchanged.
    """
    from standalone.streams.sql.functions import in_spark

    return in_spark(text)
