"""What every sink must do, on real servers: workers that are stopped and killed lose nothing and index nothing twice."""

import json
import zlib

import pytest

from connectors.elasticsearch.sink import ElasticsearchSinkConnector
from standalone.testing import SinkSuite
from tests.connectors.elasticsearch.conftest import JSON


class TestElasticsearchSink(SinkSuite):
    connector = ElasticsearchSinkConnector
    messages = [json.dumps({"n": n}) for n in range(4)]
    expected = list(range(4))
    put_twice_is_once = True

    @pytest.fixture(autouse=True)
    def _server(self, search):
        self.search = search

    def given(self, folder):
        return {
            "topics": self._topic_of(folder),
            "connection.url": self.search.url,
            "key.ignore": "true",
            "schema.ignore": "true",
            "read.timeout.ms": "30000",
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
        }

    def stored(self, folder):
        return sorted(document["n"] for document in self.search.documents(self._topic_of(folder)).values())

    @staticmethod
    def _topic_of(folder):
        return f"suite-{zlib.crc32(str(folder).encode())}"
