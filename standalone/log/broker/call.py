"""One request that wants an answer, as a handler sees it: who asks, what he may do, and how to answer."""

import logging
from struct import Struct

from standalone.log.broker.operations import CLUSTER_NAME, operations_on

_SIZE = Struct(">i")

logger = logging.getLogger(__name__)


class Call:
    """`owner` is the server's loop; `needs` is {kind of resource: operation}, which the request needs of each that it names.

    A handler answers at once, by what it returns, or calls one of these later.
    """

    def __init__(self, owner, connection, version, correlation_id, client_id, needs=None, authorizer=None):
        self.version = version
        self.client = connection.client
        self._needs, self._authorizer = needs or {}, authorizer
        self.client_id = client_id
        self.peer = connection.peer
        self._owner = owner
        self._connection = connection
        self._correlation_id = correlation_id
        self.still_true = None  # set by a handler: whether the answer would be the same again, as any thread may ask

    @property
    def address(self):
        """(host, port) by which the client may reach this server."""
        return self.client.listener.address_for(self._connection.local[0])

    # --- What the client may do

    def may(self, resource, name=CLUSTER_NAME, operation=None):
        """Whether what this request does with such a resource, or else `operation`, is allowed with this one."""
        return self._authorizer.allows(self.client.principal, self.peer, operation or self._needs[resource], resource, name)

    def may_some(self, resource, operation):
        return self._authorizer.allows_some(self.client.principal, self.peer, operation, resource)

    def require(self, resource, name=CLUSTER_NAME, operation=None):
        """Refusal if it is not."""
        self._authorizer.require(self.client.principal, self.peer, operation or self._needs[resource], resource, name)

    def operations_on(self, resource, name=CLUSTER_NAME):
        """The numbers of all that the client may do with it."""
        return {operation for operation in operations_on(resource) if self.may(resource, name, operation)}

    # --- Answering

    @property
    def on_hang_up(self):
        return self._connection.on_hang_up

    @on_hang_up.setter
    def on_hang_up(self, action):
        """Called if the client goes before it is answered."""
        self._connection.on_hang_up = action

    def when_it_ends(self, key, action):
        """Have `action` called when the connection ends, in place of what was asked for by the same key; None: nothing."""
        if action is None:
            self._connection.endings.pop(key, None)
        else:
            self._connection.endings[key] = action

    def answer(self, response):
        response.with_header(correlation_id=self._correlation_id)
        self._send([response.encode(header=True, framed=True)])

    def answer_spliced(self, response):
        """A FetchResponse whose records are in files."""
        response.with_header(correlation_id=self._correlation_id)
        pieces, size = response.encode_pieces()
        pieces[0] = _SIZE.pack(size) + pieces[0]
        self._send(pieces)

    def answer_and_hang_up(self, response, why):
        self.answer(response)
        self.hang_up(why)

    def answer_token(self, token):
        """To a client that logs in without requests."""
        self._send([_SIZE.pack(len(token)) + token])

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
