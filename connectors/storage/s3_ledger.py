"""Exactly once on S3, which renames nothing: each object is put on the condition that there is none of its key.

    topics/orders/partition=0/orders+0+0000000100.avro      first offset in the key, first and last and the count in its metadata

Who finds the key taken learns from the metadata how far the object reaches, leaves these records out in that folder, and reads again from where the
group stands. So a task that starts over, and two that write at once, continue from the same record of each folder, and only one of them puts the
object that begins with it. What is needed for that is a partitioner that sends a record that comes again to the same folder: with Wallclock
none does.
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
        self._reach = {}  # folder -> the last offset that is stored in it, where others have stored more than the group knows
        self._put = set()  # keys of the commit that is under way

    def take_over(self):
        return None  # the group says where to begin; what is stored beyond that is found when its key is taken

    def unwritten(self, offsets, folders_of, folders):
        """The rows that are in no object yet; None for all of them."""
        if not self._reach:
            return None
        reach = np.array([self._reach.get(folder, -1) for folder in folders], np.int64)
        kept = np.flatnonzero(offsets > reach[folders_of])
        return None if len(kept) == len(offsets) else kept

    @property
    def is_clean(self):
        """Whether no object reaches from before what was committed last to after it. Only there may a task begin: elsewhere it would put an
        object that begins in the middle of one."""
        return not self._reach

    def commit(self, closed, next_offset):
        """Put these objects. It may be called again after an error. Raises Overtaken where others have put objects of other lengths."""
        met = [each for each in self._run(self._put_one, closed) if each is not None]
        self._put.clear()
        if met:
            # What this commit has put is left out as well when it is read again.
            self._reach.update({each.folder: each.last for each in closed})
            self._reach.update(dict(met))
            raise Overtaken
        if self._reach and next_offset > max(self._reach.values()):
            self._reach.clear()

    def _put_one(self, closed):
        """None, or (folder, the last offset) of an object of another length that has its key already."""
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
            log.warning("%s already exists, and its metadata does not say its last offset: it is taken for what this task was to put there", key)
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

    def let_go(self):
        pass
