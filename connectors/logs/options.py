"""The options of LogSource, and the settings they result in."""

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
    Option("paths", LIST, HIGH, "Globs of the files to read, such as /var/log/*.log or /srv/**/app.log.", check=non_empty_list),
    Option("exclude", LIST, MEDIUM, "Globs of files to exclude. A glob without a slash matches file names in any folder.", default=""),
    Option(
        "topic", STRING, HIGH,
        "The topic to publish to. ${file} stands for the file's name, ${folder} for its folder's name, ${1}, ${2}, … for the text that matched "
        "the wildcards of 'paths'.", check=non_empty,
    ),
    Option("format", STRING, HIGH, "Format of the lines.", default="raw", check=one_of(*formats.FORMATS)),
    Option("format.regex", STRING, MEDIUM, "For format=regex: a regular expression (RE2) with named groups, which become fields.", default=None),
    Option("csv.columns", LIST, LOW, "For format=csv: names of the columns. Empty: taken from each file's first line.", default=""),
    Option("csv.separator", STRING, LOW, "For format=csv: character between two values.", default=","),
    Option(
        "format.unparsed", STRING, MEDIUM,
        "What to do with a line that does not match the format: keep (publish it in the field 'unparsed'), skip, fail.",
        default=KEEP, check=one_of(KEEP, SKIP, FAIL),
    ),
    Option("timestamp.from", STRING, MEDIUM,
        "Timestamp of a record: read (when its line was read), or record (the timestamp in the line).", default=READ, check=one_of(READ, RECORD)),
    Option("headers", LIST, MEDIUM,
        "Headers that describe the origin of a record: file, host, offset (in bytes), line (number).", default=""),
    Option("key", STRING, LOW, "The record's key: none, or the file's path, which sends all lines of a file to one partition.",
           default=NONE, check=one_of(NONE, FILE)),
    Option("encoding", STRING, MEDIUM,
        "Encoding of the files; records are UTF-8. Invalid bytes in UTF-8 files are published unchanged.",
           default=UTF8, check=one_of(*ENCODINGS)),
    Option("delimiter", STRING, LOW, r"End of a line; \n, \r, \t, \0 and \xNN are escapes. Default: LF or CR LF.", default=None),
    Option("max.line.bytes", INT, MEDIUM, "Maximum length of a line in bytes.", default=1 << 20, check=at_least(1)),
    Option("long.lines", STRING, MEDIUM, "What to do with a longer line: cut (publish its beginning), skip, fail. Their number is logged.",
           default=CUT, check=one_of(CUT, SKIP, FAIL)),
    Option("partial.flush.ms", LONG, LOW,
        "Publish a last line without a line end once the file has not grown for this long. -1: never.",
           default=-1, check=at_least(-1)),
    Option("multiline.preset", STRING, MEDIUM, "Predefined rules for multiline events.", default=None, check=one_of(None, *PRESETS, "timestamp")),
    Option("multiline.start", STRING, MEDIUM, "Regular expression (RE2) for lines that begin an event.", default=None),
    Option("multiline.continue", STRING, MEDIUM, "Regular expression for lines that continue the previous event.", default=None),
    Option("multiline.end", STRING, MEDIUM, "Regular expression for lines that end an event.", default=None),
    Option("multiline.max.lines", INT, LOW, "Maximum number of lines in an event; longer events are split.", default=1000, check=at_least(1)),
    Option("multiline.max.bytes", INT, LOW, "Maximum size of an event in bytes; larger events are split.", default=1 << 20, check=at_least(1)),
    Option("multiline.timeout.ms", LONG, MEDIUM, "Publish a file's last event once the file has not grown for this long. -1: never.",
           default=2000, check=at_least(-1)),
    Option("start.at", STRING, MEDIUM,
        "Where to start in files that exist when the connector first starts. Later files are read from their beginning.",
           default=BEGINNING, check=one_of(BEGINNING, END)),
    Option("read.order", STRING, LOW, "Order of reading: fair (round robin), or oldest.first.", default=FAIR, check=one_of(FAIR, OLDEST_FIRST)),
    Option("ignore.older.ms", LONG, MEDIUM, "Skip new files not written to for this long, until they are written to. -1: read all.",
           default=-1, check=at_least(-1)),
    Option("rotate.wait.ms", INT, LOW, "A renamed or deleted file is complete once it has not grown for this long.",
           default=1000, check=at_least(0)),
    Option("close.inactive.ms", LONG, LOW, "Close a file that was not read for this long; it is reopened when it is written to.",
           default=300_000, check=at_least(0)),
    Option("clean.removed.ms", LONG, LOW, "How long to remember a deleted file, so that its compressed copy is not read as a new file.",
           default=3_600_000, check=at_least(0)),
    Option("max.open.files", INT, LOW,
        "Maximum number of open files. 0: half of the process's limit.", default=0, check=at_least(0)),
    Option("watch", STRING, LOW, "auto: get notified of changes by inotify if possible. poll: poll files, for network filesystems.",
           default=AUTO, check=one_of(AUTO, POLL)),
    Option("poll.interval.ms", INT, LOW, "How often to poll files if there are no notifications.", default=200, check=at_least(1)),
    Option("rate.limit.bytes", LONG, LOW, "Maximum number of bytes read per second. 0: no limit.", default=0, check=at_least(0)),
    Option("rate.limit.records", LONG, LOW, "Maximum number of records published per second. 0: no limit.", default=0, check=at_least(0)),
    Option("on.eof", STRING, LOW,
        "What to do when all files are read: wait for more, or exit: the task finishes, and the worker exits with code 0 once all finite sources "
        "have finished.",
           default=WAIT, check=one_of(WAIT, EXIT)),
)  # fmt: skip

class Settings:
    """A parsed configuration as the connector's parts need it. Raises ConfigError for keys that conflict."""

    def __init__(self, config):
        self.config = config
        errors = {}
        self.delimiter = _unescaped(config["delimiter"], errors)
        for key in ("multiline.start", "multiline.continue", "multiline.end", "format.regex"):
            if config[key] is not None and (why := refused_pattern(config[key])):
                errors[key] = f"'{config[key]}' is not a valid regular expression: {why}"
        unknown = [each for each in config["headers"] if each not in HEADERS]
        if unknown:
            errors["headers"] = f"'{unknown[0]}' is not one of {', '.join(HEADERS)}"
        patterns = [config[f"multiline.{each}"] for each in ("start", "continue", "end")]
        if config["multiline.preset"] and any(patterns):
            errors["multiline.preset"] = "cannot be combined with other patterns: remove it, or 'multiline.start', '.continue' and '.end'"
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
            raise ConfigError.of({"format": f"{config['format']} joins lines itself; it cannot be combined with multiline.*"})
        return own or self.format.rule

    def limits(self):
        config = self.config
        lines = lines_of(self.encoding, self.delimiter)
        if self.rule is not None:
            lines = Events(self.rule, lines, lambda data, starts, lengths: to_utf8(data, starts, lengths, self.encoding, False))
        chunk = Limits.chunk_bytes
        if config["rate.limit.bytes"] or config["rate.limit.records"]:
            chunk = 1 << 16  # a rate limit counts whole chunks
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
        errors["delimiter"] = f"'{text}' has an invalid escape: {error.reason}"
        return None
    if not plain:
        errors["delimiter"] = "must not be empty"
    return None if plain == "\n" else plain


def errors_of(definition, config, check):
    """{key: message} of errors that `check` finds in a configuration whose single values are valid; else {}: those errors are reported already."""
    try:
        parsed = definition.parse(config)
    except ConfigError:
        return {}
    try:
        check(parsed)
    except ConfigError as error:
        return error.errors
    return {}
