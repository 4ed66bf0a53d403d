"""The program that Spark starts for a stream's source: it answers before it imports, and is plain Python for all else."""

import os
import socket
import struct
import subprocess
import sys

import pytest

from standalone.streams import prompt


@pytest.fixture
def program(tmp_path):
    return prompt.program(str(tmp_path))


def test_other_modules_are_run_as_by_python(program):
    ran = subprocess.run([program, "-c", "import sys; print(sys.argv, sys.executable)", "x"], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["['-c',", "'x']", sys.executable]


@pytest.mark.parametrize("answer", ["ok", "err"])
def test_spark_is_answered_before_anything_is_imported(program, tmp_path, answer):
    package = tmp_path / "pyspark"  # one that cannot be imported stands for one that takes long
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    with socket.create_server(("127.0.0.1", 0)) as server:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHON_WORKER_FACTORY_PORT": str(server.getsockname()[1]), "PYTHON_WORKER_FACTORY_SECRET": "s3"}
        process = subprocess.Popen([program, "-m", prompt.SOURCE], env=environment, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        connection, _ = server.accept()
        with connection, connection.makefile("rwb") as file:
            assert file.read(6) == struct.pack(">i", 2) + b"s3"
            file.write(struct.pack(">i", len(answer)) + answer.encode())
            file.flush()
            _, said = process.communicate()
    assert ("imported" in said) is (answer == "ok")
    assert answer == "ok" or "rejected the authentication of this process" in said
