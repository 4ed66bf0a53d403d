"""What a worker gives back of its memory, and when."""

import pathlib
import subprocess
import sys

import numpy as np

from standalone import kernels
from standalone.runtime.supervision.resident import Resident, give_back_all, unchanged_parts

ROOT = pathlib.Path(__file__).parents[2]


def resident_kb(library):
    """Of the files of that name."""
    total, is_it = 0, False
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            if line[0] in "0123456789abcdef":
                is_it = library in line
            elif is_it and line.startswith("Rss:"):
                total += int(line.split()[1])
    return total


def test_the_compilers_code_is_given_back_and_machine_code_runs_on():
    column = np.frombuffer(b"abcdef", np.uint8)
    starts, lengths, out = np.array([4, 0]), np.array([2, 1], np.int32), np.zeros(3, np.uint8)
    assert kernels.gather.load()
    before = resident_kb("libllvmlite")
    assert unchanged_parts("libllvmlite")
    give_back_all()
    assert resident_kb("libllvmlite") < before / 2
    kernels.gather(column, starts, lengths, out)
    assert out.tobytes() == b"efa"
    assert kernels.join.load(), "the compiler is there when it is needed again"


def test_memory_is_given_back_when_there_was_work_and_is_little_now():
    now, given_back = [5.0], []
    resident = Resident(cpu=lambda: now[0], give_back=lambda: given_back.append(now[0]))
    for used, expected in [(4.0, []), (0.01, [9.01]), (0.01, [9.01]), (0.9, [9.01, 9.92]), (3.0, [9.01, 9.92]), (0.0, [9.01, 9.92, 12.92])]:
        now[0] += used
        resident.look()
        assert np.allclose(given_back, expected)


def test_a_worker_that_ships_lines_loads_nothing_that_it_does_without():
    """pandas takes 44 MB: sqlite_utils would load it."""
    code = (
        "import sys, standalone.runtime.process, standalone.rest.app, connectors.logs.source\n"
        "print(*(name for name in ('pandas', 'pyspark', 'pyarrow.compute', 'fastavro', 'sqlalchemy') if name in sys.modules))\n"
        "import pandas"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []
