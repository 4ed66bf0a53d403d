"""Masks secrets: values from config providers never appear in logs, stack traces or REST responses.

    hide("hunter2")
    mask("login as hunter2 failed")  ->  "login as [hidden] failed"

One table serves the whole process. Values stay in it until the process ends, because late messages may contain old passwords.
"""

import base64
import html
import json
import re
import threading
from urllib.parse import quote, quote_plus

HIDDEN = "[hidden]"
_LEAST = 3  # shorter values occur in most words: masking them would make messages unreadable
_PLAIN = ("true", "false", "null", "none")
_LINE = 16  # lines of a longer value, such as a PEM key, are also masked separately if they have at least this many characters

_QUOTED = re.compile(r'"([^"\\]+)"')
_FORMS = (  # the escaped forms in which a value may be quoted
    repr,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    html.escape,
    quote_plus,
    lambda text: quote(text, safe=""),
    lambda text: base64.b64encode(text.encode("utf-8", "replace")).decode(),
)

_lock = threading.Lock()
_hidden = set()
_pattern = None


def hide(value):
    """Mask this text in all later output."""
    global _pattern
    texts = {each for part in _parts(value) for each in (part, part.strip())}
    texts = {text for text in texts if len(text) >= _LEAST and text.lower() not in _PLAIN}
    texts |= {form(text) for text in texts for form in _FORMS}
    texts = {text.strip("'\"") if text[:1] in "'\"" else text for text in texts}
    with _lock:
        if texts <= _hidden:
            return
        _hidden.update(texts)
        _pattern = re.compile("|".join(_whole_word(text) for text in sorted(_hidden, key=len, reverse=True)))


def mask(text):
    """The text with all secrets masked."""
    return text if _pattern is None or not isinstance(text, str) else _pattern.sub(HIDDEN, text)


def is_in(text):
    """Whether the text contains a secret."""
    return _pattern is not None and _pattern.search(text) is not None


def _parts(value):
    """The value and its parts that may appear alone: items of a list, lines of a longer text, quoted strings (as in JAAS)."""
    yield value
    yield from value.split(",")
    yield from (line for line in value.splitlines() if len(line.strip()) >= _LINE)
    yield from _QUOTED.findall(value)


def _whole_word(text):
    """Match a short value only as a whole word: inside other words it is coincidence."""
    if len(text) >= 8:
        return re.escape(text)
    return rf"(?<!\w){re.escape(text)}(?!\w)"
