"""Formats: what lines mean. One file each; FORMATS has them by name.

    format = FORMATS["combined"](config)
    format.rule                          a multiline.Rule where records of it span lines, else None
    format.reader(head) -> Reader        one for each file; `head()` gives its first line
    reader.parse(column, is_begin) -> Parsed

Parsing is columnar where a regular expression of RE2 can do it.
"""

from connectors.logs.formats.by_regex import ByRegex
from connectors.logs.formats.combined import Combined
from connectors.logs.formats.cri import Cri
from connectors.logs.formats.csv_lines import Csv
from connectors.logs.formats.docker import Docker
from connectors.logs.formats.maps import Json, Logfmt
from connectors.logs.formats.raw import Raw
from connectors.logs.formats.syslog import Syslog

FORMATS = {
    "raw": Raw, "json": Json, "logfmt": Logfmt, "syslog": Syslog, "combined": Combined, "cri": Cri, "docker": Docker, "csv": Csv, "regex": ByRegex,
}  # fmt: skip
