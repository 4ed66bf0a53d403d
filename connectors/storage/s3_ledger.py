"""Exactly-once on S3, which has no rename: objects are put only if their key does not exist.

    topics/orders/partition=0/orders+0+0000000100.avro      first offset in the key, first and last and the count in its metadata

A task that finds its key taken learns from the metadata how far the object reaches, skips these records in that folder, and reads again from the
group's committed offset. So a restarted task, and two concurrent ones, continue from the same record of each folder, and only one of them puts the
object that begins with it. This requires a partitioner that sends redelivered records to the same folder, which Wallclock
does not.
"""

import logging

import numpy as np

from connectors.storage.ledger import Overtaken

log = logging.getLogger(__name__)


class S3Ledger:
    def __init__(self, store, names, topic, partition, *, topics_dir, delimiter="/", is_conditional=True, run=None):
        self._store, self._names = store, names
        self._topic, self._partition = topic, partition
        self._place = delimiter.join(part for part in (topics_dir, topic) if part)
        self._delimiter = delimiter
        self._is_conditional = is_conditional
        self._run = run or (lambda call, items: [call(item) for item in items])
        self._reach = {}  # folder -> last stored offset, if others have stored more than the group has committed
        self._put = set()  # keys put by the current commit

    def take_over(self):
        return None  # start at the group's offset; later objects are found when their keys are taken

    def unwritten(self, offsets, folders_of, folders):
        """Return the rows that are in no object yet; None for all of them."""
        if not self._reach:
            return None
        reach = np.array([self._reach.get(folder, -1) for folder in folders], np.int64)
        kept = np.flatnonzero(offsets > reach[folders_of])
        return None if len(kept) == len(offsets) else kept

    @property
    def is_clean(self):
        """Whether no object spans the last committed offset. Only there a task may start: elsewhere its objects would begin in the middle of
        an existing one."""
        return not self._reach

    def commit(self, closed, next_offset):
        """Put these objects. May be repeated after an error. Raise Overtaken if others have put objects with other offset ranges."""
        met = [each for each in self._run(self._put_one, closed) if each is not None]
        self._put.clear()
        if met:
            # When read again, records of this commit are skipped as well.
            self._reach.update({each.folder: each.last for each in closed})
            self._reach.update(dict(met))
            raise Overtaken
        if self._reach and next_offset > max(self._reach.values()):
            self._reach.clear()

    def _put_one(self, closed):
        """Put an object; return None, or (folder, last offset) of a different object with its key."""
        key = self._key(closed.folder, closed.first, closed.suffix)
        if key in self._put:
            return None
        if closed.sides and self._is_conditional and (there := self._store.last_offset(key)) is not None:
            return self._met(closed, key, there)
        for suffix, spool in closed.sides:
            self._store.put(self._key(closed.folder, closed.first, suffix), spool, closed, False)
        if self._store.put(key, closed.spool, closed, self._is_conditional):
            self._put.add(key)
            return None
        return self._met(closed, key, self._store.last_offset(key))

    def _met(self, closed, key, last):
        if last is None:
            log.warning("%s already exists, without its last offset in the metadata: assuming that it is the object of this task", key)
            last = closed.last
        if last != closed.last:
            return closed.folder, last
        self._put.add(key)
        return None

    def _key(self, folder, first, suffix=""):
        name = self._names.of(self._topic, self._partition, first, suffix=suffix)
        return self._delimiter.join(part for part in (self._place, folder, name) if part)

    def must_be_owner(self, error):
        raise error

    def release(self):
        pass
