"""Python processes of our own, as many as there are cores: links of Python that keep no state are run in them, the whole chain with them.

All pipelines of this process share them, one batch at a time: who finds them at work does his batch himself. They are started when the
first large batch comes and are used once they are up; they end with the last pipeline that uses them, or with this process.
"""

import contextlib
import fcntl
import os
import pickle
import select
import struct
import subprocess
import sys
import threading

_LENGTH = struct.Struct("<q")
GC_THRESHOLD = 100_000, 10, 10  # there are thousands of maps at a time, that go together: to look through them costs a tenth
_PIPE_BYTES = 1 << 20  # the most that Linux gives everybody
_CODE = "from standalone.pipeline.processes import serve; serve()"


class _Pool:
    """The processes. `users` counts the pipelines."""

    def __init__(self):
        self._lock = threading.Lock()  # of users and of starting
        self._busy = threading.Lock()
        self._users = 0
        self._processes = []
        self._waiting = []  # those that have not said yet that they are up

    def join(self, count):
        """Be one of the users from now on; the first one has the processes started."""
        with self._lock:
            self._users += 1
            if not self._processes:
                for _ in range(count):
                    process = subprocess.Popen([sys.executable, "-c", _CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                    _widen(process.stdin, process.stdout)
                    self._processes.append(process)
                    _send(process.stdin, pickle.dumps(list(sys.path)))
                self._waiting = list(self._processes)

    def leave(self):
        with self._lock:
            self._users -= 1
            if self._users == 0:
                with self._busy:
                    self._end()

    def is_up(self):
        """Whether all have come up."""
        with self._lock:
            while self._waiting and select.select([self._waiting[0].stdout], [], [], 0)[0]:
                _receive(self._waiting[0].stdout)
                self._waiting.pop(0)
            return bool(self._processes) and not self._waiting

    def begin(self, kind, stages, pieces, behind=None):
        """Have workers.work_piece work these pickled pieces, at most one in each process: a Job; None where others are at it, or there are fewer.

        `behind` is the Job that the same caller began last: each process gets its piece once it has answered that one.
        """
        if behind is None:
            if not self._busy.acquire(blocking=False):
                return None
            if len(pieces) > len(self._processes):  # another batch was the end of them since the caller looked
                self.free()
                return None
        try:
            # Each reads all of its piece before it works, so that no one waits for another.
            for at, process in enumerate(self._processes):
                if behind is not None:
                    behind.receive(at)
                for part in (kind.encode(), stages, pieces[at]) if at < len(pieces) else ():
                    _send(process.stdin, part)
        except BaseException:
            self.broken()
            raise
        return Job(self, self._processes[: len(pieces)])

    def free(self):
        """Let others have the processes."""
        self._busy.release()

    def broken(self):
        """End the processes: what is in their pipes would be taken for answers to the next Job."""
        self._end()
        self._busy.release()

    def _end(self):
        for process in self._processes:
            process.stdin.close()
            process.stdout.close()
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes, self._waiting = [], []


class Job:
    """Pieces that the pool's processes are at. Its caller has the pool until it is answered, or another is begun behind it."""

    def __init__(self, pool, processes):
        self._pool = pool
        self._processes = processes
        self._answers = [None] * len(processes)
        self._has_pool = True

    def receive(self, at):
        """Have the answer of that process, as another is begun behind this one."""
        self._has_pool = False
        if at < len(self._processes):
            self._answers[at] = _receive(self._processes[at].stdout)

    def answers(self):
        """What came of each piece. Raises OSError or EOFError."""
        if self._has_pool:
            self._has_pool = False
            try:
                self._answers = [_receive(process.stdout) for process in self._processes]
            except BaseException:
                self._pool.broken()
                raise
            self._pool.free()
        if None in self._answers:
            raise EOFError("the other processes have ended")
        return self._answers

    def abandon(self):
        """Wait until it is answered, for nothing."""
        with contextlib.suppress(OSError, EOFError):
            self.answers()


pool = _Pool()


def serve():
    """What such a process does: it works pieces until nobody sends any."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of Ctrl-C everybody in the terminal hears: it is for the parent to end this
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a transform prints must not come between the answers
    sys.path.extend(entry for entry in pickle.loads(_receive(requests)) if entry not in sys.path)
    import gc

    from standalone.pipeline.workers import work_piece

    gc.set_threshold(*GC_THRESHOLD)
    _send(answers, b"up")
    while True:
        try:
            kind, stages, piece = (_receive(requests) for _ in range(3))
        except EOFError:
            os._exit(0)  # at once: the parent waits, and there is nothing to put in order
        _send(answers, work_piece(kind.decode(), stages, piece))


def _widen(*pipes):
    """Have more in a pipe at once, where the system lets us: it takes half the time then."""
    with contextlib.suppress(AttributeError, OSError):
        for pipe in pipes:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _send(pipe, data):
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe):
    length = pipe.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        raise EOFError("the other process has ended")
    return pipe.read(_LENGTH.unpack(length)[0])
