"""PUT /connector-plugins/…/config/validate: how many errors there are, and at which keys; the cases of Connect's own suite."""

import pytest
from pytest import param

from standalone import BOOLEAN, HIGH, ConfigDef, ConnectError, Converter, Option
from tests.rest.conftest import SINK, SOURCE

HERE = "tests.rest.test_validation"
STRING = "org.apache.kafka.connect.storage.StringConverter"
FILTER = "org.apache.kafka.connect.transforms.Filter"
TOMBSTONE = "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"
SOURCE_PROPS = {"name": "source-connector", "connector.class": SOURCE, "tasks.max": "1", "topic": "t1", "key.converter": STRING, "value.converter": STRING}
SINK_PROPS = {"name": "sink-connector", "connector.class": SINK, "tasks.max": "1", "topics": "t1", "key.converter": STRING, "value.converter": STRING}


class Plain(Converter):
    """A converter without options, for headers as well."""

    def from_connect(self, topic, schema, value):
        return None

    def to_connect(self, topic, data):
        return None


class Failing(Plain):
    def __init__(self):
        raise ConnectError("whoops")


class Picky(Plain):
    config_def = ConfigDef(Option("prop", BOOLEAN, HIGH, "A property that must be given."))


def filters(**more):
    return {"transforms": "t", "transforms.t.type": FILTER, **{f"transforms.t.{key}": value for key, value in more.items()}}


@pytest.mark.parametrize(
    "props, change, wrong",
    [
        param(SINK_PROPS, {}, {}, id="a sink"),
        param(SOURCE_PROPS, {}, {}, id="a source"),
        param(SINK_PROPS, {"topics": None}, {"topics", "topics.regex"}, id="neither topics nor a regex"),
        param(SINK_PROPS, {"topics.regex": "r.*"}, {"topics", "topics.regex"}, id="topics and a regex"),
        param(SINK_PROPS, {"errors.deadletterqueue.topic.name": "t1"}, {"topics"}, id="the dead letter queue among the topics"),
        param(
            SINK_PROPS,
            {"topics": None, "topics.regex": "r.*", "errors.deadletterqueue.topic.name": "ruh.roh"},
            {"topics.regex"},
            id="the dead letter queue matched by the regex",
        ),
        param(SINK_PROPS, {"tasks.max": "0"}, {"tasks.max"}, id="no task"),
        param(SOURCE_PROPS, {"topic.creation.groups": "g1, g2, g1"}, {"topic.creation.groups"}, id="a topic creation group twice"),
        param(SINK_PROPS, {"transforms": "t, t", "transforms.t.type": FILTER}, {"transforms"}, id="a transform twice"),
        param(SINK_PROPS, filters(type="WheresTheFruit"), {"transforms.t.type"}, id="a transform that is not there"),
        param(SINK_PROPS, filters(type=SINK), {"transforms.t.type"}, id="a connector for a transform"),
        param(SINK_PROPS, filters(negate="true"), {"transforms.t.type"}, id="the negation of no predicate"),
        param(SINK_PROPS, {"predicates": "p, p", "predicates.p.type": TOMBSTONE}, {"predicates"}, id="a predicate twice"),
        param(SINK_PROPS, {"predicates": "p", "predicates.p.type": "WheresTheFruit"}, {"predicates.p.type"}, id="a predicate that is not there"),
        param(SINK_PROPS, {"predicates": "p", "predicates.p.type": SINK}, {"predicates.p.type"}, id="a connector for a predicate"),
        *(
            param(SINK_PROPS, {key: value}, {key}, id=f"{key}: {what}")
            for key in ("key.converter", "value.converter", "header.converter")
            for what, value in {
                "one that is not there": "WheresTheFruit",
                "a connector": SINK,
                "an abstract class": "standalone.stage:Converter",
                "one that fails when it is made": f"{HERE}:Failing",
            }.items()
        ),
        *(
            param(SINK_PROPS, {key: f"{HERE}:Picky", f"{key}.prop": "notaboolean"}, {f"{key}.prop"}, id=f"{key}: an option that will not do")
            for key in ("key.converter", "value.converter")
        ),
        *(param(SINK_PROPS, {key: f"{HERE}:Plain"}, set(), id=f"{key}: one without options") for key in ("key.converter", "value.converter")),
    ],
)
def test_errors(api, props, change, wrong):
    props = {key: value for key, value in {**props, **change}.items() if value is not None}
    answer = api.json("PUT", f"/connector-plugins/{props['connector.class']}/config/validate", props)
    found = {each["value"]["name"]: each["value"]["errors"] for each in answer["configs"] if each["value"]["errors"]}
    assert set(found) == set(wrong)
    assert answer["error_count"] == len(wrong)
    assert api("POST", "/connectors", {"name": props["name"], "config": props}).status_code == (400 if wrong else 201)
