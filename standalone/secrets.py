"""Values that must not be seen: what a config provider gave is kept out of logs, traces and answers, wherever it turns up.

    hide("hunter2")
    mask("login as hunter2 failed")  ->  "login as [hidden] failed"

One table for the process, as there is one log. A value stays in it until the process ends, for an old password in a late message is
no less secret.
"""

import json
import re
import threading
from urllib.parse import quote, quote_plus

HIDDEN = "[hidden]"
_LEAST = 3  # shorter values are in every other word: to mask them would hide everything else
_PLAIN = ("true", "false", "null", "none")
_LINE = 16  # lines of a longer value, such as a key in PEM, are hidden one by one, too, if they have so many characters

_lock = threading.Lock()
_hidden = set()
_pattern = None


def hide(value):
    """Mask this text from now on."""
    global _pattern
    texts = {value, value.strip(), *(line.strip() for line in value.splitlines() if len(line.strip()) >= _LINE)}
    texts = {text for text in texts if len(text) >= _LEAST and text.lower() not in _PLAIN}
    texts |= {form(text) for text in texts for form in (_json, repr, quote_plus, lambda text: quote(text, safe=""))}
    texts = {text.strip("'\"") if text[:1] in "'\"" else text for text in texts}
    with _lock:
        if texts <= _hidden:
            return
        _hidden.update(texts)
        _pattern = re.compile("|".join(_whole_word(text) for text in sorted(_hidden, key=len, reverse=True)))


def mask(text):
    """The text without any value that is to be hidden."""
    return text if _pattern is None or not isinstance(text, str) else _pattern.sub(HIDDEN, text)


def _json(text):
    return json.dumps(text)[1:-1]


def _whole_word(text):
    """A short value may be a piece of a word by chance: it counts where it stands alone."""
    if len(text) >= 8:
        return re.escape(text)
    return rf"(?<!\w){re.escape(text)}(?!\w)"
