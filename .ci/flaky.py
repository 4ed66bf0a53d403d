#!/usr/bin/env python3
"""flaky.py FAILED LIST COMMAND...: run failed tests again, by themselves; ends with 0 if all of them pass for the first time in their lives.

FAILED is a file with a test a line (tests/suite/honest.py writes it), COMMAND runs tests that are named after it. A test that passes now
failed by luck: it is told, and counted in LIST, a line "COUNT TEST", which is committed with the next change. One that LIST has already is
a failure, whatever it does now: it has to be fixed, and its line taken away. So one clean clone knows as much as the next.
"""

import pathlib
import subprocess
import sys

MOST = 10  # that fail by luck in one run; beyond that something is broken
HEAD = """# Tests that failed and passed when they were run again: COUNT TEST.
# One that is here fails CI the next time: fix it, then take its line away.
"""


def main(failed, known_list, *command):
    failed, known_list = pathlib.Path(failed), pathlib.Path(known_list)
    names = failed.read_text(encoding="utf-8").splitlines() if failed.exists() else []
    if not names:
        return say("The run did not come to its end: there is nothing to run again.")
    if len(names) > MOST:
        return say(f"{len(names)} tests failed, too many to be luck.")
    say(f"{len(names)} tests failed: again, these alone.")
    if subprocess.run([*command, *names]).returncode:
        return say("Some fail again.")
    counts = read(known_list)
    again = [name for name in names if name in counts]
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        say(f"FLAKY: {name} failed, then passed; seen {counts[name]} times.")
    known_list.write_text(HEAD + "".join(f"{count} {name}\n" for name, count in sorted(counts.items())), encoding="utf-8")
    say(f"{known_list} has them now: commit it.")
    if again:
        return say(f"{len(again)} of them not for the first time: fix them, then take their lines out of {known_list}.")
    return 0


def read(known_list):
    """{test: how many times it was seen}"""
    lines = known_list.read_text(encoding="utf-8").splitlines() if known_list.exists() else []
    pairs = (line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: int(count) for count, name in pairs}


def say(text):
    print(text, file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
