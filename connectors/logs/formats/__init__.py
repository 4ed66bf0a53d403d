"""Line formats. One file each, imported on first use, because most import large packages.

    format = load("combined")(config)
    format.rule                          a multiline.Rule if its records span lines, else None
    format.reader(head) -> Reader        one for each file; `head()` returns its first line
    reader.parse(column, is_begin) -> Parsed

Parsing is columnar if an RE2 expression is sufficient.
"""

import importlib

_FORMATS = {  # name -> (module, class)
    "raw": ("raw", "Raw"), "json": ("maps", "Json"), "logfmt": ("maps", "Logfmt"), "syslog": ("syslog", "Syslog"),
    "combined": ("combined", "Combined"), "cri": ("cri", "Cri"), "docker": ("docker", "Docker"), "csv": ("csv_lines", "Csv"),
    "regex": ("by_regex", "ByRegex"),
}  # fmt: skip
FORMATS = tuple(_FORMATS)


def load(name):
    """The class of the format with that name."""
    module, kind = _FORMATS[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), kind)
