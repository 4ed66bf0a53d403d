"""Values that must not be seen: what a config provider gave is kept out of logs, traces and answers, wherever it turns up.

    hide("hunter2")
    mask("login as hunter2 failed")  ->  "login as [hidden] failed"

One table for the process, as there is one log. A value stays in it until the process ends, for an old password in a late message is
no less secret.
"""

import base64
import html
import json
import re
import threading
from urllib.parse import quote, quote_plus

HIDDEN = "[hidden]"
_LEAST = 3  # shorter values are in every other word: to mask them would hide everything else
_PLAIN = ("true", "false", "null", "none")
_LINE = 16  # lines of a longer value, such as a key in PEM, are hidden one by one, too, if they have so many characters

_QUOTED = re.compile(r'"([^"\\]+)"')
_FORMS = (  # how it may be written down by anyone who quotes it
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
    """The text without any value that is to be hidden."""
    return text if _pattern is None or not isinstance(text, str) else _pattern.sub(HIDDEN, text)


def is_in(text):
    """Whether a value that is to be hidden is in the text."""
    return _pattern is not None and _pattern.search(text) is not None


def _parts(value):
    """The value, and what others may take out of it: the items of a list, lines of a longer text, what is in quotes (as in JAAS)."""
    yield value
    yield from value.split(",")
    yield from (line for line in value.splitlines() if len(line.strip()) >= _LINE)
    yield from _QUOTED.findall(value)


def _whole_word(text):
    """A short value may be a piece of a word by chance: it counts where it is alone."""
    if len(text) >= 8:
        return re.escape(text)
    return rf"(?<!\w){re.escape(text)}(?!\w)"
