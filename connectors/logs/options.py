"""The keys of LogSource, and what they mean together."""

import codecs

from connectors.file.open_file import CUT, FAIL, SKIP, Limits
from connectors.logs import formats
from connectors.logs.encodings import ENCODINGS, UTF8, lines_of, to_utf8
from connectors.logs.multiline import PRESETS, Events, Rule, refused_pattern
from connectors.logs.rules import Rules
from standalone import HIGH, INT, LIST, LONG, LOW, MEDIUM, STRING, ConfigDef, ConfigError, Option, at_least, non_empty, non_empty_list, one_of

BEGINNING, END = "beginning", "end"
FAIR, OLDEST_FIRST = "fair", "oldest.first"
AUTO, POLL = "auto", "poll"
READ, RECORD = "read", "record"
NONE, FILE = "none", "file"
WAIT, EXIT = "wait", "exit"
KEEP = "keep"
HEADERS = ("file", "host", "offset", "line")

CONFIG = ConfigDef(
    Option("paths", LIST, HIGH, "The files to read: globs, as /var/log/*.log or /srv/**/app.log.", check=non_empty_list),
    Option("exclude", LIST, MEDIUM, "Globs of files that are left out. One without a slash is about names, wherever they are.", default=""),
    Option(
        "topic", STRING, HIGH,
        "The topic to publish to. ${file} stands for the file's name, ${folder} for its folder's, ${1}, ${2}, … for what the wildcards in "
        "'paths' stood for.", check=non_empty,
    ),
    Option("format", STRING, HIGH, "What a line is.", default="raw", check=one_of(*formats.FORMATS)),
    Option("format.regex", STRING, MEDIUM, "For format=regex: a regular expression (RE2) with named groups, which become fields.", default=None),
    Option("csv.columns", LIST, LOW, "For format=csv: the names of the columns. By default a file's first line tells them.", default=""),
    Option("csv.separator", STRING, LOW, "For format=csv: what is between two values.", default=","),
    Option(
        "format.unparsed", STRING, MEDIUM,
        "What happens to a line that is not of the format: keep (it is published in the field 'unparsed'), skip, fail.",
        default=KEEP, check=one_of(KEEP, SKIP, FAIL),
    ),
    Option("timestamp.from", STRING, MEDIUM,
        "The time of a record: when its line was read, or what the line says.", default=READ, check=one_of(READ, RECORD)),
    Option("headers", LIST, MEDIUM,
        "What each record's headers describe where it comes from: file, host, offset (in bytes), line (its number).", default=""),
    Option("key", STRING, LOW, "The record's key: none, or the file's path, so that all lines of a file come to one partition.",
           default=NONE, check=one_of(NONE, FILE)),
    Option("encoding", STRING, MEDIUM,
        "Of the files; records are UTF-8. Bytes that are not UTF-8 in a file that should be are passed on as they are.",
           default=UTF8, check=one_of(*ENCODINGS)),
    Option("delimiter", STRING, LOW, r"What ends a line; \n, \r, \t, \0 and \xNN are known. If it is not given, LF or CR LF.", default=None),
    Option("max.line.bytes", INT, MEDIUM, "The longest line that is read, in bytes.", default=1 << 20, check=at_least(1)),
    Option("long.lines", STRING, MEDIUM, "What happens to a longer line: cut (its beginning is published), skip, fail. The log counts them.",
           default=CUT, check=one_of(CUT, SKIP, FAIL)),
    Option("partial.flush.ms", LONG, LOW,
        "How long the end of a file must not have grown before its last line counts without its line end. -1: never.",
           default=-1, check=at_least(-1)),
    Option("multiline.preset", STRING, MEDIUM, "Which lines belong together, ready-made.", default=None, check=one_of(None, *PRESETS, "timestamp")),
    Option("multiline.start", STRING, MEDIUM, "A regular expression (RE2) of lines that begin an event.", default=None),
    Option("multiline.continue", STRING, MEDIUM, "A regular expression of lines that continue with the event before them.", default=None),
    Option("multiline.end", STRING, MEDIUM, "A regular expression of lines that end an event.", default=None),
    Option("multiline.max.lines", INT, LOW, "An event is divided after this many lines.", default=1000, check=at_least(1)),
    Option("multiline.max.bytes", INT, LOW, "An event is divided before it has more bytes.", default=1 << 20, check=at_least(1)),
    Option("multiline.timeout.ms", LONG, MEDIUM, "How long a file must not have grown before its last event is over. -1: never.",
           default=2000, check=at_least(-1)),
    Option("start.at", STRING, MEDIUM,
        "Where files begin that are there when the connector starts for the first time. Later ones begin at their beginning.",
           default=BEGINNING, check=one_of(BEGINNING, END)),
    Option("read.order", STRING, LOW, "Of many files: fair (each in turn), or oldest.first.", default=FAIR, check=one_of(FAIR, OLDEST_FIRST)),
    Option("ignore.older.ms", LONG, MEDIUM, "New files that were not written to for this long are not read before they are. -1: all are.",
           default=-1, check=at_least(-1)),
    Option("rotate.wait.ms", INT, LOW, "How long a file that was renamed or deleted must not have grown before it counts as read to its end.",
           default=1000, check=at_least(0)),
    Option("close.inactive.ms", LONG, LOW, "A file is closed when nothing was read of it for this long; it is opened again when it is written to.",
           default=300_000, check=at_least(0)),
    Option("clean.removed.ms", LONG, LOW, "How long a file that is gone is remembered, lest its compressed copy be taken for a new one.",
           default=3_600_000, check=at_least(0)),
    Option("max.open.files", INT, LOW,
        "How many files are open at once at most. 0: half of what the process may open.", default=0, check=at_least(0)),
    Option("watch", STRING, LOW, "auto: changes are reported by the system where it can. poll: files are looked at, as on network filesystems.",
           default=AUTO, check=one_of(AUTO, POLL)),
    Option("poll.interval.ms", INT, LOW, "How often files are looked at where changes are not reported.", default=200, check=at_least(1)),
    Option("rate.limit.bytes", LONG, LOW, "How many bytes are read a second at most. 0: no limit.", default=0, check=at_least(0)),
    Option("rate.limit.records", LONG, LOW, "How many records are published a second at most. 0: no limit.", default=0, check=at_least(0)),
    Option("on.eof", STRING, LOW,
        "What is done when all files are read: wait for more, or exit: the task has come to its end, and the worker ends with exit code 0 once "
        "all sources that have an end have come to it.",
           default=WAIT, check=one_of(WAIT, EXIT)),
)  # fmt: skip

class Settings:
    """A parsed configuration as what the parts take. Raises ConfigError where keys do not go together."""

    def __init__(self, config):
        self.config = config
        errors = {}
        self.delimiter = _unescaped(config["delimiter"], errors)
        for key in ("multiline.start", "multiline.continue", "multiline.end", "format.regex"):
            if config[key] is not None and (why := refused_pattern(config[key])):
                errors[key] = f"'{config[key]}' is not a regular expression: {why}"
        unknown = [each for each in config["headers"] if each not in HEADERS]
        if unknown:
            errors["headers"] = f"'{unknown[0]}' is not known: {', '.join(HEADERS)}"
        patterns = [config[f"multiline.{each}"] for each in ("start", "continue", "end")]
        if config["multiline.preset"] and any(patterns):
            errors["multiline.preset"] = "goes with no other pattern: take it away, or 'multiline.start', '.continue' and '.end'"
        if errors:
            raise ConfigError.of(errors)
        self.format = formats.load(config["format"])(config)
        self.rule = self._rule(config, patterns)
        self.encoding = config["encoding"]

    def _rule(self, config, patterns):
        limits = {"most_lines": config["multiline.max.lines"], "most_bytes": min(config["multiline.max.bytes"], config["max.line.bytes"])}
        own = None
        if config["multiline.preset"]:
            own = Rule.preset(config["multiline.preset"], **limits)
        elif any(patterns):
            own = Rule(*patterns, **limits)
        if own is not None and self.format.rule is not None:
            raise ConfigError.of({"format": f"{config['format']} puts lines together itself: it goes with no key of multiline"})
        return own or self.format.rule

    def limits(self):
        config = self.config
        lines = lines_of(self.encoding, self.delimiter)
        if self.rule is not None:
            lines = Events(self.rule, lines, lambda data, starts, lengths: to_utf8(data, starts, lengths, self.encoding, False))
        chunk = Limits.chunk_bytes
        if config["rate.limit.bytes"] or config["rate.limit.records"]:
            chunk = 1 << 16  # what is read at once counts at once
        return Limits(
            chunk, config["max.line.bytes"], config["long.lines"], config["rotate.wait.ms"] / 1000, lines, "max.line.bytes", "long.lines"
        )

    def rules(self):
        config = self.config
        return Rules(
            start_at_end=config["start.at"] == END,
            oldest_first=config["read.order"] == OLDEST_FIRST,
            ignore_older=_seconds(config["ignore.older.ms"]),
            close_inactive=config["close.inactive.ms"] / 1000,
            clean_removed=config["clean.removed.ms"] / 1000,
            flush_partial=_seconds(config["partial.flush.ms"]),
            flush_events=_seconds(config["multiline.timeout.ms"]) if self.rule is not None else None,
            poll_seconds=config["poll.interval.ms"] / 1000,
            most_open=config["max.open.files"] or None,
            whole_files=config["on.eof"] == EXIT,
        )


def _seconds(milliseconds):
    return None if milliseconds < 0 else milliseconds / 1000


def _unescaped(text, errors):
    if text is None:
        return None
    try:
        plain = codecs.decode(text, "unicode_escape") if "\\" in text else text
    except UnicodeDecodeError as error:
        errors["delimiter"] = f"'{text}' has an escape that is not known: {error.reason}"
        return None
    if not plain:
        errors["delimiter"] = "must not be empty"
    return None if plain == "\n" else plain


def errors_of(definition, config, check):
    """{key: message} of what `check` refuses of a configuration whose keys are right one by one; of any other it is said already."""
    try:
        parsed = definition.parse(config)
    except ConfigError:
        return {}
    try:
        check(parsed)
    except ConfigError as error:
        return error.errors
    return {}
