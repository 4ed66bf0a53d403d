"""systemd's Journal Export Format: entries of fields, a blank line after each.

    MESSAGE=text LF                                 a string without line ends
    MESSAGE LF, length (64 bits, little endian), bytes, LF      any other value
"""

import struct

_LENGTH = struct.Struct("<Q")


def entries(data):
    """([{field: text, or a list if it is repeated}], the bytes of the incomplete last entry)"""
    found, begin = [], 0
    while (parsed := _entry(data, begin)) is not None:
        entry, begin = parsed
        if entry:
            found.append(entry)
    return found, data[begin:]


def _entry(data, at):
    """(an entry, the position of the next one), or None if it is incomplete."""
    entry = {}
    while True:
        end = data.find(b"\n", at)
        if end < 0:
            return None
        if end == at:
            return entry, end + 1
        name, is_text, value = data[at:end].partition(b"=")
        at = end + 1
        if not is_text:
            if len(data) < at + _LENGTH.size:
                return None
            begin = at + _LENGTH.size
            size = _LENGTH.unpack_from(data, at)[0]
            if len(data) < begin + size + 1:
                return None
            value, at = data[begin : begin + size], begin + size + 1
        _add(entry, name.decode("ascii", "replace"), value.decode("utf-8", "replace"))


def _add(entry, name, value):
    if name not in entry:
        entry[name] = value
    elif isinstance(entry[name], list):
        entry[name].append(value)
    else:
        entry[name] = [entry[name], value]
