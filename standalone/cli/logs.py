"""The format of log lines on standard error: Connect's layout with the connector context, or one JSON object per line.

    [2026-11-21 14:35:00,123] WARN [orders|task-0] The task asks to be polled again: ... (standalone.runtime.tasks.source_runner:93)
    {"time":"2026-11-21T14:35:00.123Z","level":"WARN","connector":"orders","task":0,"message":"The task asks ...", ...}

Secrets are masked in both.
"""

import logging
import re
import sys
from datetime import datetime, timezone

from standalone.secrets import mask

TEXT, JSON = "text", "json"

_FORM = "[%(asctime)s] %(level)s %(context)s%(message)s (%(name)s:%(lineno)d)"
_LEVELS = {logging.WARNING: "WARN", logging.CRITICAL: "FATAL"}  # Java's names; the other levels have the same names
_CHATTY = ("kafka", "uvicorn", "py4j", "numba", "asyncio")
_CONTEXT = re.compile(r"\[(?P<connector>.*?)\|(?:task-(?P<task>\d+)(?:\|(?P<part>\w+))?|(?P<scope>\w+))\] ", re.DOTALL)


def set_up_logs(level="INFO", form=TEXT):
    from standalone.runtime.tasks.lifecycle import ContextFilter

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(form))
    handler.addFilter(ContextFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def change_form(form):
    """Change the format of subsequent lines."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_formatter(form))


def _formatter(form):
    return _JsonLines() if form == JSON else _TextLines(_FORM)


class _TextLines(logging.Formatter):
    def format(self, record):
        record.level = _LEVELS.get(record.levelno, record.levelname)
        return mask(super().format(record))


class _JsonLines(logging.Formatter):
    def format(self, record):
        import orjson

        when = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": when, "level": _LEVELS.get(record.levelno, record.levelname), **_fields(record.context)}
        line.update({"message": record.getMessage(), "logger": record.name, "line": record.lineno, "thread": record.threadName})
        line = {key: mask(value) for key, value in line.items()}
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            trace = mask(self.formatException(record.exc_info))
            line["error"] = {"class": type(error).__name__, "message": mask(str(error)), "trace": trace}
        return orjson.dumps(line, default=str).decode()


def _fields(context):
    """Parse [orders|task-0], [orders|worker] or [orders|task-0|offsets]: connector, task, and any scope other than the task."""
    match = _CONTEXT.fullmatch(context)
    if match is None:
        return {"scope": context.strip(" []")} if context else {}
    found = {"connector": match["connector"]}
    if match["task"] is not None:
        found["task"] = int(match["task"])
    scope = match["part"] or match["scope"]
    return {**found, "scope": scope} if scope else found
