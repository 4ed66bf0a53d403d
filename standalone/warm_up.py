"""Precompile and cache all kernels: `python -m standalone.warm_up`, the last step of the installation.

A process that calls a kernel without cached machine code starts this with `--for-parent` and the kernel's modules. It then runs at the
lowest priority and ends with its parent.
"""

import importlib
import os
import sys
import threading

from standalone import machine_code
from standalone.kernels import kernels

# In the order in which the first record needs their kernels
MODULES = (
    "standalone.log.record_loops",
    "standalone.log.fetch",
    "standalone.log.partitioner",
    "standalone.converters.json_scan",
    "standalone.converters.json_bytes",
    "standalone.converters.json_kernels",
    "standalone.converters.avro.kernels",
    "standalone.converters.protobuf.kernels",
    "standalone.data.assemble",
    "standalone.data.java_digits",
)
FOR_PARENT = "--for-parent"


def main(arguments):
    """The exit code: 1 if a kernel could not be compiled."""
    if FOR_PARENT in arguments:
        os.nice(19)
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        failed = compile_all([each for each in arguments if each != FOR_PARENT], _tell)
    except OSError as error:
        failed = [str(error)]
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


def compile_all(modules=(), tell=lambda done, total, name: None):
    """Compile the missing kernels of MODULES and of the given modules; returns one line per failure."""
    for module in (*MODULES, *modules):
        importlib.import_module(module)
    if all(kernel.is_there() for kernel in kernels() if kernel.signature):
        return []
    failed = []
    with machine_code.writing():
        wanted = [kernel for kernel in kernels() if kernel.signature and not kernel.is_there()]
        for at, kernel in enumerate(wanted):
            tell(at, len(wanted), kernel.name)
            try:
                kernel.compile()
            except Exception as error:  # the compiler may raise anything; continue with the other kernels
                failed.append(f"{kernel.name} could not be compiled: {type(error).__name__}: {error}")
        tell(len(wanted), len(wanted), "done")
    return failed


def _tell(done, total, name):
    """A progress line that is overwritten on a terminal; elsewhere one line at the start and one at the end."""
    if sys.stderr.isatty():
        print(f"\r\x1b[KCompiling: {done} of {total}, {name}", end="" if done < total else "\n", file=sys.stderr, flush=True)
    elif done in (0, total):
        print(f"Compiling: {done} of {total}", file=sys.stderr, flush=True)


def _end_with_parent():
    while os.read(0, 1):  # not sys.stdin: this thread would hold its lock at interpreter exit, which aborts the process
        pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
