"""Properties files as Java reads them, and the three formats of connector files.

A properties file is ISO-8859-1 with `\\uXXXX` for other characters, as in Java. A file saved as UTF-8 is therefore also read as
ISO-8859-1, with a warning, because that is rarely intended.
"""

import json
import logging
import re
from dataclasses import dataclass

from standalone.errors import ConfigError

log = logging.getLogger(__name__)

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(u(?:[0-9a-fA-F]{4})?|.)", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!"}
_SURROGATE = re.compile("[\ud800-\udfff]")

INITIAL_STATES = ("RUNNING", "PAUSED", "STOPPED")


def parse(text, where=""):
    """{key: value} in the order of the file; the last value of a duplicate key wins. `where` is the prefix of error messages."""
    if isinstance(text, (bytes, bytearray)):
        text = bytes(text).decode("iso-8859-1")
    props = {}
    for number, line in _logical_lines(text):
        key = _KEY.match(line)
        try:
            props[_unescape(key[1])] = _unescape(line[key.end() :])
        except ValueError as error:
            place = f"{where}, line {number}" if where else f"line {number}"
            raise ConfigError(f"{place}: {error}. Write \\u and four hexadecimal digits, or \\\\u for a backslash and a u.") from None
    return props


def load(path, warn=True):
    """Read a properties file."""
    data = _read(path)
    props = parse(data, where=str(path))
    if warn and not data.isascii() and _is_utf8(data):
        names = [key for key, value in props.items() if not (key + value).isascii()]
        if names:
            log.warning(
                "%s holds UTF-8 text, but properties files are read as ISO-8859-1, as Java reads them: %s will not contain the characters "
                "that an editor shows. Write them as \\uXXXX.",
                path,
                ", ".join(names),
            )
    return props


def dump(props):
    """The inverse of `parse`: plain ASCII, one entry per line."""
    return "".join(f"{_escape(key, ' ')}={_escape(value, '')}\n" for key, value in props.items())


# --- Connector files -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConnectorFile:
    """A connector file. `initial_state` is one of INITIAL_STATES, or None if the file does not set it."""

    name: str
    config: dict
    initial_state: str | None
    path: str


def load_connector(path, warn=True):
    """Read a connector from JSON {key: value}, from JSON {name, config, initial_state}, or from properties; the file's suffix is ignored."""
    path = str(path)
    data = _read(path)
    try:
        found = _json(data)
    except ValueError as error:
        props = load(path, warn)
        if "name" not in props and data.lstrip()[:1] == b"{":
            raise ConfigError(f"{path}: looks like JSON, but is invalid: {error}.") from None
        return _named(path, props)
    if not isinstance(found, dict):
        return _named(path, load(path, warn))  # a properties file may begin with a number or a quoted string
    if any(isinstance(value, (dict, list)) for value in found.values()):
        return _create_request(path, found)
    return _named(path, _texts(path, found))


def _named(path, config):
    if not config.get("name"):
        raise ConfigError(f"{path}: the connector has no name. Add the key 'name'.", {"name": "is missing"})
    return ConnectorFile(config["name"], config, None, path)


def _create_request(path, found):
    config = found.get("config")
    if not isinstance(config, dict):
        nested = next(key for key, value in found.items() if isinstance(value, (dict, list)))
        raise ConfigError(
            f"{path}: the value of '{nested}' is not a text. A connector file is a map of texts, or an object "
            "with 'name', 'config' (a map of texts) and, if wanted, 'initial_state'."
        )
    config = _texts(path, config)
    name = found.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{path}: the connector has no name. Add 'name' beside 'config'.", {"name": "is missing"})
    if config.setdefault("name", name) != name:
        raise ConfigError(f"{path}: 'name' is '{name}', but 'name' within 'config' is '{config['name']}'. Make them equal, or drop the latter.")
    state = found.get("initial_state")
    if state is not None:
        state = str(state).upper()
        if state not in INITIAL_STATES:
            raise ConfigError(f"{path}: 'initial_state' is '{found['initial_state']}'; it must be one of {', '.join(INITIAL_STATES)}.")
    return ConnectorFile(name, config, state, path)


def _texts(path, found):
    """A map of JSON values as strings: numbers as they are written."""
    texts = {}
    for key, value in found.items():
        if isinstance(value, (dict, list)):
            raise ConfigError(f"{path}: the value of '{key}' is not a text, but {'an object' if isinstance(value, dict) else 'a list'}.")
        texts[key] = str(value).lower() if isinstance(value, bool) else value
    return texts


def _json(data):
    """The JSON value at the start of the bytes; numbers stay strings. Raises ValueError."""
    text = data.decode(json.detect_encoding(data)).lstrip()
    return json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse).raw_decode(text)[0]


def _refuse(word):
    raise ValueError(f"{word} is not a JSON value")


# --- Lines and escapes ---------------------------------------------------------------------------------------------


def _logical_lines(text):
    """(number of its first line, line) of each entry: comments and blank lines dropped, continued lines joined."""
    lines = _LINE_END.split(text)
    joined, first, open_end = "", 0, False
    for number, whole in enumerate(lines, 1):
        line = whole.lstrip(_BLANKS)
        # As in Java also after a continuation that has added nothing yet.
        if not joined:
            if line[:1] in ("", "#", "!"):
                # No line follows the last line end: a continuation before it stays open.
                open_end = open_end and not whole and number == len(lines) and not text.endswith("\r\n")
                continue
            first = number
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        joined += line[:-1] if continued else line
        if not continued:
            yield first, joined
            joined = ""
        open_end = continued
    # As in Java a lone backslash at the end of the file is an empty entry.
    if joined or open_end:
        yield first, joined


def _unescape(text):
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_unescaped, text)
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")  # joins the pairs
    return text


def _unescaped(match):
    escape = match[1]
    if escape[0] == "u":
        if len(escape) < 5:
            raise ValueError(f"'{match.string[match.start() :][:6]}' is no character")
        return chr(int(escape[1:], 16))
    return _NAMED.get(escape, escape)


def _escape(text, blanks):
    """With `spaces` all spaces are escaped, otherwise only leading ones."""
    lead = len(text) - len(text.lstrip(" "))
    return "".join(
        "\\ " if char == " " and (char in blanks or at < lead) else _WRITTEN.get(char) or _ascii(char) for at, char in enumerate(text)
    )


def _ascii(char):
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _is_utf8(data):
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a directory, not a file.") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.") from error
