"""What a bad record of a transform says in the trace of its task: which record it was, and what did not fit."""

import pytest

from tests.runtime.bad_plugins import CALLS, PUT
from tests.runtime.bad_records import HERE, produce
from tests.runtime.local import LocalWorker

BAD = '{"schema":{"type":"struct","optional":false,"fields":[{"type":"string","field":"a"}]},"payload":{"a":"x"}}'
WORDS = {  # what the trace says of the field
    "Cast$Value": ({"spec": "a:int8"}, "'x'"),
    "ExtractField$Value": ({"field": "nope"}, "'nope'"),
    "HeaderFrom$Value": ({"fields": "nope", "headers": "h", "operation": "copy"}, "'nope'"),
    "MaskField$Value": ({"fields": "a.b", "field.syntax.version": "V2"}, "'a'"),
    "TimestampConverter$Value": ({"field": "a", "target.type": "unix", "format": "yyyy"}, "'x'"),
    "ValueToKey": ({"fields": "nope"}, "'nope'"),
}


@pytest.fixture(autouse=True)
def nothing_put():
    PUT.clear()
    CALLS.clear()


@pytest.mark.parametrize("transform", WORDS)
def test_the_trace_names_task_link_field_and_the_records_coordinates(tmp_path, transform):
    props, word = WORDS[transform]
    java_name = f"org.apache.kafka.connect.transforms.{transform}"
    config = {"connector.class": f"{HERE}:NoteSink", "topics": "t", "value.converter": "JsonConverter", "transforms": "link"}
    config |= {"transforms.link.type": java_name, **{f"transforms.link.{key}": value for key, value in props.items()}}
    with LocalWorker(tmp_path) as worker:
        produce(worker.bootstrap, "t", [(None, BAD, [])])
        worker.herder.create("k", config)
        worker.wait_states("k", "RUNNING", "FAILED")
        trace = worker.herder.task_status("k", 0)["trace"]
    for said in ("topic t, partition 0, offset 0", "TRANSFORMATION", "'link'", java_name, "task 0 of connector 'k'", word, "DataException"):
        assert said in trace
