"""Have all kernels compiled, and kept: `python -m standalone.warm_up`, the last step of the set-up.

A process that meets a kernel without machine code starts the same, `--for-parent` and with the modules that the kernel is from: at the
lowest priority, until its parent ends.
"""

import importlib
import os
import sys
import threading

from standalone import machine_code
from standalone.kernels import kernels

# In the order in which a first record needs what they define
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
    """The exit code: 1 where a kernel could not be compiled."""
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
    """Compile what is not there of the kernels of MODULES and of those modules; a line for each that could not be."""
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
            except Exception as error:  # whatever a compiler raises; the others are wanted all the same
                failed.append(f"{kernel.name} could not be compiled: {type(error).__name__}: {error}")
        tell(len(wanted), len(wanted), "done")
    return failed


def _tell(done, total, name):
    """A line that is written over where somebody watches; else one at the beginning and one at the end."""
    if sys.stderr.isatty():
        print(f"\r\x1b[KCompiling: {done} of {total}, {name}", end="" if done < total else "\n", file=sys.stderr, flush=True)
    elif done in (0, total):
        print(f"Compiling: {done} of {total}", file=sys.stderr, flush=True)


def _end_with_parent():
    while os.read(0, 1):  # not sys.stdin, whose lock this thread would hold while the interpreter ends: that aborts the process
        pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
