"""The OpenAPI document: made of the routes, valid, and true: requests made of it get answers of the shapes it tells (schemathesis)."""

import hypothesis
import pytest

from standalone.rest.resource import Resource
from standalone.rest.table import tables
from tests.rest.conftest import SOURCE, Api
from tests.runtime.local import LocalWorker
from tests.suite.night import IS_NIGHT

REQUESTS = 10_000 if IS_NIGHT else 60
CONNECTORS = {"runs": "RUNNING", "rests": "STOPPED"}
NAME = {"type": "string", "minLength": 1}
_PHASES = (hypothesis.Phase.generate,)


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """A worker with something to talk about: a connector that runs and one that is stopped, and its document."""
    folder = tmp_path_factory.mktemp("described")
    (folder / "in").write_text("one\n")
    with LocalWorker(folder) as worker:
        api = Api(worker)
        api.config = {"connector.class": SOURCE, "file": str(folder / "in"), "topic": "t"}
        for name, state in CONNECTORS.items():
            api.create(name, api.config, initial_state=state)
        yield api


def test_every_route_is_in_the_document(described):
    found = described.json("GET", "/openapi.json")
    process = described.worker.process
    routes, _ = tables(process.herder, process.worker, [], admin_apart=False)
    ours = [route for route in routes if isinstance(route.endpoint, Resource) and not route.path.startswith("/ui")]
    assert {"/connectors", "/connectors/{name}/offsets", "/connector-plugins/{name}/config", "/admin/loggers", "/docs"} <= {route.path for route in ours}
    for route in ours:
        assert {method.lower() for method in route.endpoint.operations} == set(found["paths"][route.path]), route.path


def test_every_reference_leads_somewhere(described):
    found = described.json("GET", "/openapi.json")
    names = []

    def walk(part):
        if isinstance(part, dict):
            names.extend([part["$ref"].rpartition("/")[2]] if "$ref" in part else [])
            part = list(part.values())
        for each in part if isinstance(part, list) else ():
            walk(each)

    walk(found)
    assert names and set(names) <= set(found["components"]["schemas"])
    ids = [operation["operationId"] for methods in found["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "path, texts",
    [
        ("/docs", ["GET /connectors?expand", "PATCH /connectors/{name}/offsets", 'id="Status"']),
        ("/docs/configuration", ["offset.storage.file.filename", "errors.tolerance", "topics.regex", "ValueToKey"]),
    ],
)
def test_the_workers_own_pages(described, path, texts):
    answer = described("GET", path, headers={"Accept": "text/html"})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    assert "script" not in answer.headers["content-security-policy"] and "<script" not in answer.text
    for text in texts:
        assert text in answer.text
    assert "http://" not in answer.text.replace("http://host:port", "").replace("http://:8083", "").replace("http://:port", ""), "loads nothing from elsewhere"


def test_answers_are_as_the_document_says(described):
    schemathesis = pytest.importorskip("schemathesis")
    schema = schemathesis.openapi.from_dict(described.json("GET", "/openapi.json"))
    schema.config.base_url = str(described.http.base_url).rstrip("/")
    operations = [each.ok() for each in schema.get_all_operations()]
    asked, rounds = 0, 0
    while asked < REQUESTS:  # an operation without parameters is done after one request, others continue
        for operation in operations:
            for mode in schemathesis.GenerationMode if can_be_wrong(operation) else (schemathesis.GenerationMode.POSITIVE,):
                for name, state in CONNECTORS.items():  # what was asked before may have deleted them
                    if described("GET", f"/connectors/{name}").status_code == 404:
                        described.create(name, described.config, initial_state=state)
                asked += _ask(operation, mode, -(-REQUESTS // len(operations) // 2), rounds)
        rounds += 1
    print(f"{asked} requests of {len(operations)} operations")


def _ask(operation, mode, count, seed):
    """Requests of an operation: as it should be (positive) or with something wrong (negative); how many were made."""
    from schemathesis import checks
    from schemathesis.specs.openapi import checks as shapes

    wanted = [
        *(checks.not_a_server_error, shapes.status_code_conformance, shapes.content_type_conformance),
        *(shapes.response_schema_conformance, shapes.unsupported_method),
    ]
    names = [None, *CONNECTORS] if operation.path.startswith("/connectors/{name}") else [None]
    asked = []

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=count, deadline=None, suppress_health_check=list(hypothesis.HealthCheck), database=None, phases=_PHASES)
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def ask(case):
        name = names[len(asked) % len(names)]
        if name is not None:
            case.path_parameters = {**case.path_parameters, "name": name}
        asked.append(case)
        case.call_and_validate(checks=wanted, timeout=30)

    ask()
    return len(asked)


def can_be_wrong(operation):
    """Not where all that is asked for are names in the path: a thousand tries each would find that out, for most of this file's time."""
    return bool(operation.body) or any(each.definition["schema"] != NAME for each in operation.iter_parameters())
