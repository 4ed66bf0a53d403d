"""Connectors for the tests of the web page. Named by path: tests.rest.ui_plugins:Name."""

import threading

from standalone import (
    BOOLEAN,
    HIGH,
    INT,
    LOW,
    MEDIUM,
    PASSWORD,
    STRING,
    ConfigDef,
    Option,
    SourceConnector,
    SourceRecord,
    SourceTask,
    at_least,
    one_of,
)

MARKUP = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


class TickerTask(SourceTask):
    """Some records, again and again."""

    def start(self, config):
        self.config, self.over, self.number = TickerSource.config_def.parse(config), threading.Event(), 0

    def poll(self):
        self.over.wait(self.config["pause.ms"] / 1000)
        self.number += 1
        where, value = self.config["topic"], f'{{"number": {self.number}, "text": "{self.config["text"]}"}}'
        return [SourceRecord(where, value, {"task": "ticker"}, {"number": self.number}, key=f"key-{self.number % 7}")] * self.config["burst"]

    def stop(self):
        self.over.set()


class TickerSource(SourceConnector):
    config_def = ConfigDef(
        Option("topic", STRING, HIGH, "Where its records go.", group="Ticking", order=1),
        Option("pause.ms", INT, HIGH, "Between two records, in milliseconds.", 20, check=at_least(1), group="Ticking", order=2),
        Option("burst", INT, LOW, "How many at once.", 1, group="Ticking", order=3),
        Option("text", STRING, MEDIUM, "What each of them says.", "tick", group="Ticking", order=4),
        Option("mode", STRING, HIGH, "How it ticks.", "even", check=one_of("even", "odd"), recommend=lambda name, parsed: ["even", "odd"]),
        Option("loud", BOOLEAN, HIGH, "Whether it can be heard.", False),
        Option("secret", PASSWORD, HIGH, "A password that is to be seen nowhere.", None),
        Option("markup", STRING, LOW, f"Documentation with {MARKUP} in it.", MARKUP),
    )
    task_class = TickerTask


class FailingTask(SourceTask):
    def poll(self):
        raise RuntimeError(f"It cannot continue: {MARKUP}")


class FailingSource(SourceConnector):
    config_def = ConfigDef()
    task_class = FailingTask
