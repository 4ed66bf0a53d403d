"""Fast-starting Python worker for Spark's stream sources: it connects to Spark first and imports pyspark afterwards.

Spark gives such a process a fixed ten seconds to connect. On a busy machine pyspark's imports take longer, and queries would fail to
start. Run as a program (`prompt.py -m MODULE …`); everything else goes to the plain interpreter.
"""

import os
import runpy
import socket
import struct
import sys

SOURCE = "pyspark.sql.streaming.python_streaming_source_runner"
_ANSWER_SECONDS = 60
_BUFFER = 65536


def program(folder, python=sys.executable):
    """Create an executable in the folder that runs this file; return its path."""
    from standalone.private import write_private  # not when this file runs as the program, which must start fast

    path = os.path.join(folder, "prompt-python")
    if not os.path.exists(path):
        quoted = ["'" + word.replace("'", "'\\''") + "'" for word in (python, os.path.abspath(__file__))]
        write_private(path, f'#!/bin/sh\nexec {" ".join(quoted)} "$@"\n', 0o700)
    return path


def main(arguments):
    if arguments != ["-m", SOURCE]:
        os.execv(sys.executable, [sys.executable, *arguments])
    connection = _connected()
    sys.path[0] = os.getcwd()  # as with -m: modules beside this file must not be importable
    import pyspark.util

    pyspark.util.local_connect_and_auth = lambda address, secret: connection  # before worker_util imports it
    sys.argv[:] = [SOURCE]
    runpy.run_module(SOURCE, run_name="__main__", alter_sys=True)


def _connected():
    """Return (file, socket), authenticated like pyspark.util.local_connect_and_auth."""
    address = os.environ.get("PYTHON_WORKER_FACTORY_SOCK_PATH")
    if address is not None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_ANSWER_SECONDS)
        connection.connect(address)
    else:
        host = "::1" if os.environ.get("SPARK_PREFER_IPV6", "").lower() == "true" else "127.0.0.1"
        connection = socket.create_connection((host, int(os.environ["PYTHON_WORKER_FACTORY_PORT"])), _ANSWER_SECONDS)
    file = connection.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", _BUFFER)))
    secret = os.environ.get("PYTHON_WORKER_FACTORY_SECRET")
    if secret is not None:
        data = secret.encode()
        file.write(struct.pack(">i", len(data)) + data)
        file.flush()
        (length,) = struct.unpack(">i", file.read(4))
        if file.read(length) != b"ok":
            sys.exit("Spark rejected the authentication of this process.")
    return file, connection


if __name__ == "__main__":
    main(sys.argv[1:])
