"""Registries for tests: the worker's own, a fresh one a module, and Apicurio's where a nightly run asks for it."""

import os
import pathlib
import subprocess
import tarfile
import urllib.request

import pytest

from standalone.schema_registry.client import SchemaRegistryClient
from standalone.schema_registry.server.listener import EmbeddedRegistry
from standalone.testing import wait_for
from tests.servers.kafka_broker import free_port

APICURIO = "io.apicurio:apicurio-registry-app:2.6.13.Final:tar.gz:all"
_CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "connect-standalone" / "apicurio-2.6.13.Final"


@pytest.fixture(scope="module")
def registry_url(tmp_path_factory):
    registry = EmbeddedRegistry(str(tmp_path_factory.mktemp("registry") / "schemas.db"), "127.0.0.1:0").start()
    yield registry.url
    registry.stop()


@pytest.fixture
def client(registry_url):
    return SchemaRegistryClient.from_config({"schema.registry.url": registry_url, "retries.wait.ms": "10"})


@pytest.fixture(scope="module")
def apicurio_url(tmp_path_factory):
    """The real one, in its own process. It is large (140 MB): only where SCHEMA_REGISTRY_PEER=apicurio asks for it."""
    if os.environ.get("SCHEMA_REGISTRY_PEER") != "apicurio":
        pytest.skip("SCHEMA_REGISTRY_PEER=apicurio starts Apicurio's registry")
    home, port = _apicurio(), free_port()
    line = ["java", "-Xmx512m", f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1", "-cp", f"{home}/*:{home}/lib/*"]
    with open(tmp_path_factory.mktemp("apicurio") / "log", "w") as out:
        process = subprocess.Popen([*line, "io.quarkus.runner.GeneratedMain"], stdout=out, stderr=out)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: process.poll() is None and _answers(f"{url}/apis/ccompat/v7/subjects"), 120, "Apicurio")
        yield url
    finally:
        process.kill()
        process.wait()


def _apicurio():
    if not (_CACHE / "lib").exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={APICURIO}", f"-DoutputDirectory={_CACHE}"], check=True)
        with tarfile.open(next(_CACHE.glob("*.tar.gz"))) as archive:
            archive.extractall(_CACHE, filter="data")
    return _CACHE


def _answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False
