"""The topics: names, ids, configs and their partitions, each in a folder `<topic>-<partition>`.

A topic is stored first, then its folders are created. Deletion removes it from the store, then marks its folders, then deletes them. A
folder without a stored topic is adopted as a topic; only marked folders are deleted.
"""

import logging
import os
import re
import uuid

from standalone.log.broker import options
from standalone.log.broker.partitions import Partition
from standalone.log.broker.refusal import Refusal, codes
from standalone.log.broker.segments import Deletion, OpenFiles

MAX_NAME = 249
MAX_PARTITIONS = 10_000
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_DELETED = ".deleted"

logger = logging.getLogger(__name__)


class Topic:
    def __init__(self, name, topic_id, configs, values):
        self.name = name
        self.id = topic_id
        self.configs = configs  # set on the topic, as strings
        self.values = values  # all, typed; partitions share this dict
        self.partitions = []


class Topics:
    """Owned by one thread. `delete(jobs)` removes files and folders on another thread."""

    def __init__(self, folder, store, settings, delete=None):
        self._delete = delete
        self._files = OpenFiles()
        self._folder = folder
        self._store = store
        self._settings = settings
        self._shows_synced_only = settings["embedded.log.acks"] == options.FSYNC
        self._by_name = {}
        self._by_id = {}
        self.changes = 0  # counts changes of topics and partitions
        self._load()

    # --- Lookup

    def __iter__(self):
        return iter(sorted(self._by_name.values(), key=lambda topic: topic.name))

    def get(self, name):
        return self._by_name.get(name)

    def by_id(self, topic_id):
        return self._by_id.get(topic_id)

    def partition(self, name, number):
        """Return the partition; raise Refusal if it does not exist."""
        topic = self._by_name.get(name)
        if topic is None:
            raise Refusal(codes.UnknownTopicOrPartitionError, f"There is no topic '{name}'.")
        if not 0 <= number < len(topic.partitions):
            raise Refusal(codes.UnknownTopicOrPartitionError, f"Topic '{name}' has no partition {number}.")
        return topic.partitions[number]

    def partitions(self):
        for topic in self._by_name.values():
            yield from topic.partitions

    # --- Changes

    def check_new(self, name, partitions, configs):
        """Raise Refusal if the topic cannot be created."""
        check_name(name)
        if name in self._by_name:
            raise Refusal(codes.TopicAlreadyExistsError, f"Topic '{name}' exists already.")
        _check_count(name, partitions)
        self._check_configs(configs)

    def create(self, name, partitions=None, configs=None):
        partitions = partitions or self._settings["embedded.log.num.partitions"]
        configs = dict(configs or {})
        self.check_new(name, partitions, configs)
        topic = self._known(name, uuid.uuid4(), configs)
        self._store.save_topic(name, topic.id, partitions, configs)
        try:
            self._add_partitions(topic, partitions, {})
        except OSError as error:
            self._store.delete_topic(name)
            raise _no_room(name, error) from error
        self._put(topic)
        return topic

    def grow(self, topic, partitions, validate_only=False):
        if partitions <= len(topic.partitions):
            raise Refusal(
                codes.InvalidPartitionsError,
                f"Topic '{topic.name}' has {len(topic.partitions)} partitions; it cannot be given {partitions}.",
            )
        _check_count(topic.name, partitions)
        if not validate_only:
            self._store.save_topic(topic.name, topic.id, partitions, topic.configs)
            try:
                self._add_partitions(topic, partitions, {})
            except OSError as error:
                self._store.save_topic(topic.name, topic.id, len(topic.partitions), topic.configs)
                raise _no_room(topic.name, error) from error

    def configure(self, topic, configs, validate_only=False):
        """Replace the topic's configs."""
        self._check_configs(configs)
        if not validate_only:
            self._store.save_topic(topic.name, topic.id, len(topic.partitions), configs)
            topic.configs = configs
            topic.values.update(options.topic_values(configs, self._settings))

    def delete(self, topic):
        self._store.delete_topic(topic.name)
        marked = []
        for partition in topic.partitions:
            partition.close()
            if os.path.isdir(partition.folder):
                marked.append(os.path.join(self._folder, uuid.uuid4().hex + _DELETED))
                os.rename(partition.folder, marked[-1])
        del self._by_name[topic.name]
        del self._by_id[topic.id]
        self.changes += 1
        for partition in topic.partitions:
            partition.wake()
        self._remove([Deletion(marked)])

    def trim(self, partition, offset):
        partition.trim(offset)
        self._store.save_start(partition.topic, partition.number, partition.start)

    def _remove(self, jobs):
        if self._delete:
            self._delete(jobs)
        else:
            for job in jobs:
                job.run()

    # --- Recovery

    def _load(self):
        starts = self._store.starts()
        for name, topic_id, partitions, configs in self._store.topics():
            topic = self._known(name, topic_id, configs)
            self._add_partitions(topic, partitions, starts)
            self._put(topic)
        found = {}
        for entry in sorted(os.listdir(self._folder)):
            path = os.path.join(self._folder, entry)
            if entry.endswith(_DELETED):
                self._remove([Deletion([path])])
                continue
            name, _, number = entry.rpartition("-")
            if os.path.isdir(path) and number.isdigit() and is_legal(name) and name not in self._by_name:
                found[name] = max(found.get(name, 0), int(number) + 1)
        for name, partitions in found.items():
            logger.warning(
                "%s holds folders of a topic '%s' that is not written down; it is taken up with default configs.", self._folder, name
            )
            self.create(name, partitions)

    def _known(self, name, topic_id, configs):
        return Topic(name, topic_id, configs, options.topic_values(configs, self._settings))

    def _add_partitions(self, topic, count, starts):
        for number in range(len(topic.partitions), count):
            folder = os.path.join(self._folder, f"{topic.name}-{number}")
            start = starts.get((topic.name, number), 0)
            topic.partitions.append(Partition(topic.name, number, folder, topic.values, start, self._files, self._delete, self._shows_synced_only))
        self.changes += 1
        # Other partitions' folders are created with their first batches; the last one preserves the partition count if the store is lost.
        os.makedirs(topic.partitions[-1].folder, exist_ok=True)

    def _put(self, topic):
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic
        self.changes += 1

    def _check_configs(self, configs):
        for name, text in configs.items():
            why_not = options.refuse_topic_config(name, text)
            if why_not:
                raise Refusal(codes.InvalidConfigurationError, why_not)


def is_legal(name):
    return bool(name) and name not in (".", "..") and len(name) <= MAX_NAME and _LEGAL.fullmatch(name) is not None


def check_name(name):
    if not is_legal(name):
        raise Refusal(
            codes.InvalidTopicError,
            f"'{name}' cannot name a topic: 1 to {MAX_NAME} letters, digits, '.', '_' and '-' can, but not '.' or '..'.",
        )


def _no_room(name, error):
    return Refusal(codes.KafkaStorageError, f"The folders of topic '{name}' cannot be made: {error.strerror}.")


def _check_count(name, partitions):
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise Refusal(codes.InvalidPartitionsError, f"Topic '{name}' cannot have {partitions} partitions: 1 to {MAX_PARTITIONS}.")
