"""A log file that is written and rotated as programs do it, for the tests of both sources that follow such files."""

import gzip
import os
import shutil
import time


class Log:
    """A log file and anyone who writes and rotates it. Each write is 10 ms later than the one before, as far as times of writing tell."""

    def __init__(self, folder, name="app.log", generations=4):
        self.path = os.path.join(folder, name)
        self._now = time.time_ns() - 10**12
        self._keep = generations

    def append(self, data):
        with open(self.path, "ab") as file:
            file.write(data)
        self.touch(self.path)

    def touch(self, path):
        self._now += 10_000_000
        os.utime(path, ns=(self._now, self._now))

    def rename(self):
        self.shift()
        os.rename(self.path, f"{self.path}.1")

    def copy_and_truncate(self):
        self.shift()
        shutil.copyfile(self.path, f"{self.path}.1")
        self.touch(f"{self.path}.1")
        self.truncate()

    def truncate(self):
        os.truncate(self.path, 0)
        self.touch(self.path)

    def compress(self, number=1):
        path = f"{self.path}.{number}"
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
