#!/usr/bin/env python3
"""Coverage-guided fuzzing of the codec, the request parser, the embedded log and its logins; one target after another.

    scripts/soak/fuzz.py [--minutes 10] [--target codec|parser|log|login] [--keep]

What finds new ways through the code is kept while it runs; --keep adds the smallest of it to tests/log/corpus, from which every run begins and
which the tests give to the targets, too. An input that fails is written there as well, under its error's name. Wants atheris
(pip install atheris).
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/log/corpus"
NAMES = ("codec", "parser", "log", "login")
MOST_KEPT, LARGEST_KEPT = 25, 400  # inputs of a target, and bytes of one
LONGEST_INPUT = 4096
LIMIT_MB = 2048

sys.path.insert(0, str(ROOT))


def main():
    arguments = _arguments()
    if arguments.inside:
        return _fuzz(arguments.inside, arguments.work, arguments.seconds)
    names = [arguments.target] if arguments.target else NAMES
    failed = False
    for name in names:
        with tempfile.TemporaryDirectory() as work:
            for seed in [*_seeds(name), *(path.read_bytes() for path in sorted((CORPUS / name).glob("*")))]:
                (pathlib.Path(work) / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
            seconds = int(arguments.minutes * 60 / len(names))
            begun = time.monotonic()
            command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--inside", name, "--work", work, "--seconds", str(seconds)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=work)
            told = [line for line in done.stderr.splitlines() if line.startswith(("#", "Done", "stat::"))]
            print(f"{name}: {time.monotonic() - begun:.0f} s, {len(list(pathlib.Path(work).iterdir()))} inputs kept; {told[-1] if told else ''}")
            if done.returncode:
                failed = True
                print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
                for path in pathlib.Path(work).glob("crash-*"):
                    _keep(name, path, f"found-{path.name[6:18]}")
            if arguments.keep:
                found = sorted((p for p in pathlib.Path(work).iterdir() if p.stat().st_size <= LARGEST_KEPT), key=lambda p: -p.stat().st_mtime)
                for path in found[:MOST_KEPT]:
                    _keep(name, path, path.name[:12])
    return int(failed)


def _keep(name, path, called):
    (CORPUS / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(path, CORPUS / name / called)


def _fuzz(name, work, seconds):
    """In its own process: the fuzzer ends its process."""
    import logging
    import tracemalloc

    import atheris

    with atheris.instrument_imports(include=["standalone.log", "kafka.protocol"], enable_loader_override=False):
        from tests.log import fuzz_targets
    from standalone import warm_up

    warm_up.compile_all()
    logging.disable(logging.CRITICAL)
    target = fuzz_targets.TARGETS[name]()
    for seed in _seeds(name):
        target(seed)  # imports what is loaded late, before memory is counted
    tracemalloc.start()
    atheris.Setup([sys.argv[0], work, f"-max_total_time={seconds}", f"-max_len={LONGEST_INPUT}", f"-rss_limit_mb={LIMIT_MB}", "-timeout=20",
                   "-print_final_stats=1"], lambda data: target(bytes(data)))
    atheris.Fuzz()


def _seeds(name):
    """Well-formed inputs to begin with."""
    from standalone import wire
    from standalone.log import compression, record_batch
    from standalone.log.broker.requests import REQUESTS

    records = wire.Records(3, keys=wire.ByteColumn.of([b"k", None, b""]), values=wire.ByteColumn.of([b"value", b"", None]),
                           headers=[[("h", b"1")], None, [("n", None)]])
    batches = [bytes(record_batch.pack(records, compression=codec, now_ms=0)) for codec in compression.NAMES]
    if name == "codec":
        return batches
    if name == "login":
        first = b"n,,n=ann,r=abc"
        return [b"\0\x0b\0ann\0secret", *(bytes([kind, len(first)]) + first for kind in (1, 2))]
    seeds = []
    for number, row in enumerate(REQUESTS):
        for version in {row.low, row.high}:
            try:
                body = row.request(version=version).encode()
            except (TypeError, ValueError, AttributeError, KeyError):
                body = bytes(24)
            head = bytes([number, version - row.low])
            seeds.append(head + body if name == "parser" else head + len(body).to_bytes(2, "big") + body)
    return seeds


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--target", choices=NAMES)
    parser.add_argument("--keep", action="store_true")
    for hidden in ("--inside", "--work"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
