"""Bad input of every kind: refused where Java refuses it, when a connector is made or when a record comes, by the same class of error, in
words that name the connector, the link, the field and the record."""

import pytest
from pytest import param

from standalone import ConfigError, ConnectError, Schema, SchemaBuilder, SinkRecord, Struct
from standalone.plugins import Plugins
from standalone.testing import LocalWorker, wait_for

APACHE = "org.apache.kafka.connect."
CONFIG, DATA, BUILDER = "org.apache.kafka.common.config.ConfigException", f"{APACHE}errors.DataException", f"{APACHE}errors.SchemaBuilderException"
UNREAD = "org.apache.kafka.common.errors.SerializationException"
ORDER = '{"type":"struct","fields":[{"type":"string","field":"id"},{"type":"struct","field":"at","fields":[{"type":"int32","field":"x"}]}]}'
GOOD = f'{{"schema":{ORDER},"payload":{{"id":"seven","at":{{"x":1}}}}}}'
PLAIN = '{"id":"seven","at":{"x":"?"},"day":"monday"}'


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    with LocalWorker(tmp_path_factory.mktemp("worker")) as worker:
        yield worker


def sink(worker, name, link, props, schemas=True):
    config = {"connector.class": "FileStreamSink", "topics": name, "file": worker.folder / f"{name}.out", "value.converter": "JsonConverter"}
    config |= {"value.converter.schemas.enable": str(schemas).lower()}
    if link is not None:
        config |= {"transforms": "link", "transforms.link.type": f"{APACHE}transforms.{link}"}
    return {**config, **{f"transforms.link.{key}": value for key, value in props.items()}}


# --- When a connector is made --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "link, props, key, said",
    [
        param("RegexRouter", {"regex": "(", "replacement": "x"}, "transforms.link.regex", "'('", id="a bad regex"),
        param("RegexRouter", {"regex": "x"}, "transforms.link.replacement", "missing", id="an option that is missing"),
        param("Cast$Value", {"spec": "id:int7"}, "transforms.link.spec", "int7", id="an unknown type"),
        param("Cast$Value", {"spec": "a:b:c"}, "transforms.link.spec", "colons", id="a cast of two colons"),
        param("TimestampConverter$Value", {"target.type": "Moment"}, "transforms.link.target.type", "Moment", id="an unknown target"),
        param("HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "drop"}, "transforms.link.operation", "drop", id="an unknown operation"),
        param("ExtractField$Value", {"field": "a", "field.syntax.version": "V3"}, "transforms.link.field.syntax.version", "V3", id="an unknown syntax"),
        param("ReplaceField$Value", {"renames": "a"}, "transforms.link.renames", "a", id="a rename without a colon"),
        param("MaskField$Value", {"fields": ""}, "transforms.link.fields", "", id="no fields"),
        param("NoSuch$Value", {}, "transforms.link.type", "NoSuch", id="an unknown transform"),
        param("DropHeaders", {"headers": "h", "predicate": "who"}, "transforms.link.predicate", "who", id="an unknown predicate"),
    ],
)
def test_what_is_refused_when_a_connector_is_made(worker, link, props, key, said):
    with pytest.raises(ConfigError) as refused:
        worker.create("refused", sink(worker, "refused", link, props))
    assert refused.value.java_class == CONFIG
    assert key in refused.value.errors and said in str(refused.value)
    with pytest.raises(ConnectError, match="refused"):
        worker.herder.status("refused")


def test_a_bad_regex_of_a_predicate_is_refused(worker):
    predicate = {"predicates": "named", "predicates.named.type": f"{APACHE}transforms.predicates.TopicNameMatches", "predicates.named.pattern": "["}
    with pytest.raises(ConfigError, match="'\\['") as refused:
        worker.create("refused", {**sink(worker, "refused", "DropHeaders", {"headers": "h", "predicate": "named"}), **predicate})
    assert list(refused.value.errors) == ["predicates.named.pattern"]


def test_an_option_of_a_converter_with_an_unknown_value_is_refused(worker):
    with pytest.raises(ConfigError) as refused:
        worker.create("refused", {**sink(worker, "refused", None, {}), "value.converter.decimal.format": "HEX"})
    assert any("decimal.format" in key for key in refused.value.errors)


def test_an_option_that_nobody_knows_is_no_error_as_in_java(worker):
    worker.create("known", sink(worker, "known", "HoistField$Value", {"field": "a", "fields": "b", "colour": "red"}))
    worker.wait_states("known", "RUNNING", "RUNNING")
    worker.herder.delete("known")


# --- When a record comes -------------------------------------------------------------------------------------------

# link, its options, the message, whether it has a schema, the class of the error, what the trace says of the field
RECORDS = [
    param("ExtractField$Value", {"field": "nope"}, GOOD, True, "java.lang.IllegalArgumentException", "'nope'", id="a missing field"),
    param("ValueToKey", {"fields": "id,nope"}, GOOD, True, DATA, "'nope'", id="a missing field for the key"),
    param("HeaderFrom$Value", {"fields": "nope", "headers": "h", "operation": "copy"}, GOOD, True, DATA, "'nope'", id="for a header"),
    param("Cast$Value", {"spec": "id:int32"}, GOOD, True, DATA, "Field 'id'", id="a text that is no number"),
    param("Cast$Value", {"spec": "id:int32"}, PLAIN, False, DATA, "Field 'id'", id="the same without a schema"),
    param("Cast$Value", {"spec": "at.x:int32", "field.syntax.version": "V2"}, PLAIN, False, DATA, "Field 'at.x'", id="further inside"),
    param("Cast$Value", {"spec": "at:int32"}, GOOD, True, DATA, "Field 'at'", id="a struct as a number"),
    param("TimestampConverter$Value", {"field": "day", "target.type": "unix", "format": "yyyy"}, PLAIN, False, DATA, "Field 'day'", id="a text that is not a date"),
    param("TimestampConverter$Value", {"field": "at", "target.type": "unix", "format": "yyyy"}, GOOD, True, f"{APACHE}errors.ConnectException", "Field 'at'",
          id="a struct as a date"),
    param("MaskField$Value", {"fields": "at"}, GOOD, True, DATA, "'at'", id="a struct with no empty one"),
    param("MaskField$Value", {"fields": "at", "replacement": "x"}, PLAIN, False, DATA, "'at'", id="a map replaced by a text"),
    param("InsertField$Value", {"topic.field": "id"}, GOOD, True, BUILDER, "'id'", id="a field that already exists"),
    param("HoistField$Value", {"field": ""}, GOOD, True, BUILDER, "field", id="a field without a name"),
    param("Flatten$Value", {}, '"text"', False, DATA, "value", id="a text for a map"),
    param("SetSchemaMetadata$Value", {"schema.name": "n"}, PLAIN, False, DATA, "value", id="no schema to set a name to"),
    param("RegexRouter", {"regex": "(.*)", "replacement": "$2"}, GOOD, True, "java.lang.IndexOutOfBoundsException", "'$2'", id="a group that is not there"),
    param("TimestampRouter", {"timestamp.format": "b"}, GOOD, True, "java.lang.IllegalArgumentException", "'b'", id="no pattern of dates"),
    param(None, {}, '{"a":', False, DATA, "character 5", id="malformed JSON"),
    param(None, {}, '{"a":1}', True, DATA, "'schema' and 'payload'", id="JSON without an envelope"),
]  # fmt: skip


@pytest.mark.parametrize("link, props, message, schemas, java_class, field", RECORDS)
def test_a_record_that_fails_its_task_is_named(worker, request, link, props, message, schemas, java_class, field):
    name = request.node.callspec.id.replace(" ", "-")
    before = [GOOD if schemas else PLAIN] if link in (None, "Flatten$Value") else []  # one that nothing is wrong with
    worker.send(name, [*before, message])
    worker.create(name, sink(worker, name, link, props, schemas))
    trace = wait_for(lambda: worker.trace(name), what=f"{name} to fail")
    stage = "VALUE_CONVERTER" if link is None else "TRANSFORMATION"
    names = (f"task 0 of connector '{name}'", f"topic {name}, partition 0, offset {len(before)}", stage)
    links = () if link is None else ("'link'", f"{APACHE}transforms.{link}")
    for said in (*names, *links, field):
        assert said in trace, f"the trace does not name {said}:\n{trace}"
    kind = next(line for line in trace.splitlines() if line.startswith("Caused by: "))
    family = java_class if java_class.startswith("org.apache") else ""  # what Java throws of its own any error meets
    assert kind.startswith(f"Caused by: {family}"), trace
    worker.herder.delete(name)


def test_malformed_json_is_told_by_the_chain_of_javas_causes(worker):
    worker.send("malformed", ['{"a":'])
    worker.create("malformed", sink(worker, "malformed", None, {}, schemas=False))
    trace = wait_for(lambda: worker.trace("malformed"))
    causes = [line.split(": ")[1] for line in trace.splitlines() if line.startswith("Caused by: ")]
    assert causes == [DATA, UNREAD, "com.fasterxml.jackson.core.JsonParseException"]
    worker.herder.delete("malformed")


def test_a_sources_record_is_named_by_where_it_comes_from(worker):
    path = worker.folder / "lines"
    path.write_text("7\nseven\n")
    cast = {"transforms": "link", "transforms.link.type": f"{APACHE}transforms.Cast$Value", "transforms.link.spec": "int32"}
    worker.create("reads", {"connector.class": "FileStreamSource", "topic": "read", "file": path, **cast})
    trace = wait_for(lambda: worker.trace("reads"))
    for said in (str(path), "'position': 8", "'link'", "task 0 of connector 'reads'", "'seven'", DATA):
        assert said in trace, f"the trace does not name {said}:\n{trace}"
    worker.herder.delete("reads")


# --- As the vectors have it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("link, props, message, schemas, java_class, field", [each for each in RECORDS if each.values[0] is not None])
def test_the_class_is_that_of_the_row_meaning(link, props, message, schemas, java_class, field):
    """The vectors hold the row forms to Java's classes; what fails in a task is no other."""
    from standalone.converters.json import JsonConverter

    schema, value = JsonConverter.of({"schemas.enable": str(schemas).lower()}).to_connect("t", message.encode())
    stage = Plugins().find("transform", f"{APACHE}transforms.{link}")
    with pytest.raises(Exception) as failed:
        stage.of(props).apply(SinkRecord("t", value_schema=schema, value=value, partition=0, offset=1, timestamp=5, timestamp_type=0))
    found = getattr(failed.value, "java_class", None)
    assert found == java_class or not java_class.startswith("org.apache")


def test_a_field_of_a_nested_struct_is_named_by_its_path():
    from standalone.transforms.cast import Cast

    inner = SchemaBuilder.struct().field("b", Schema.STRING).build()
    outer = SchemaBuilder.struct().field("a", inner).build()
    record = SinkRecord("t", value_schema=outer, value=Struct(outer, {"a": Struct(inner, {"b": "x"})}), partition=0, offset=1)
    with pytest.raises(Exception, match="^Field 'a.b': Cast cannot read 'x' as int8"):
        Cast.Value.of({"spec": "a.b:int8", "field.syntax.version": "V2"}).apply(record)
