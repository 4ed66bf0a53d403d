"""The topics that connectors have used, recorded on first use; they survive a restart."""

import threading


class ActiveTopics:
    def __init__(self, state, enabled=True):
        self._state = state
        self._enabled = enabled
        self._lock = threading.Lock()
        self._used = {}  # connector -> its topics

    def restore(self):
        for connector, topic in self._state.topics():
            self._used.setdefault(connector, set()).add(topic)

    def of(self, connector):
        with self._lock:
            return sorted(self._used.get(connector, ()))

    def note(self, connector, topic):
        """Called for every batch: cheap if the topic is known."""
        if not self._enabled or topic in self._used.get(connector, ()):
            return
        with self._lock:
            self._used.setdefault(connector, set()).add(topic)
        self._state.put_topic(connector, topic)

    def reset(self, connector):
        with self._lock:
            self._used.pop(connector, None)
        self._state.delete_topics(connector)

    def forget(self, connector):
        """The connector is deleted. Does not wait."""
        with self._lock:
            self._used.pop(connector, None)
        self._state.delete_topics(connector, wait=False)

    def creation(self, connector, topics):
        """A TopicCreation that also records the topics."""
        return _NotingCreation(self, connector, topics)


class _NotingCreation:
    def __init__(self, active, connector, topics):
        self._active, self._connector, self._topics = active, connector, topics
        self.close = topics.close

    def ensure(self, topic):
        self._topics.ensure(topic)
        self._active.note(self._connector, topic)
