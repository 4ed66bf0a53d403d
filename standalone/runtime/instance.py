"""The Connector object: its calls run one after another; an object that hangs is abandoned."""

import logging

from standalone.connector import ConnectorContext
from standalone.errors import trace_of
from standalone.runtime.calls import Abandoned, Mailbox, call_plugin

log = logging.getLogger(__name__)


class Instance:
    """Used within calls of its connector's mailbox. After `retired` its callbacks are ignored."""

    def __init__(self, actor, patience):
        self.retired = False
        self._context = _Context(self, actor)
        self._name = actor.name
        self._patience = patience  # takes `at_once`, returns a wait for call_plugin
        self._calls = Mailbox(actor.name)
        self._connector = None

    def start(self, plan):
        def start(_):
            self._connector = plan.connector_class()
            self._connector.initialize(self._context)
            self._connector.start(dict(plan.originals))

        try:
            self.ask("start()", start)
        except Abandoned:
            self.retired = True
            self._calls.post(lambda: self._connector.stop())  # in case it finishes starting later
            raise

    def ask(self, method, call, at_once=False):
        """Return what `call` returns of the connector object."""
        wait = self._patience(at_once)
        return call_plugin(lambda: call(self._connector), connector=self._name, method=method, on=self._calls, wait=wait)

    def stop(self):
        """Stop the object. Errors are logged, not raised."""
        self.retired = True
        try:
            self.ask("stop()", lambda connector: connector.stop(), at_once=True)
        except Abandoned as error:
            log.error("The connector '%s' did not stop and is abandoned. %s", self._name, error)
        except Exception as error:
            log.warning("The connector '%s' failed while it was being stopped: %s", self._name, trace_of(error))


class _Context(ConnectorContext):
    def __init__(self, instance, actor):
        self._instance = instance
        self._actor = actor
        self.name = actor.name

    def request_task_reconfiguration(self):
        self._actor.post(self._reconfigure)

    def raise_error(self, error):
        if not self._instance.retired:
            self._actor.fail(error)

    def offset_reader(self):
        return self._actor.offset_reader()

    def _reconfigure(self):
        if not self._instance.retired:
            self._actor.reconfigure_tasks()
