"""Subscription: which topics a consumer wants, and which of them are there; knows when it is time to look again."""

import logging
import re

from standalone.errors import ConfigError, LogRetriableError
from standalone.log.broker_errors import broker_error, is_retriable
from standalone.log.client import Backoff
from standalone.log.link import Trouble

log = logging.getLogger(__name__)

ASK_SECONDS = 2.0  # for how long a poll may be deaf to `wakeup` while it asks the cluster
MISSING_TOPIC_SECONDS = 1.0  # between looks for topics that are not there
UNKNOWN_TOPIC = 3


class Subscription:
    """`chosen` are the topics to read, by name; what is there of them and of others `look` says."""

    def __init__(self, cluster, config, clock):
        self._cluster, self._config, self._clock = cluster, config, clock
        self._names, self._pattern = [], None
        self._seen, self._missing = set(), set()
        self._backoff, self._asked = Backoff(config, "retry.backoff"), False
        self._trouble = Trouble("Topics can be looked up again.")
        self.chosen = None  # None until they were looked up
        self.look_at = float("inf")

    def want(self, names=None, pattern=None):
        if pattern is not None and not hasattr(pattern, "fullmatch"):
            try:
                pattern = re.compile(pattern)
            except re.error as problem:
                raise ConfigError.of({"topics.regex": f"'{pattern}' is no regular expression: {problem}"}) from problem
        self._names, self._pattern, self.chosen = list(dict.fromkeys(names or ())), pattern, None
        self.look_at = 0

    def look_now(self):
        self.look_at = 0

    def look_soon(self):
        """What is known of the topics seems wrong: look again, the later the oftener it did not help."""
        if not self._asked:
            self._asked = True
            self.look_at = min(self.look_at, self._clock.monotonic() + self._backoff.next())

    def is_right(self):
        """What is known of the topics has proved right."""
        self._backoff.reset()

    @property
    def due(self):
        return self._clock.monotonic() >= self.look_at

    def look(self, others):
        """{name: Topic} of those there are among what is wanted and `others`; None where nobody could be asked, to be tried again."""
        self._asked = False
        try:
            found = self._ask(set(self._names) | others)
        except LogRetriableError as error:
            self._trouble.is_on(f"Topics cannot be looked up: {error}")
            self.look_at = self._clock.monotonic() + self._backoff.next()
            return None
        self._trouble.is_over()
        for topic in found.values():
            if topic.error_code and not is_retriable(topic.error_code):
                raise broker_error(topic.error_code, f"Reading topic '{topic.name}'")
        there = {name: topic for name, topic in found.items() if not topic.error_code}
        self._tell_missing(set(self._names) - set(there))
        self._seen |= set(there)
        leaderless = any(partition.leader < 0 for topic in there.values() for partition in topic.partitions.values())
        age = self._config.seconds("metadata.max.age.ms")
        wanting = leaderless or self._missing or others - set(there)
        self.look_at = self._clock.monotonic() + (min(MISSING_TOPIC_SECONDS, age) if wanting else age)
        self.chosen = self._names if self._pattern is None else self._matching(there)
        return there

    def topic_id(self, name):
        """As far as it is known; without asking."""
        topic = self._cluster.known_topic(name)
        return topic.id if topic is not None else None

    def _ask(self, wanted):
        if self._pattern is not None:
            return self._cluster.refresh(None, timeout=ASK_SECONDS)
        found = self._cluster.refresh(sorted(wanted), timeout=ASK_SECONDS) if wanted else {}
        # Only what was never there is made: a deleted topic must not rise again because somebody still reads it.
        unknown = {name for name in self._names if name not in found or found[name].error_code == UNKNOWN_TOPIC}
        unborn = unknown - self._seen
        if unborn and self._config["allow.auto.create.topics"]:
            found.update(self._cluster.refresh(sorted(unborn), create=True, timeout=ASK_SECONDS))
        return found

    def _matching(self, there):
        hidden = self._config["exclude.internal.topics"]
        return [name for name, topic in there.items() if self._pattern.fullmatch(name) and not (hidden and topic.internal)]

    def _tell_missing(self, missing):
        for name in sorted(missing - self._missing):
            log.warning("Topic %s does not exist %s; waiting for it.", name, "any more" if name in self._seen else "yet")
        self._missing = missing
