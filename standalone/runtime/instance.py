"""The connector's own object: started, asked and stopped in a lane of its own, so that what hangs there can be abandoned."""

from standalone.connector import ConnectorContext
from standalone.runtime.lanes import Abandoned, Lane


class Instance:
    """Made and used within calls of a Managed's lane; `apart(call, at_once)` is how those run what may hang. Raises Abandoned."""

    def __init__(self, managed, apart):
        self._context = _Context(managed)
        self._apart = apart
        self._lane = Lane(managed.name)
        self._connector = None

    def start(self, plan):
        def start(_):
            self._connector = plan.connector_class()
            self._connector.initialize(self._context)
            self._connector.start(dict(plan.originals))

        try:
            self.ask(start)
        except Abandoned:
            self._lane.post(lambda: self._connector.stop())  # should it ever have started
            raise

    def ask(self, call, at_once=False):
        """What `call` returns of the connector."""
        return self._apart(lambda: self._lane.post(lambda: call(self._connector)).result(), at_once)

    def stop(self):
        self.ask(lambda connector: connector.stop(), at_once=True)


class _Context(ConnectorContext):
    def __init__(self, managed):
        self._managed = managed
        self.name = managed.name

    def request_task_reconfiguration(self):
        self._managed.lane.post(self._managed.reconfigure_tasks).add_done_callback(self._done)

    def raise_error(self, error):
        self._managed.fail(error)

    def offset_reader(self):
        return self._managed.offset_reader()

    def _done(self, future):
        error = future.exception()
        if error is not None and not isinstance(error, Abandoned):
            self.raise_error(error)
