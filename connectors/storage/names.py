"""File names contain topic, partition and the first and last offset, which show a sink's progress.

    topics/orders/partition=0/orders+0+0000000000+0000000099.avro
"""

import re
from urllib.parse import quote

_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\]")


class FileNames:
    def __init__(self, delimiter="+", width=10, extension=""):
        self._delimiter, self._width, self._extension = delimiter, width, extension
        mark = re.escape(delimiter)
        self._pattern = re.compile(rf"(.+){mark}(\d+){mark}(\d+){mark}(\d+)(\..*)?")

    def of(self, topic, partition, first, last=None, suffix=""):
        """Return a file's name. Without `last` only the first offset is in the name, as on S3. A suffix replaces the extension: .keys.avro"""
        offsets = [str(each).zfill(self._width) for each in (first, last) if each is not None]
        return self._delimiter.join([topic, str(partition), *offsets]) + (suffix or self._extension)

    def last_offset(self, name, topic, partition):
        """Return the last offset in a file's name; None if it belongs to another topic or partition."""
        return self._range(name, topic, partition)[1]

    def first_offset(self, name, topic, partition):
        return self._range(name, topic, partition)[0]

    def _range(self, name, topic, partition):
        match = self._pattern.fullmatch(name)
        if match is None or (match[1], int(match[2])) != (topic, partition):
            return None, None
        return int(match[3]), int(match[4])


def safe_segment(text):
    """Escape a value for use in a path, such as / as %2F, so that no record leaves its topic's folder."""
    if text in (".", ".."):
        return quote(text, safe="").replace(".", "%2E")
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def joined(*parts):
    """Join path parts, some of which may be empty."""
    return "/".join(part.strip("/") if at else part.rstrip("/") for at, part in enumerate(parts) if part.strip("/") or (not at and part))
