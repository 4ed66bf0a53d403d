"""Subscription: the topics a consumer wants, which of them exist, and when to refresh that."""

import functools
import logging
import re

from standalone.errors import ConfigError, LogError, LogRetriableError
from standalone.log import error_codes as codes
from standalone.log.broker_errors import broker_error, is_retriable
from standalone.log.retry import Backoff, Outage
from standalone.log.steps import Underway

log = logging.getLogger(__name__)

ASK_SECONDS = 2.0  # limit of one metadata request, so that polls can do other work
MISSING_TOPIC_SECONDS = 1.0  # between lookups of missing topics


class Subscription:
    """`chosen` are the names of the topics to read; `look` refreshes the metadata of these and others."""

    def __init__(self, cluster, config, clock):
        self._cluster, self._config, self._clock = cluster, config, clock
        self._names, self._pattern = [], None
        self._seen, self._missing = set(), set()
        self._asking = self._found = None  # Underway; its result, not taken yet
        self._backoff, self._asked = Backoff(config, "retry.backoff"), False
        self._outage = Outage("Topics can be looked up again.")
        self.chosen = None  # None until looked up
        self.look_at = float("inf")

    def want(self, names=None, pattern=None):
        if pattern is not None and not hasattr(pattern, "fullmatch"):
            try:
                pattern = re.compile(pattern)
            except re.error as problem:
                raise ConfigError.of({"topics.regex": f"'{pattern}' is not a regular expression: {problem}"}) from problem
        self._names, self._pattern, self.chosen = list(dict.fromkeys(names or ())), pattern, None
        self.look_at = 0

    def look_now(self):
        self.look_at = 0

    def look_soon(self):
        """Metadata seems outdated: look again, with backoff while that does not help."""
        if not self._asked:
            self._asked = True
            self.look_at = min(self.look_at, self._clock.monotonic() + self._backoff.next())

    def is_right(self):
        """Metadata has proved correct: reset the backoff."""
        self._backoff.reset()

    @property
    def due(self):
        return self._asking is None and self._clock.monotonic() >= self.look_at

    @property
    def underway(self):
        return [self._asking] if self._asking is not None else []

    def look(self, others):
        """Start fetching the metadata of the wanted topics and `others`, without waiting; `take_found` returns it later."""
        self._asked, self.look_at = False, float("inf")
        self._asking = Underway(self._ask(set(self._names) | others), functools.partial(self._answered, set(self._names), others))
        self._asking.advance()

    def take_found(self):
        """Return {name: Topic} of existing topics once per finished `look`, else None. Raise if a topic must not be read."""
        found, self._found = self._found, None
        if isinstance(found, LogError):
            raise found
        return found

    def _answered(self, names, others, found, error):
        self._asking, self._asked = None, False
        if names != set(self._names):
            self.look_at = 0  # the subscription changed meanwhile
            return
        if error is not None:
            if not isinstance(error, LogRetriableError):
                self._found = error
                return
            self._outage.begins(f"Topics cannot be looked up: {error}")
            self.look_at = self._clock.monotonic() + self._backoff.next()
            return
        self._outage.ends()
        for topic in found.values():
            if topic.error_code and not is_retriable(topic.error_code):
                self._found = broker_error(topic.error_code, f"Reading topic '{topic.name}'")
                return
        there = {name: topic for name, topic in found.items() if not topic.error_code}
        self._tell_missing(names - set(there))
        self._seen |= set(there)
        leaderless = any(partition.leader < 0 for topic in there.values() for partition in topic.partitions.values())
        age = self._config.seconds("metadata.max.age.ms")
        wanting = leaderless or self._missing or others - set(there)
        self.look_at = self._clock.monotonic() + (min(MISSING_TOPIC_SECONDS, age) if wanting else age)
        self.chosen = self._names if self._pattern is None else self._matching(there)
        self._found = there

    def close(self):
        for each in self.underway:
            each.close()

    def topic_id(self, name):
        """The topic's id if known, without a request."""
        topic = self._cluster.known_topic(name)
        return topic.id if topic is not None else None

    def _ask(self, wanted):
        if self._pattern is not None:
            return (yield from self._cluster.refreshing(None, timeout=ASK_SECONDS, wait_for_brokers=False))
        names = list(self._names)
        found = (yield from self._cluster.refreshing(sorted(wanted), timeout=ASK_SECONDS, wait_for_brokers=False)) if wanted else {}
        # Auto-create only topics that never existed: a deleted topic must not come back because a consumer still reads it.
        unknown = {name for name in names if name not in found or found[name].error_code == codes.UNKNOWN_TOPIC_OR_PARTITION}
        unborn = unknown - self._seen
        if unborn and self._config["allow.auto.create.topics"]:
            made = yield from self._cluster.refreshing(sorted(unborn), create=True, timeout=ASK_SECONDS, wait_for_brokers=False)
            found.update(made)
        return found

    def _matching(self, there):
        hidden = self._config["exclude.internal.topics"]
        return [name for name, topic in there.items() if self._pattern.fullmatch(name) and not (hidden and topic.internal)]

    def _tell_missing(self, missing):
        for name in sorted(missing - self._missing):
            log.warning("Topic %s does not exist %s; waiting for it.", name, "any more" if name in self._seen else "yet")
        self._missing = missing
