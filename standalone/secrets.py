"""Masks secrets: values of config providers are removed from logs, traces and REST responses.

    hide("hunter2")
    mask("login as hunter2 failed")  ->  "login as [hidden] failed"

One table for the process, as there is one log. A value stays in it until the process ends, because a late message may contain an old
password.
"""

import base64
import html
import json
import re
import threading
from urllib.parse import quote, quote_plus

HIDDEN = "[hidden]"
_LEAST = 3  # shorter values occur in many words: masking them would hide everything else
_PLAIN = ("true", "false", "null", "none")
_LINE = 16  # each line of a longer value, such as a PEM key, is masked, too, if it has so many characters

_QUOTED = re.compile(r'"([^"\\]+)"')
_FORMS = (  # encodings in which messages may quote it
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
    """Mask this text from now on."""
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
    """The value, and parts that messages may quote: list items, lines, quoted strings (as in JAAS)."""
    yield value
    yield from value.split(",")
    yield from (line for line in value.splitlines() if len(line.strip()) >= _LINE)
    yield from _QUOTED.findall(value)


def _whole_word(text):
    """Match a short value only as a whole word: it may be part of other words by chance."""
    if len(text) >= 8:
        return re.escape(text)
    return rf"(?<!\w){re.escape(text)}(?!\w)"
