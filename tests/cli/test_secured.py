"""connectctl and a worker behind https that asks for a client's certificate, and one that asks for a name and a password."""

import subprocess

import pytest

from tests.runtime.local import LocalWorker

AUTH = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A certificate of its own making, which serves the worker and the client."""
    folder = tmp_path_factory.mktemp("certificates")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout own.key -out own.pem -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "own.key").read_text() + (folder / "own.pem").read_text())
    return folder


def test_https_with_a_clients_certificate(local, folder, tmp_path):
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": folder / "both.pem", "ssl.client.auth": "required", "ssl.truststore.type": "PEM"}
    with LocalWorker(tmp_path, listeners="https://127.0.0.1:0", **keys, **{"ssl.truststore.location": folder / "own.pem"}) as worker:
        local.url = "https://{}:{}".format(*worker.process.rest.address)
        trust, shown = ["--cacert", folder / "own.pem"], ["--cert", folder / "own.pem", "--key", folder / "own.key"]
        assert local(*trust, *shown, "list") == "no connectors\n"
        assert local(*trust, "--cert", folder / "both.pem", "list") == "no connectors\n"
        assert "certificate" in local(*shown, "list", code=1).lower()  # whom it does not know it does not trust
        local(*trust, "list", code=1)
        (tmp_path / "broken.pem").write_text("nothing")
        assert "broken.pem" in local("--cacert", tmp_path / "broken.pem", "list", code=1)


def test_a_name_and_a_password(local, tmp_path):
    (tmp_path / "users").write_text("ann=psst\n")
    with LocalWorker(tmp_path, rest__extension__classes=AUTH, rest__basic__auth__file=tmp_path / "users") as worker:
        local.url = "http://{}:{}".format(*worker.process.rest.address)
        assert "--user" in local("list", code=1)
        local("--user", "ann:wrong", "list", code=1)
        assert local("--user", "ann:psst", "list") == "no connectors\n"
        local("--user", "ann:psst", "topics", "list")  # its log is told to those who may ask


def test_names_are_completed_by_who_may_ask(local, tmp_path):
    (tmp_path / "users").write_text("ann=psst\n")
    with LocalWorker(tmp_path, rest__extension__classes=AUTH, rest__basic__auth__file=tmp_path / "users") as worker:
        url = "http://{}:{}".format(*worker.process.rest.address)
        worker.source("orders", tmp_path / "in", "t")

        def completed(options, **environment):
            words = f"connectctl --url {url} {options} status or".split()
            asked = {"_CONNECTCTL_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
            return local("", env={**asked, **environment}, code=0)

        assert completed("--user ann:psst") == "plain,orders\n"
        assert completed("--user ann", CONNECT_PASSWORD="psst") == "plain,orders\n"
        assert completed("", CONNECT_USER="ann:psst") == "plain,orders\n"
        assert [completed(options) for options in ("", "--user ann", "--user ann:wrong")] == ["\n"] * 3, "nobody is asked for a password there"
