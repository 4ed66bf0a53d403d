"""One request that wants an answer, as a handler sees it."""

import logging
from struct import Struct

_SIZE = Struct(">i")

logger = logging.getLogger(__name__)


class Call:
    """`owner` is the server's loop. A handler answers at once, by what it returns, or calls one of these later."""

    def __init__(self, owner, connection, version, correlation_id, client_id):
        self.version = version
        self.client_id = client_id
        self.peer = connection.peer
        self._owner = owner
        self._connection = connection
        self._correlation_id = correlation_id

    @property
    def address(self):
        """(host, port) by which the client may reach this server."""
        return self._owner.host or self._connection.local[0], self._owner.port

    @property
    def on_hang_up(self):
        return self._connection.on_hang_up

    @on_hang_up.setter
    def on_hang_up(self, action):
        """Called if the client goes before it is answered."""
        self._connection.on_hang_up = action

    def answer(self, response):
        response.with_header(correlation_id=self._correlation_id)
        self._send([response.encode(header=True, framed=True)])

    def answer_spliced(self, response):
        """A FetchResponse whose records lie in files."""
        response.with_header(correlation_id=self._correlation_id)
        pieces, size = response.encode_pieces()
        pieces[0] = _SIZE.pack(size) + pieces[0]
        self._send(pieces)

    def no_answer(self):
        self._send([])

    def hang_up(self, why):
        logger.info("%s: hung up on %s.", self.peer, why)
        self._owner.drop(self._connection)

    def _send(self, pieces):
        connection = self._connection
        if connection.is_closed:
            return
        connection.on_hang_up = None
        connection.busy = False
        if connection.send(pieces):
            self._owner.watch(connection)
        else:
            self._owner.drop(connection)
