"""Python as Spark starts it for a stream's source: it answers Spark at once, and imports what it needs after that.

Spark gives such a process ten seconds to be there, which no setting changes. Where others keep the processors busy pyspark's imports take
longer than that, and queries would fail before they begin. Run as a program (`prompt.py -m MODULE …`); all else goes to the plain interpreter.
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
    """The path of an executable that runs this file, made in that folder."""
    from standalone.private import write_private  # not where this file is the program: it has to be quick

    path = os.path.join(folder, "prompt-python")
    if not os.path.exists(path):
        quoted = ["'" + word.replace("'", "'\\''") + "'" for word in (python, os.path.abspath(__file__))]
        write_private(path, f'#!/bin/sh\nexec {" ".join(quoted)} "$@"\n', 0o700)
    return path


def main(arguments):
    if arguments != ["-m", SOURCE]:
        os.execv(sys.executable, [sys.executable, *arguments])
    connection = _connected()
    sys.path[0] = os.getcwd()  # as with -m; what is beside this file is nobody's to import
    import pyspark.util

    pyspark.util.local_connect_and_auth = lambda address, secret: connection  # before worker_util takes it from there
    sys.argv[:] = [SOURCE]
    runpy.run_module(SOURCE, run_name="__main__", alter_sys=True)


def _connected():
    """(file, socket), authenticated as pyspark.util.local_connect_and_auth does it."""
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
            sys.exit("Spark does not take this process for its own.")
    return file, connection


if __name__ == "__main__":
    main(sys.argv[1:])
