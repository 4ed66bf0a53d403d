"""The examples of docs/formats.md are so."""

import doctest
import pathlib
import re

from standalone import Schema, SchemaBuilder, Struct, properties
from standalone.converters.avro.converter import AvroConverter
from standalone.converters.json_schema.converter import JsonSchemaConverter
from standalone.converters.protobuf.converter import ProtobufConverter
from standalone.plugins import Plugins
from standalone.schema_registry.client import RegistrySchema
from tests.converters.fake_registry import FakeRegistry, with_registry

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "formats.md").read_text()


def test_the_examples_in_python_say_what_they_say():
    registry, numbers = FakeRegistry(), FakeRegistry()
    numbers.register("numbers-value", RegistrySchema('"int"'))
    known = {
        **{"Schema": Schema, "SchemaBuilder": SchemaBuilder, "Struct": Struct, "registry": registry},
        "avro": with_registry(AvroConverter, registry),
        "protobuf": with_registry(ProtobufConverter),
        "json_schema": with_registry(JsonSchemaConverter),
        "strict": with_registry(AvroConverter, numbers, auto__register__schemas="false", use__latest__version="true"),
    }
    examples = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, known, "formats.md", None, 0)
    assert len(test.examples) == 6
    said = []
    assert doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)


def test_the_properties_are_taken(tmp_path):
    (tmp_path / "worker.properties").write_text(re.search(r"```properties\n(.*?)```", PAGE, re.DOTALL)[1])
    props = properties.load(tmp_path / "worker.properties")
    found = Plugins().find("converter", props["value.converter"])
    found.of({key.removeprefix("value.converter."): value for key, value in props.items() if key != "value.converter"})


def test_the_names_in_the_table_are_classes():
    rows = re.findall(r"^\| `([\w.]+)` \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert len(rows) == 3
    for java, short in rows:
        assert Plugins().find("converter", java) is Plugins().find("converter", short)
