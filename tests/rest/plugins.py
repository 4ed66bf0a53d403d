"""Connectors for the tests of the REST API. Named by path: tests.rest.plugins:Name."""

import threading

from standalone import HIGH, PASSWORD, ConfigDef, Option, SourceConnector, SourceTask

HANG = threading.Event()


class IdleTask(SourceTask):
    def start(self, config):
        self.over = threading.Event()

    def poll(self):
        self.over.wait(0.5)

    def stop(self):
        self.over.set()


class SecretSource(SourceConnector):
    config_def = ConfigDef(Option("secret", PASSWORD, HIGH, "A password."))
    task_class = IdleTask


class HangingSource(SourceConnector):
    """Its start does not come back until HANG is set."""

    config_def = ConfigDef()
    task_class = IdleTask

    def start(self, config):
        super().start(config)
        HANG.wait(60)
