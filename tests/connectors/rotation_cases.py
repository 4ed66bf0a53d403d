"""How programs rotate a log, as cases for whatever follows it: what is done, and when the reader is there.

    matrix      of OpenTelemetry's file consumer: moved and created or copied and truncated, named by date or number, with files deleted
    harness     of Vector's test harness: created again, truncated, copied and truncated, and the reader restarted in the middle of it
    faults      that followers of files are known for

tests/connectors/logs/test_rotation_cases.py holds our sources to them, scripts/bench/logs_peers.py other programs, too.
"""

import collections
import dataclasses
import os
from collections.abc import Callable

from tests.connectors.rotated_log import Log

LINE_BYTES = 50


class Scene:
    """One log, who writes it, and who reads it: `reader` has `start`, `stop`, `kill`, `moment()`, a moment to read in, and
    `catch_up(count)`, so long until it has so many lines, or no more come."""

    def __init__(self, folder, reader, real_time=False, **log):
        self.reader = reader
        self.log = Log(str(folder), real_time=real_time, **log)
        self.written = []
        self.may_repeat = False

    def write(self, count, size=LINE_BYTES):
        """Whole lines, one after the other, each different from all others."""
        for _ in range(count):
            self.written.append(f"{len(self.written) + 1:06d} ".ljust(size, "x"))
            self.log.append(self.written[-1].encode() + b"\n")

    def write_slowly(self, count):
        for _ in range(count):
            self.write(1)
            self.reader.moment()

    def catch_up(self):
        self.reader.catch_up(len(self.written))

    def kill(self):
        """It may read again what it had not noted."""
        self.reader.kill()
        self.may_repeat = True

    def verdict(self, came):
        """What is wrong with the lines that came; "" if nothing is. Those that begin with # are not part of it."""
        came = [line for line in came if not line.startswith("#")]
        counts = collections.Counter(came)
        lost = sum(line not in counts for line in self.written)
        twice = 0 if self.may_repeat else sum(count > 1 for count in counts.values())
        strange = len(counts.keys() - set(self.written))
        told = [f"{count} {what}" for count, what in ((lost, "lost"), (twice, "twice"), (strange, "torn")) if count]
        if not told and list(counts) != sorted(counts):
            told = ["out of order"]
        return ", ".join(told)


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    family: str
    name: str
    act: Callable  # with a Scene whose reader is started; it is caught up with at the end
    log: dict = dataclasses.field(default_factory=dict)
    packs: bool = False  # files are compressed: FileStreamSource reads none


MOVES = {"move-create": Log.rename, "copytruncate": Log.copy_and_truncate}


def _of_the_matrix(total, of_a_file, rotate):
    def act(scene):
        for begun in range(0, total, of_a_file):
            if begun:
                rotate(scene.log)
            scene.write_slowly(of_a_file)

    return act


MATRIX = [
    Case("matrix", f"{what}, {move}, {'timestamped' if dated else 'sequential'}", _of_the_matrix(total, of_a_file, rotate), {"generations": 1, "dated": dated})
    for what, total, of_a_file in [("no rotation", 10, 10), ("rotation", 20, 10), ("deletion", 30, 10), ("deletion of large files", 300, 100)]
    for move, rotate in MOVES.items()
    for dated in (False, True)
]


# --- Vector's harness ------------------------------------------------------------------------------------------------


def _rotated_while_it_is_written(rotate):
    def act(scene):
        for _ in range(3):
            scene.write(200)
            scene.reader.moment()
            rotate(scene.log)
        scene.write(200)

    return act


def _truncated(scene):
    scene.write(200)
    scene.catch_up()
    scene.log.truncate()
    scene.write(20)


def _rotated_while_it_is_down(rotate, times=1, end=lambda scene: scene.reader.stop()):
    def act(scene):
        scene.write(50)
        scene.catch_up()
        end(scene)
        for _ in range(times):
            scene.write(20)
            rotate(scene.log)
        scene.write(10)
        scene.reader.start()

    return act


HARNESS = [
    *(Case("harness", name, _rotated_while_it_is_written(rotate)) for name, rotate in MOVES.items()),
    Case("harness", "truncate", _truncated),
    *(Case("harness", f"restart, {name} meanwhile", _rotated_while_it_is_down(rotate)) for name, rotate in MOVES.items()),
    *(Case("harness", f"kill -9, {name} meanwhile", _rotated_while_it_is_down(rotate, end=Scene.kill)) for name, rotate in MOVES.items()),
]


# --- What followers are known to get wrong ---------------------------------------------------------------------------


def _longer_at_once(scene):
    scene.write(20)
    scene.catch_up()
    scene.log.truncate()
    scene.write(60)


def _made_again(scene):
    """The inode may well be the same."""
    scene.write(20)
    scene.catch_up()
    os.remove(scene.log.path)
    scene.write(30)


def _made_again_while_it_is_down(scene):
    scene.write(20)
    scene.catch_up()
    scene.reader.stop()
    os.remove(scene.log.path)
    scene.write(30)
    scene.reader.start()


def _written_behind_the_rename(scene):
    """Who writes has the old file open for a while."""
    scene.write(20)
    scene.catch_up()
    with open(scene.log.path, "ab") as still_open:
        rotated = scene.log.rename()
        for _ in range(20):
            scene.reader.moment()
            scene.written.append(f"{len(scene.written) + 1:06d} behind")
            still_open.write(scene.written[-1].encode() + b"\n")
            still_open.flush()
            scene.log.touch(rotated)
    scene.write(20)


def _copied_in_parts(scene):
    scene.write(200)
    scene.catch_up()
    copy = scene.log.begin_copy()
    for _ in range(4):
        scene.reader.moment()
        scene.log.copy_more(copy, 2000)
    scene.reader.moment()
    scene.log.end_copy(copy)
    scene.log.truncate()
    scene.write(20)


def _begun_alike(scene):
    """A banner of 2 KiB is at the beginning of every generation: only what follows it tells one from the other."""
    banner = b"#" * 2047 + b"\n"
    for round_ in range(3):
        if round_:
            scene.log.rename()
        scene.log.append(banner)
        scene.write(20)
        scene.catch_up()


def _unfinished_over_a_restart(scene):
    scene.write(5)
    line = f"{len(scene.written) + 1:06d} in two halves"
    scene.log.append(line[:10].encode())
    scene.catch_up()
    scene.reader.stop()
    scene.reader.start()
    scene.log.append(line[10:].encode() + b"\n")
    scene.written.append(line)
    scene.write(5)


def _tiny(scene):
    scene.written.append("1")
    scene.log.append(b"1\n")
    scene.catch_up()
    scene.log.rename()
    scene.written.append("2")
    scene.log.append(b"2\n")


def _packed_behind_it(scene):
    scene.write(100)
    scene.catch_up()
    rotated = scene.log.rename()
    scene.write(20)
    scene.catch_up()
    scene.log.pack(rotated)
    scene.write(20)


def _packed_while_it_is_down(scene):
    scene.write(100)
    scene.catch_up()
    scene.reader.stop()
    scene.write(20)
    scene.log.pack(scene.log.rename())
    scene.write(20)
    scene.reader.start()


FAULTS = [
    *(Case("faults", f"down for three rotations, {name}", _rotated_while_it_is_down(rotate, 3)) for name, rotate in MOVES.items()),
    Case("faults", "truncated and longer at once", _longer_at_once),
    Case("faults", "deleted and made again", _made_again),
    Case("faults", "deleted and made again while down", _made_again_while_it_is_down),
    Case("faults", "written to after the rename", _written_behind_the_rename),
    Case("faults", "copied in parts, then truncated", _copied_in_parts),
    Case("faults", "generations that begin alike", _begun_alike),
    Case("faults", "unfinished line over a restart", _unfinished_over_a_restart),
    Case("faults", "files of two bytes", _tiny),
    Case("faults", "compressed after the reader", _packed_behind_it, packs=True),
    Case("faults", "compressed while down", _packed_while_it_is_down, packs=True),
]

CASES = [*MATRIX, *HARNESS, *FAULTS]
