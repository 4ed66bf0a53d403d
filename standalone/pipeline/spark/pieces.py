"""How pieces of a batch get to Spark's Python workers and back.

Workers on this machine read and write files in memory, and Spark's job carries only their paths: in the job itself Java would copy each piece
a dozen times, for most of the job's CPU time. Workers elsewhere get the pieces in the job. The files have no names in any folder, so that
nothing is left anyone who is killed.
"""

import contextlib
import os
import pickle

import pyarrow as pa


def are_here(master):
    """Whether the workers of that Spark master can read this process's files."""
    return (master == "local" or master.startswith("local[")) and hasattr(os, "memfd_create")


class InFiles:
    """Each piece in a file, and an empty one beside it for what happens to it. A context manager: the files are gone after it."""

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
        """What the job is given: a partition for each piece."""
        return _table([pickle.dumps(tuple(_path(file) for file in pair)) for pair in self._files])

    def results(self, tables):
        """What happened to the pieces, given what the job gave back."""
        for _, made in self._files:
            made.seek(0)
            yield made.read()

    @staticmethod
    def work(cell, work):
        """In the worker: have one piece worked; what the job returns of it."""
        given, made = pickle.loads(cell)
        with open(given, "rb") as file:
            piece = file.read()
        done = work(piece)
        with open(made, "r+b") as file:  # it is there
            file.write(done)
        return b""


class InJob:
    """The pieces themselves."""

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
    """By which other processes of this user open it."""
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def _table(cells):
    """A chunk of the table becomes a Spark partition."""
    return pa.concat_tables([pa.table({"piece": pa.array([cell], pa.binary())}) for cell in cells])
