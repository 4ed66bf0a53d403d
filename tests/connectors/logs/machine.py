"""A log that is written, rotated in every way, packed and deleted while a reader comes and goes, against a model of what must have come.

Nothing is lost that is still on disk, nothing comes twice but what was not acknowledged when the reader was killed, order is kept.
"""

import collections
import os
import shutil
import tempfile

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.connectors.logs.driven import Reader
from tests.connectors.rotated_log import Log

GENERATIONS = 4


class LogsMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.log = Log(self.folder, generations=GENERATIONS)
        self.number = 0
        self.current = None  # the lines in app.log; None: there is no such file
        self.partial = ""  # what is after the last of them
        self.generations = []  # the lines of app.log.1, app.log.2, …
        self.packed = set()  # the numbers of those that are compressed
        self.written = []
        self.may_be_lost = set()
        self.may_repeat = set()
        self.reader = None
        self.came = []

    @initialize(glob=st.sampled_from(["app.log", "*", "app.log*"]), chunk_bytes=st.sampled_from([3, 64, 1 << 20]))
    def begin(self, glob, chunk_bytes):
        self.reader = Reader(os.path.join(self.folder, glob), chunk_bytes).start()

    # --- Who writes --------------------------------------------------------------------------------------------------

    def _line(self):
        self.number += 1
        return f"{self.number} " + "x" * (self.number * 37 % 400)

    def _append(self, text):
        self.log.append(text.encode())
        if self.current is None:
            self.current = []

    def _finish(self, line):
        self.current.append(line)
        self.written.append(line)
        self.partial = ""

    @rule(count=st.integers(1, 4))
    def append(self, count):
        for _ in range(count):
            line = self.partial + self._line()
            self._append(line[len(self.partial) :] + "\n")
            self._finish(line)

    @rule()
    def append_a_part(self):
        part = self._line()
        self._append(part)
        self.partial += part

    # --- Who rotates -------------------------------------------------------------------------------------------------

    def _moved_on(self, lines):
        """app.log has become app.log.1."""
        if self.partial:
            if not self._is_followed():
                self._lost([self.partial])  # nobody knows that it was rotated: it waits for its end, or for the next rotation
            self._finish(self.partial)  # a rotated file's last line needs no end
        if not self.reader.stored.offsets_by_slot:
            self._lost(lines)  # rotated before anything was read: nobody asked for old files, unless the glob does
        self.generations.insert(0, lines)
        self.packed = {number + 1 for number in self.packed}
        while len(self.generations) > GENERATIONS:
            self._lost(self.generations.pop())
        self.packed = {number for number in self.packed if number <= GENERATIONS}

    def _is_followed(self):
        return any(offset["filename"] == self.log.path for offset in self.reader.stored.offsets_by_slot.values())

    def _lost(self, lines):
        self.may_be_lost.update(lines)

    def _has_content(self):
        return bool(self.current) or bool(self.partial)

    @precondition(lambda self: self._has_content())
    @rule()
    def rename(self):
        self.log.rename()
        self._moved_on(self.current)
        self.current = None

    @precondition(lambda self: self._has_content())
    @rule()
    def copy_and_truncate(self):
        self.log.copy_and_truncate()
        self._moved_on(self.current)
        self.current = []

    @precondition(lambda self: any(number not in self.packed for number in range(1, len(self.generations) + 1)))
    @rule(data=st.data())
    def pack(self, data):
        number = data.draw(st.sampled_from([each for each in range(1, len(self.generations) + 1) if each not in self.packed]))
        self.log.compress(number)
        self.packed.add(number)

    @precondition(lambda self: self.current is not None)
    @rule(is_made_again=st.booleans())
    def delete(self, is_made_again):
        """The inode may be given to the very next file."""
        os.remove(self.log.path)
        if self.partial:
            self._finish(self.partial)
        self._lost(self.current)
        self.current = None
        if is_made_again:
            self.append(1)

    # --- Who reads ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.reader.task is not None)
    @rule()
    def read(self):
        self.reader.drain()

    @precondition(lambda self: self.reader.task is not None)
    @rule()
    def read_a_little(self):
        self.reader.look()
        self.reader.poll()

    @precondition(lambda self: self.reader.task is not None)
    @rule()
    def close_files(self):
        self.reader.close_files()

    @precondition(lambda self: self.reader.task is not None)
    @rule()
    def stop(self):
        self.reader.stop()

    @precondition(lambda self: self.reader.task is not None)
    @rule()
    def kill(self):
        """Before what it read last is acknowledged."""
        before = len(self.reader.records)
        self.reader.look()
        self.reader.poll(acknowledge=False)
        self.may_repeat.update(self.reader.lines[before:])
        self.reader.stop()

    @precondition(lambda self: self.reader.task is None)
    @rule()
    def start(self):
        self.reader.start()

    def teardown(self):
        try:
            if self.reader is not None:
                if self.reader.task is None:
                    self.reader.start()
                self.check(self.reader.drain())
        finally:
            if self.reader is not None:
                self.reader.stop()
            shutil.rmtree(self.folder)

    def check(self, came):
        counts = collections.Counter(came)
        missing = [line for line in self.written if line not in counts and line not in self.may_be_lost]
        assert not missing, f"lost: {[line.split()[0] for line in missing]}"
        twice = [line.split()[0] for line, count in counts.items() if count > 1 and line not in self.may_repeat]
        assert not twice, f"twice: {twice}"
        strange = [line for line in counts if line not in self.written]
        assert not strange, f"never written: {strange}"
        order = [int(line.split()[0]) for line in dict.fromkeys(came) if line not in self.may_be_lost and line not in self.may_repeat]
        assert order == sorted(order), f"out of order: {order}"
