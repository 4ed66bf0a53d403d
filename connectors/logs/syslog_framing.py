"""RFC 6587: splits a stream of bytes into messages, each with a length (`57 <34>1 …`) or ended by LF."""

import re

AUTO, OCTET_COUNTING, LF = "auto", "octet-counting", "lf"

_COUNT = re.compile(rb"([1-9]\d{0,8}) ")
_COUNT_BYTES = 10


class Framing:
    """Of one connection. With `auto` the first byte of each message decides: a digit begins a length."""

    def __init__(self, kind, most_bytes):
        self._kind = kind
        self._most = most_bytes
        self._rest = b""
        self._skip = 0  # remaining bytes of a counted message to skip
        self._skip_line = False
        self.cut = 0  # number of messages that were too long or incomplete

    def feed(self, data):
        """The messages that are complete now."""
        data, found, at = self._rest + data, [], 0
        while at < len(data):
            if self._skip:
                taken = min(self._skip, len(data) - at)
                self._skip -= taken
                at += taken
                continue
            count = None if self._skip_line else self._count(data, at)
            if count is not None and count < 0:
                break  # the length is not complete yet
            moved = self._line(data, at, found) if count is None else self._counted(data, at, count, found)
            if moved is None:
                break
            at = moved
        self._rest = data[at:]
        return found

    def end(self):
        """The connection is closed: a last line needs no LF; an incomplete counted message is dropped."""
        rest, self._rest = self._rest, b""
        if not rest or self._skip_line:
            return []
        if self._count(rest, 0) is not None:
            self.cut += 1
            return []
        return [text] if (text := _trimmed(rest)) else []

    def _count(self, data, at):
        """The length of the next message; None: it ends with LF; -1: not known yet."""
        if self._kind == LF:
            return None
        match = _COUNT.match(data, at)
        if match:
            return int(match[1])
        head = data[at : at + _COUNT_BYTES]
        return -1 if len(head) < _COUNT_BYTES and head.isdigit() and head[:1] != b"0" else None

    def _counted(self, data, at, count, found):
        begin = data.index(b" ", at) + 1
        if count > self._most:
            if len(data) - begin < self._most:
                return None
            self.cut += 1
            found.append(_trimmed(data[begin : begin + self._most]))
            self._skip = count - self._most
            return begin + self._most
        if len(data) - begin < count:
            return None
        found.append(_trimmed(data[begin : begin + count]))
        return begin + count

    def _line(self, data, at, found):
        end = data.find(b"\n", at)
        if end < 0 and len(data) - at <= self._most:
            return None if not self._skip_line else len(data)
        stop = len(data) if end < 0 else end
        if not self._skip_line:
            if stop - at > self._most:
                self.cut += 1
            if text := _trimmed(data[at : min(stop, at + self._most)]):
                found.append(text)
        self._skip_line = end < 0
        return stop if end < 0 else end + 1


def _trimmed(message):
    """Without the trailing bytes that some senders append."""
    return message.rstrip(b"\r\n\0")
