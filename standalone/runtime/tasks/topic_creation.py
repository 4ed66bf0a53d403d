"""Creates a source's topics before their first record, if topic.creation.* is configured; else the broker's auto-creation applies."""

import logging
import threading

log = logging.getLogger(__name__)


class TopicCreation:
    """`groups` are TopicGroups in order; the first that matches a topic determines how it is created."""

    def __init__(self, groups, new_admin):
        self._groups = groups
        self._new_admin = new_admin
        self._admin = None
        self._known = set()
        self._lock = threading.Lock()

    def ensure(self, topic):
        """Create the topic if it does not exist. Called for every batch: cheap if the topic is known."""
        if topic in self._known:
            return
        with self._lock:
            if topic not in self._known:
                if self._groups:
                    self._make(topic)
                self._known.add(topic)

    def _make(self, topic):
        if self._admin is None:
            self._admin = self._new_admin()
        if topic in self._admin.list_topics():
            return
        group = next(group for group in self._groups if group.takes(topic))
        if self._admin.create_topics(topic, group.partitions, group.replication_factor, group.configs):
            log.info("Created topic %s with %d partitions (topic.creation.%s)", topic, group.partitions, group.name)

    def close(self):
        if self._admin is not None:
            self._admin.close()


class TopicGroup:
    """How to create the topics that match its patterns (compiled; they match whole names)."""

    def __init__(self, name, include, exclude, partitions, replication_factor, configs):
        self.name = name
        self._include = include
        self._exclude = exclude
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.configs = configs

    def takes(self, topic):
        return _fits(self._include, topic) and not _fits(self._exclude, topic)


def _fits(patterns, topic):
    return any(pattern.fullmatch(topic) for pattern in patterns)
