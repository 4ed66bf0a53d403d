"""Transfer pieces of a batch to Spark's Python workers and back.

Local workers read and write in-memory files, and Spark's job carries only their paths: in the job itself Java would copy each piece a dozen
times, at most of the job's CPU time. Remote workers get the pieces in the job. The files are unlinked, so a killed process leaves
nothing behind.
"""

import contextlib
import os
import pickle

import pyarrow as pa


def are_here(master):
    """Whether workers of that Spark master can read this process's files."""
    return (master == "local" or master.startswith("local[")) and hasattr(os, "memfd_create")


class InFiles:
    """Each piece in a file, with an empty file beside it for its result. A context manager, which deletes the files."""

    def __init__(self, pieces):
        with contextlib.ExitStack() as stack:
            self._files = [tuple(stack.enter_context(_memory_file()) for _ in range(2)) for _ in pieces]
            for (given, _), piece in zip(self._files, pieces):
                given.write(piece)
                given.flush()
            self._stack = stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._stack.close()

    @property
    def table(self):
        """The job's input: a partition per piece."""
        return _table([pickle.dumps(tuple(_path(file) for file in pair)) for pair in self._files])

    def results(self, tables):
        """Return the pieces' results, given the job's output."""
        for _, made in self._files:
            made.seek(0)
            yield made.read()

    @staticmethod
    def work(cell, work):
        """In the worker: process one piece; return the job's output for it."""
        given, made = pickle.loads(cell)
        with open(given, "rb") as file:
            piece = file.read()
        done = work(piece)
        with open(made, "r+b") as file:  # the file exists
            file.write(done)
        return b""


class InJob:
    """Pieces inside the job."""

    def __init__(self, pieces):
        self.table = _table(pieces)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def results(self, tables):
        return (cell.as_py() for table in tables for cell in table.column(0))

    @staticmethod
    def work(cell, work):
        return work(cell)


def _memory_file():
    return os.fdopen(os.memfd_create("piece"), "w+b")


def _path(file):
    """Return a path by which this user's other processes can open it."""
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def _table(cells):
    """One cell per row; Spark makes each chunk of the table a partition."""
    return pa.concat_tables([pa.table({"piece": pa.array([cell], pa.binary())}) for cell in cells])
