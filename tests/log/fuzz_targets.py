"""What any bytes may be given to: the codec, the parser of requests, the embedded log itself, a login. A target raises where it should not.

Each takes bytes, of which it may say that they are none, as its own errors do; it may take memory by what it was sent, and no more. The
corpus beside this file is what coverage-guided fuzzing found worth keeping (scripts/soak/fuzz.py); test_corpus.py gives it to the targets.
"""

import contextlib
import shutil
import struct
import tempfile
import tracemalloc

import numpy as np

from standalone.errors import CorruptBatchError
from standalone.log import batch_header, record_batch
from standalone.log.broker import requests, server
from standalone.log.broker.login_error import LoginError
from standalone.log.broker.logins import SCRAM, Logins
from standalone.log.broker.users import credential_of

_REQUESTS_A_LOG = 500
TIMES_WHAT_CAME, AND_MORE = 400, 4 << 20  # an empty string of one byte becomes an object of fifty, in lists, in dicts; and what imports take


@contextlib.contextmanager
def bounded(size, room=AND_MORE):
    """AssertionError: what is done inside takes more memory than `size` bytes that came allow."""
    if not tracemalloc.is_tracing():
        yield
        return
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    yield
    taken = tracemalloc.get_traced_memory()[1] - before
    assert taken <= TIMES_WHAT_CAME * size + room, f"{size} bytes took {taken} of memory"


def codec(data):
    """A fetch's records, with whatever checksums they have, and then with the right ones."""
    most = 1 << 20
    for buffer in (data, _with_right_checksum(data)):
        with bounded(len(data), room=AND_MORE + 8 * most):
            try:
                unpacked = record_batch.unpack(buffer, from_offset=0, check_crc=buffer is data, max_decompressed_bytes=most)
                for records in unpacked.records:
                    assert len(records.offsets) == len(records)
                    for column in (records.keys, records.values):
                        if column is not None:
                            list(column)
            except CorruptBatchError:
                pass


def _with_right_checksum(data):
    if len(data) < batch_header.HEADER.size:
        return data
    made = bytearray(data)
    made[batch_header.MAGIC_AT] = batch_header.MAGIC
    struct.pack_into(">i", made, 8, len(made) - batch_header.PREFIX_BYTES)
    batch_header.set_checksum(np.frombuffer(made, np.uint8))
    return bytes(made)


def parser(data):
    """A request, whatever it is: three bytes choose which and its version."""
    if len(data) < 3:
        return
    rows = requests.REQUESTS
    row = rows[data[0] % len(rows)]
    version = row.low + data[1] % (row.high - row.low + 1)
    with bounded(len(data)):
        try:
            row.request.decode(memoryview(data)[2:], version=version)
        except server._UNREADABLE:
            pass


class Log:
    """`log(data)`: requests to an embedded log, all on one connection, each answered or hung up on. Nothing listens, and no thread runs."""

    def __init__(self):
        self._requests = 0
        self._begin()

    def _begin(self):
        self._folder = tempfile.mkdtemp()
        settings = {"embedded.log.segment.bytes": "2048", "embedded.log.num.partitions": "2"}
        self._log = server.EmbeddedLog(self._folder, "127.0.0.1:0", settings)
        self._owner = server._BrokerThread(self._log._security, self._log._settings, self._log._clock)
        node = server.Node(self._folder, self._log._settings, self._log._clock, self._owner._timers, self._at_once, self._at_once)
        self._owner._node = node
        self._log._security.settle(node)
        node.api_versions = [(key, row.low, row.high) for key, row in sorted(requests.HANDLERS.items())]

    @staticmethod
    def _at_once(jobs, then):
        for job in jobs:
            job.run()
        if then:
            then()

    def __call__(self, data):
        connection = _Wire(self._log._security.listeners[0])
        while len(data) > 4 and not connection.is_closed:
            row = requests.REQUESTS[data[0] % len(requests.REQUESTS)]
            version = row.low + data[1] % (row.high - row.low + 1)
            size = struct.unpack_from(">H", data, 2)[0]
            body, data = data[4 : 4 + size], data[4 + size :]
            flexible = row.request.flexible_version_q(version)
            head = struct.pack(">hhih", row.request.API_KEY, version, 7, 4) + b"fuzz" + (b"\0" if flexible else b"")
            connection.busy = True
            self._owner._dispatch(connection, memoryview(bytearray(head + body)))
        connection.close()
        self._requests += 1
        if self._requests % _REQUESTS_A_LOG == 0:  # what is kept would slow down what comes
            self.close()
            self._begin()

    def close(self):
        self._owner._node.close()
        for each in (self._owner._selector, self._owner._wake_in, self._owner._wake_out):
            each.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class _Wire:
    """A connection that swallows its answers."""

    def __init__(self, listener):
        from standalone.log.broker.client import Client

        self.client, self.peer, self.local = Client(listener), "fuzz", ("127.0.0.1", 9092)
        self.is_closed = self.busy = False
        self.at_work, self.events, self.on_hang_up = True, 0, None

    def send(self, pieces):
        return True

    def close(self):
        self.is_closed = True
        waiting, self.on_hang_up = self.on_hang_up, None
        if waiting:
            waiting()


_LOGINS = Logins(["PLAIN", *SCRAM], fixed={"ann": "secret"})
_LOGINS._fixed_credential = lambda mechanism, user, known={}: known.setdefault((mechanism, user), credential_of(mechanism, "secret"))  # noqa: B006


def login(data):
    """Tokens of a login, each after its length; the first byte chooses the mechanism."""
    mechanism = _LOGINS.mechanisms[data[0] % 3] if data else "PLAIN"
    exchange, data = _LOGINS.begin(mechanism), data[1:]
    try:
        while data and not exchange.done:
            token, data = data[1 : 1 + data[0]], data[1 + data[0] :]
            exchange.step(bytes(token))
    except LoginError:
        pass
    assert not exchange.done or mechanism == "PLAIN", "a proof was guessed"


TARGETS = {"codec": lambda: codec, "parser": lambda: parser, "log": Log, "login": lambda: login}  # makers
