"""One table of requests on ours and on Apicurio: the same answers but for differences that are listed, each with its reason."""

import json
import pathlib

import pytest

from tests.schema_registry.replay import replay
from tests.schema_registry.request_table import REQUESTS

HERE = pathlib.Path(__file__).parent


def recorded(name):
    return json.loads((HERE / name).read_text())


@pytest.fixture(scope="module")
def ours(registry_url):
    return replay(registry_url)


def test_the_table_is_large():
    assert len(REQUESTS) >= 200


def test_ours_answers_as_recorded_but_for_what_is_listed(ours):
    theirs = recorded("apicurio.json")
    listed = {name: answer for answers in recorded("differences.json").values() for name, answer in answers.items()}
    assert set(ours) == set(theirs) == {request[0] for request in REQUESTS}
    found = {name: answer for name, answer in ours.items() if answer != theirs[name]}
    assert found == listed


@pytest.mark.kafka
@pytest.mark.slow
def test_apicurio_still_answers_as_recorded(apicurio_url):
    found = replay(f"{apicurio_url}/apis/ccompat/v7")
    assert found == recorded("apicurio.json")
