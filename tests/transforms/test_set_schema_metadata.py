"""SetSchemaMetadata: another name or version for a schema, by rows and by columns."""

import pytest
from pytest import param

from standalone import ConfigError, DataError, Schema, SchemaBuilder, SourceRecord, Struct
from standalone.testing import check_transform
from standalone.transforms.set_schema_metadata import SetSchemaMetadata

ORDER = (
    SchemaBuilder.struct()
    .optional()
    .name("Order")
    .version(1)
    .doc("d")
    .parameter("p", "q")
    .field("id", Schema.INT64)
    .field("a.b", Schema.OPTIONAL_STRING.with_(default="anon"))
    .build()
)


def record(values, schema):
    return SourceRecord("t", None if values is None else Struct.trusted(schema, values), value_schema=schema)


@pytest.mark.spark
@pytest.mark.parametrize(
    "props, values, changes, made",
    [
        param({"schema.name": "shop.Order"}, [7, "x"], {"name": "shop.Order"}, [7, "x"], id="a name"),
        param({"schema.version": "12"}, [7, "x"], {"version": 12}, [7, "x"], id="a version"),
        param({"schema.name": "N", "schema.version": "0"}, [7, None], {"name": "N", "version": 0}, [7, "anon"], id="a default for a null"),
        param({"schema.name": "N", "replace.null.with.default": "false"}, [7, None], {"name": "N"}, [7, None], id="a null that stays one"),
        param({"schema.name": ""}, [7, "x"], {"name": ""}, [7, "x"], id="an empty name"),
    ],
)
@pytest.mark.parametrize("optional", [True, False], ids=["optional", "required"])
def test_the_rest_stays(props, values, changes, made, optional, spark_holder):
    schema = ORDER.with_(optional=optional)
    check_transform(SetSchemaMetadata.Value.of(props), record(values, schema), record(made, schema.with_(**changes)), spark_holder)


def test_a_null_comes_under_the_new_schema():
    check_transform(SetSchemaMetadata.Value.of({"schema.name": "N"}), record(None, ORDER), record(None, ORDER.with_(name="N")))


def test_a_null_without_a_schema_stays():
    check_transform(SetSchemaMetadata.Value.of({"schema.name": "N"}), record(None, None), record(None, None))


@pytest.mark.spark
@pytest.mark.parametrize(
    "value, schema",
    [
        param({"a": 1}, None, id="no schema"),
        param("text", Schema.STRING, id="a string"),
        param(Struct.trusted(ORDER, [None, "x"]), ORDER, id="a null that is required"),
    ],
)
def test_what_is_no_struct_that_fits_is_an_error(value, schema, spark_holder):
    check_transform(SetSchemaMetadata.Value.of({"schema.name": "N"}), SourceRecord("t", value, value_schema=schema), DataError, spark_holder)


@pytest.mark.parametrize("props", [{}, {"schema.version": "1.5"}, {"schema.version": ""}])
def test_what_is_refused_at_configure(props):
    with pytest.raises(ConfigError):
        SetSchemaMetadata.Value.of(props)
