"""Formats: what lines mean. One file each, loaded when it is asked for: most of them need what takes memory.

    format = load("combined")(config)
    format.rule                          a multiline.Rule where records of it span lines, else None
    format.reader(head) -> Reader        one for each file; `head()` gives its first line
    reader.parse(column, is_begin) -> Parsed

Parsing is columnar where a regular expression of RE2 can do it.
"""

import importlib

_FORMATS = {  # name -> (module, class)
    "raw": ("raw", "Raw"), "json": ("maps", "Json"), "logfmt": ("maps", "Logfmt"), "syslog": ("syslog", "Syslog"),
    "combined": ("combined", "Combined"), "cri": ("cri", "Cri"), "docker": ("docker", "Docker"), "csv": ("csv_lines", "Csv"),
    "regex": ("by_regex", "ByRegex"),
}  # fmt: skip
FORMATS = tuple(_FORMATS)


def load(name):
    """The class of the format of that name."""
    module, kind = _FORMATS[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), kind)
