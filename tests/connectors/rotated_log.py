"""A log file that is written and rotated as programs do it, for the tests of both sources that follow such files."""

import gzip
import os
import re
import shutil
import time


class Log:
    """A log file and anyone who writes and rotates it. Each write is 10 ms later than the one before, as far as times of writing tell;
    with `real_time` it is when it is. `dated`: rotated files are named by when that was, not by how often it was since."""

    def __init__(self, folder, name="app.log", generations=4, dated=False, real_time=False):
        self.path = os.path.join(folder, name)
        self._now = time.time_ns() - 10**12
        self._keep = generations
        self._dated = dated
        self._rotations = 0
        self._real_time = real_time

    def append(self, data):
        with open(self.path, "ab") as file:
            file.write(data)
        self.touch(self.path)

    def touch(self, path):
        if not self._real_time:
            self._now += 10_000_000
            os.utime(path, ns=(self._now, self._now))

    def rename(self):
        """The path of the file that it is now."""
        rotated = self._next_name()
        os.rename(self.path, rotated)
        return rotated

    def copy_and_truncate(self):
        """The path of the copy."""
        rotated = self._next_name()
        shutil.copyfile(self.path, rotated)
        self.touch(rotated)
        self.truncate()
        return rotated

    def begin_copy(self):
        """The path of a copy of which nothing is written yet. `copy_more` writes to it, `end_copy` all the rest."""
        rotated = self._next_name()
        open(rotated, "xb").close()
        return rotated

    def copy_more(self, rotated, count=-1):
        with open(self.path, "rb") as original, open(rotated, "ab") as copy:
            original.seek(os.path.getsize(rotated))
            copy.write(original.read(count))

    def end_copy(self, rotated):
        self.copy_more(rotated)
        self.touch(rotated)

    def truncate(self):
        os.truncate(self.path, 0)
        self.touch(self.path)

    def compress(self, number=1):
        self.pack(f"{self.path}.{number}")

    @staticmethod
    def pack(path):
        """As gzip does it: the packed file has the time of the plain one."""
        status = os.stat(path)
        with open(path, "rb") as plain, gzip.open(f"{path}.gz", "wb") as packed:
            packed.write(plain.read())
        os.utime(f"{path}.gz", ns=(status.st_atime_ns, status.st_mtime_ns))
        os.remove(path)

    def shift(self):
        for number in range(self._keep, 0, -1):
            for ending in ("", ".gz"):
                path = f"{self.path}.{number}{ending}"
                if os.path.exists(path):
                    if number == self._keep:
                        os.remove(path)
                    else:
                        os.rename(path, f"{self.path}.{number + 1}{ending}")

    def _next_name(self):
        """Room for one rotated file more."""
        if not self._dated:
            self.shift()
            return f"{self.path}.1"
        stem, extension = os.path.splitext(self.path)
        dated = re.compile(re.escape(os.path.basename(stem)) + r"-\d{8}T.*")
        folder = os.path.dirname(self.path)
        rotated = sorted(each for each in os.listdir(folder) if dated.fullmatch(each))
        for name in rotated[: max(0, len(rotated) - self._keep + 1)]:
            os.remove(os.path.join(folder, name))
        self._rotations += 1
        minutes, seconds = divmod(self._rotations, 60)
        return f"{stem}-20260131T12{minutes:02d}{seconds:02d}.000{extension}"
