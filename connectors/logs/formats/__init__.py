"""Formats: what lines mean. One file each; FORMATS has them by name.

    format = FORMATS["combined"](config)
    format.rule                          a multiline.Rule where records of it span lines, else None
    format.reader(head) -> Reader        one for each file; `head()` gives its first line
    reader.parse(column, is_begin) -> Parsed

Parsing is columnar where a regular expression of RE2 can do it.
"""

from connectors.logs.formats.raw import Raw

FORMATS = {"raw": Raw}
