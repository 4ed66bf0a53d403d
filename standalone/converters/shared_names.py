"""Schema names and parameters shared by several formats, and name scrubbing."""

import re
from urllib.parse import quote_plus

GENERAL_UNION, GENERAL_ENUM = "org.apache.kafka.connect.data.Union", "org.apache.kafka.connect.data.Enum"


def scrubbed(name, but_underscore=False):
    """Replace characters other than letters, digits and _. Protobuf also allows no leading _."""
    if not name or re.fullmatch(r"[A-Za-z0-9_]+", name) and not _is_bad_start(name, but_underscore):
        return name
    encoded = quote_plus(name, safe="*")  # like Java's URLEncoder, which keeps letters, digits, '.', '-', '*' and '_'
    encoded = encoded.replace("~", "%7E")
    if _is_bad_start(encoded, but_underscore):
        encoded = "x" + encoded
    return re.sub(r"[^A-Za-z0-9_]", "_", encoded)


def _is_bad_start(name, but_underscore):
    return name[0].isdigit() or but_underscore and name[0] == "_"
