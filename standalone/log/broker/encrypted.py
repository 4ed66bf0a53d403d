"""A TLS connection: the handshake, and decrypted bytes that the selector cannot see."""

import logging
import os
import ssl

from standalone.log.broker.client import subject_of
from standalone.log.broker.connection import Connection
from standalone.log.broker.segments import FileSlice

_SLICE_BYTES = 64 << 10  # of a file, encrypted per turn

logger = logging.getLogger(__name__)


class EncryptedConnection(Connection):
    """`sock` is wrapped before its handshake; `name_of` maps a certificate's subject to a user name."""

    def __init__(self, sock, client, on_frame, clock, name_of):
        super().__init__(sock, client, on_frame, clock)
        self._name_of = name_of
        self._shaken = self._must_write = False

    @property
    def wants_to_write(self):
        return self._must_write if not self._shaken else super().wants_to_write

    @property
    def holds_a_request(self):
        return super().holds_a_request or self._holds_more

    @property
    def _holds_more(self):
        """Whether decrypted bytes wait in the TLS buffer, where the selector does not see them."""
        return self._shaken and not self.busy and not self._out and self.wants_to_read and self.sock.pending() > 0

    def receive(self):
        if not self._shaken:
            return self._shake_hands()
        alive = super().receive()
        while alive and not self.is_closed and self._holds_more:
            alive = super().receive()
        return alive

    def flush(self):
        return super().flush() if self._shaken else self._shake_hands()

    def go_on(self):
        return self.receive() if not super().holds_a_request else self.work()

    def _shake_hands(self):
        self.active_at = self._clock.monotonic()
        self._must_write = False
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            return True
        except ssl.SSLWantWriteError:
            self._must_write = True
            return True
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "verify_message", "") or getattr(problem, "reason", None) or problem
            logger.info("%s: TLS failed: %s.", self.peer, reason)
            return False
        self._shaken = True
        certificate = self.sock.getpeercert()
        if certificate:
            self.client.principal = f"User:{self._name_of(subject_of(certificate))}"
        return self.receive()

    def _take(self, view):
        try:
            return self.sock.recv_into(view)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def _give(self, view, more):
        try:
            return self.sock.send(view)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def _send_slice(self, piece):
        """Read and encrypt here: the kernel cannot."""
        file, position, length = piece
        while length:
            data = os.pread(file.fd, min(length, _SLICE_BYTES), position)
            if not data:
                raise OSError("the file is shorter than it was")
            rest = self._send_bytes(data)
            sent = len(data) - (len(rest) if rest else 0)
            position, length = position + sent, length - sent
            if rest:
                return FileSlice(file, position, length)
        return None

    def close(self):
        if not self.is_closed and self._shaken:
            try:
                self.sock.unwrap()  # send close_notify without waiting for the client's
            except (OSError, ValueError):
                pass
        super().close()
