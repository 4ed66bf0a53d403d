"""One request as a handler sees it: the client, its permissions, and how to respond."""

import logging
from struct import Struct

from standalone.log.broker.operations import CLUSTER_NAME, operations_on

_SIZE = Struct(">i")

logger = logging.getLogger(__name__)


class Call:
    """`owner` is the server's loop; `needs` is {resource type: operation} that the request requires on each resource it names.

    A handler responds at once with its return value, or later through one of these methods.
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
        self.still_true = None  # set by a handler, callable from any thread: whether the same request would get the same response

    @property
    def address(self):
        """(host, port) that the client should use to reach this server."""
        return self.client.listener.address_for(self._connection.local[0])

    # --- Permissions

    def may(self, resource, name=CLUSTER_NAME, operation=None):
        """Whether this request's operation, or `operation`, is allowed on the resource."""
        return self._authorizer.allows(self.client.principal, self.peer, operation or self._needs[resource], resource, name)

    def may_some(self, resource, operation):
        return self._authorizer.allows_some(self.client.principal, self.peer, operation, resource)

    def require(self, resource, name=CLUSTER_NAME, operation=None):
        """Raise Refusal if it is not allowed."""
        self._authorizer.require(self.client.principal, self.peer, operation or self._needs[resource], resource, name)

    def operations_on(self, resource, name=CLUSTER_NAME):
        """Return the numbers of the operations that the client may perform on the resource."""
        return {operation for operation in operations_on(resource) if self.may(resource, name, operation)}

    # --- Responding

    @property
    def on_hang_up(self):
        return self._connection.on_hang_up

    @on_hang_up.setter
    def on_hang_up(self, action):
        """Call `action` if the client disconnects before the response."""
        self._connection.on_hang_up = action

    def when_it_ends(self, key, action):
        """Call `action` when the connection closes. Replaces the previous action with this key; None removes it."""
        if action is None:
            self._connection.endings.pop(key, None)
        else:
            self._connection.endings[key] = action

    def answer(self, response):
        response.with_header(correlation_id=self._correlation_id)
        self._send([response.encode(header=True, framed=True)])

    def answer_spliced(self, response):
        """Send a FetchResponse whose records are file slices."""
        response.with_header(correlation_id=self._correlation_id)
        pieces, size = response.encode_pieces()
        pieces[0] = _SIZE.pack(size) + pieces[0]
        self._send(pieces)

    def answer_and_hang_up(self, response, why):
        self.answer(response)
        self.hang_up(why)

    def answer_token(self, token):
        """Send a SASL token to a client that logs in without request framing."""
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
