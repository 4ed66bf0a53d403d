#!/usr/bin/env python3
"""Installs the wheel from the package index into new environments, one for each Python that is there, and runs the quickstart in each.

    wheel.py [--python python3.12]... [--extras all]

Tells how large each environment is and what is not to be had for a Python.
"""

import argparse
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
from tests import wheel as wheels  # noqa: E402

VERSIONS = ("3.10", "3.11", "3.12", "3.13")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", help="a Python; if none is given, all of %s that are there" % ", ".join(VERSIONS))
    parser.add_argument("--extras", default="", help="as all, or avro,s3; none, if not given")
    options = parser.parse_args()
    pythons = options.python or list(filter(None, map(found, VERSIONS)))
    print("Pythons:", ", ".join(pythons) or "none")
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        wheel = wheels.build(folder)
        for number, python in enumerate(pythons):
            began = time.monotonic()
            try:
                commands = wheels.install(wheel, folder / f"environment-{number}", python, options.extras)
                listed = wheels.quickstart(commands, folder / f"work-{number}")
                assert all(each["connector"]["state"] == "RUNNING" for each in listed.values()), listed
            except AssertionError as error:
                failed.append(python)
                print(f"{python}: FAILED: {error}")
                continue
            size = subprocess.run(["du", "-sm", commands.parent], capture_output=True, text=True).stdout.split()[0]
            print(f"{python}: the quickstart runs, {size} MB, {time.monotonic() - began:.0f} s", flush=True)
            shutil.rmtree(commands.parent)
    sys.exit(1 if failed or not pythons else 0)


def found(version):
    """The path of that Python: on the PATH, or one that pyenv has built."""
    built = sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}")))
    path = built[-1] if built else shutil.which(f"python{version}")
    return path if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0 else None


if __name__ == "__main__":
    main()
