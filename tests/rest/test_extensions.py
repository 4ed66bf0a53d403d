"""rest.extension.classes: basic authentication as Java's, and Python classes."""

import base64

import pytest
from pytest import param

from standalone.errors import ConfigError
from standalone.rest.basic_auth import JAVA_NAME, BasicAuthSecurityRestExtension
from tests.rest import extensions
from tests.rest.conftest import Api
from tests.runtime.local import LocalWorker

HERE = "tests.rest.extensions"


def basic(text):
    return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A worker that asks for a name and a password, told of its file as Java is."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "users").write_text("ann=s3cr3t\nbob=with\\:colon\n")
    (folder / "jaas.conf").write_text(
        "// for the REST API\nOther { x.Y required file=\"no\"; };\n"
        f'KafkaConnect {{\n  org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required\n  file="{folder}/users";\n}};\n'
    )
    patch = pytest.MonkeyPatch()
    patch.setenv("KAFKA_OPTS", f"-Xmx1g -Djava.security.auth.login.config={folder}/jaas.conf")
    props = {"rest.extension.classes": JAVA_NAME, "access.control.allow.origin": "http://ui.example", "admin.listeners": "http://127.0.0.1:0"}
    with LocalWorker(folder, **props) as worker:
        yield worker
    patch.undo()


@pytest.mark.parametrize(
    "headers, status",
    [
        param(basic("ann:s3cr3t"), 200, id="name and password"),
        param(basic("bob:with:colon"), 200, id="a colon in the password"),
        param({"Authorization": basic("ann:s3cr3t")["Authorization"].replace("Basic", "bAsIc")}, 200, id="the word in any case"),
        param({}, 401, id="nothing"),
        param(basic("ann:other"), 401, id="a wrong password"),
        param(basic("eve:s3cr3t"), 401, id="a stranger"),
        param(basic("eve:"), 401, id="a stranger without a password"),
        param(basic(":s3cr3t"), 401, id="no name"),
        param(basic("ann"), 401, id="no colon"),
        param({"Authorization": "Basic !!!"}, 401, id="no base64"),
        param({"Authorization": "Bearer s3cr3t"}, 401, id="another kind"),
    ],
)
def test_basic_authentication(guarded, headers, status):
    for path in ("/", "/connectors", "/health", "/openapi.json"):
        answer = Api(guarded)("GET", path, headers=headers)
        assert answer.status_code == status
        if status == 401:
            assert answer.json() == {"error_code": 401, "message": "User cannot access the resource."}
            assert answer.headers["www-authenticate"].startswith("Basic ")
    assert Api(guarded, guarded.process.rest.admin_address)("GET", "/admin/loggers", headers=headers).status_code == status


@pytest.mark.parametrize(
    "more, extensions, shown",
    [
        param({}, {}, "[hidden]", id="nobody asks who calls"),
        param({"rest.hide.secrets": "false"}, {}, "hunter2", id="unless told to show"),
        param({}, {"rest.extension.classes": JAVA_NAME}, "hunter2", id="with passwords, as Java shows it"),
        param({"rest.hide.secrets": "true"}, {"rest.extension.classes": JAVA_NAME}, "[hidden]", id="unless told to hide"),
        param({}, {"rest.extension.classes": f"{HERE}:Notes", "greeting": "Hello"}, "[hidden]", id="an extension that asks for no name"),
    ],
)
def test_whether_passwords_are_shown(tmp_path, more, extensions, shown):
    (tmp_path / "users").write_text("ann=s3cr3t\n")
    config = {"connector.class": "tests.rest.plugins:SecretSource", "secret": "hunter2", "producer.override.ssl.key.password": "hunter2"}
    with LocalWorker(tmp_path, **{"rest.basic.auth.file": str(tmp_path / "users"), **more, **extensions}) as worker:
        api = Api(worker)
        api.http.headers.update(basic("ann:s3cr3t"))
        api.create("s", config)
        found = api.json("GET", "/connectors/s")["config"]
        assert (found["secret"], found["producer.override.ssl.key.password"]) == (shown, shown)
        api.json("PUT", "/connectors/s/config", found)
        assert worker.herder.names() == ["s"] and api.json("GET", "/connectors/s/config") == found, "what was shown can be sent back"


def test_a_browser_may_ask_first_without_a_password(guarded):
    headers = {"Origin": "http://ui.example", "Access-Control-Request-Method": "GET"}
    assert Api(guarded)("OPTIONS", "/connectors", headers=headers).status_code == 200


def test_the_document_says_that_a_password_is_wanted(guarded):
    found = Api(guarded).json("GET", "/openapi.json", headers=basic("ann:s3cr3t"))
    assert found["security"] == [{"basic": []}]
    assert "401" in found["paths"]["/connectors"]["get"]["responses"]


@pytest.mark.parametrize(
    "users, jaas",
    [
        param(None, None, id="no file"),
        param("", None, id="an empty file, by which Java lets everybody in"),
        param(None, "KafkaConnect { no.such.Module required; };", id="another login module"),
        param(None, 'Other { x.PropertyFileLoginModule required file="f"; };', id="another entry"),
    ],
)
def test_without_names_no_worker_starts(tmp_path, monkeypatch, users, jaas):
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    props = {}
    if users is not None:
        (tmp_path / "users").write_text(users)
        props["rest.basic.auth.file"] = str(tmp_path / "users")
    if jaas is not None:
        (tmp_path / "jaas").write_text(jaas)
        monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={tmp_path}/jaas")
    with pytest.raises(ConfigError, match="rest.basic.auth.file"):
        BasicAuthSecurityRestExtension().configure(props)


def test_an_extension_of_ones_own(tmp_path):
    extensions.SEEN.clear()
    props = {"rest.extension.classes": f"{HERE}:Notes", "greeting": "Hello"}
    with LocalWorker(tmp_path, **props) as worker:
        api = Api(worker)
        assert api.json("GET", "/greeting/ann") == {"message": "Hello, ann"}
        assert api("GET", "/connectors").status_code == 200
        assert api.json("GET", "/connectors", status=403, headers={"X-Refuse": "1"})["message"] == "You said so."
        failed = api("GET", "/connectors", headers={"X-Fail": "1"})
        assert failed.status_code == 500 and "own bug" not in failed.text
    assert extensions.SEEN == ["configured", "closed"]


@pytest.mark.parametrize("name", [f"{HERE}:Fails", f"{HERE}:FailsToRoute", f"{HERE}:RoutesNowhere", f"{HERE}:NoExtension", f"{HERE}:None", "com.example.rest.Extension", "os.path"])
def test_what_is_no_extension(tmp_path, name):
    with pytest.raises(ConfigError, match="rest.extension.classes"), LocalWorker(tmp_path, rest__extension__classes=name):
        pass
