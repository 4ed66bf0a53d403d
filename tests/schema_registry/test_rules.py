"""What one schema may follow another: each kind of misfit by the name that Confluent's registry gives it, and what is none."""

import base64
import json

import pytest
from pytest import param

from standalone.errors import DataError
from standalone.schema_registry.proto_files import MAIN, compile_proto
from standalone.schema_registry.proto_text import text_of
from standalone.schema_registry.rules import parse
from standalone.schema_registry.schema import RegistrySchema


def parsed(kind, schema, **references):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return parse(RegistrySchema(text, kind), {name: RegistrySchema(each, kind) for name, each in references.items()})


def misfits(kind, older, newer):
    return [misfit.kind for misfit in parsed(kind, newer).misfits(parsed(kind, older))]


def rec(*fields, **more):
    return {"type": "record", "name": "R", "fields": list(fields), **more}


A = {"name": "a", "type": "int"}
RECURSIVE = rec(A, {"name": "next", "type": ["null", "R"], "default": None})
ENUM = {"type": "enum", "name": "E", "symbols": ["x"]}


@pytest.mark.parametrize(
    "older, newer, found",
    [
        param(RECURSIVE, RECURSIVE, [], id="recursive"),
        param(RECURSIVE, rec({"name": "a", "type": "string"}, RECURSIVE["fields"][1]), ["TYPE_MISMATCH"], id="recursive, another type within"),
        param(rec(), rec({"name": "e", "type": {**ENUM, "default": "x"}}), [], id="a new enum with its own default"),
        param(rec(), rec({"name": "e", "type": ENUM}), ["READER_FIELD_MISSING_DEFAULT_VALUE"], id="a new enum without"),
        param(["int", "string"], ["long", "string"], [], id="a branch that is wider"),
        param(["int", "string"], ["int"], ["MISSING_UNION_BRANCH"], id="a branch less"),
        param('"int"', ["null", "string"], ["MISSING_UNION_BRANCH"], id="into a union without it"),
        param({"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "G", "size": 2}, ["NAME_MISMATCH", "FIXED_SIZE_MISMATCH"], id="fixed"),
        param({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}, '"bytes"', [], id="logical types are what is below them"),
        param(rec(A, aliases=["Old"]), rec(A, aliases=["Other"]), [], id="aliases alone"),
        param(ENUM, {**ENUM, "symbols": ["y"]}, ["MISSING_ENUM_SYMBOLS"], id="a symbol less"),
    ],
)
def test_avro(older, newer, found):
    assert misfits("AVRO", older, newer) == found


def obj(**more):
    return {"type": "object", **more}


P = {"a": {"type": "string"}}


@pytest.mark.parametrize(
    "older, newer, found",
    [
        param(obj(properties=P), obj(properties=P, title="t", description="d"), [], id="words about it"),
        param({"type": "string"}, {"type": "string", "pattern": "x"}, ["PATTERN_ADDED"], id="a pattern"),
        param({"type": "string", "pattern": "x"}, {"type": "string", "pattern": "y"}, ["PATTERN_CHANGED"], id="another pattern"),
        param({"type": "string", "minLength": 1}, {"type": "string", "minLength": 2}, ["MIN_LENGTH_INCREASED"], id="longer"),
        param({"type": "string"}, {"type": "string", "maxLength": 2}, ["MAX_LENGTH_ADDED"], id="a limit"),
        param({"type": "number", "multipleOf": 2}, {"type": "number", "multipleOf": 4}, ["MULTIPLE_OF_EXPANDED"], id="a greater multiple"),
        param({"type": "number", "multipleOf": 4}, {"type": "number", "multipleOf": 2}, [], id="a smaller multiple"),
        param({"type": "number", "multipleOf": 2}, {"type": "number", "multipleOf": 3}, ["MULTIPLE_OF_CHANGED"], id="another multiple"),
        param(obj(properties=P), obj(properties=P, required=["a"]), ["REQUIRED_ATTRIBUTE_ADDED"], id="required"),
        param(obj(properties=P), obj(properties={"a": {"type": "string", "default": ""}}, required=["a"]), [], id="required with a default"),
        param(obj(additionalProperties=False), obj(properties=P, required=["a"], additionalProperties=False),
              ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"], id="a new one that is required"),
        param(obj(additionalProperties={"type": "string"}), obj(properties=P, additionalProperties={"type": "string"}), [], id="a new one as others had to be"),
        param(obj(additionalProperties={"type": "number"}), obj(properties=P, additionalProperties={"type": "number"}),
              ["PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"], id="a new one as others had not to be"),
        param(obj(properties=P, additionalProperties=False), obj(additionalProperties={"type": "number"}),
              ["PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"], id="one less that others may not be"),
        param(obj(patternProperties={"^a": {"type": "string"}}, additionalProperties=False), obj(properties=P, additionalProperties=False), [], id="patterns"),
        param(obj(dependencies={"a": ["b"]}), obj(dependencies={"a": ["b", "c"]}), ["DEPENDENCY_ARRAY_EXTENDED"], id="depends on more"),
        param(obj(), obj(dependencies={"a": {"type": "object"}}), ["DEPENDENCY_SCHEMA_ADDED"], id="depends on a schema"),
        param({"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "string"}}, ["TYPE_CHANGED"], id="items"),
        param({"type": "array"}, {"type": "array", "uniqueItems": True, "maxItems": 3}, ["MAX_ITEMS_ADDED", "UNIQUE_ITEMS_ADDED"], id="limits of items"),
        param({"type": "array", "items": [{"type": "string"}, {"type": "number"}], "additionalItems": False},
              {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
              ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"], id="an item less"),
        param({"allOf": [{"type": "string"}]}, {"allOf": [{"type": "string"}, {"maxLength": 3}]}, ["PRODUCT_TYPE_EXTENDED"], id="more at once"),
        param({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"oneOf": [{"type": "string"}, {"type": "boolean"}]},
              ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"], id="another alternative"),
        param({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"anyOf": [{"type": "string"}, {"type": "number"}]}, [], id="one to any"),
        param({"not": {"type": "string"}}, {"not": {"type": ["string", "number"]}}, ["NOT_TYPE_EXTENDED"], id="more is ruled out"),
        param({"not": {"type": ["string", "number"]}}, {"not": {"type": "string"}}, [], id="less is ruled out"),
        param({"$ref": "#/definitions/x", "definitions": {"x": {"type": "string"}}}, {"type": "string"}, [], id="a reference and what it means"),
        param({"type": "string"}, True, [], id="anything"),
        param(False, {"type": "string"}, [], id="from nothing"),
    ],
)  # fmt: skip
def test_json_schema(older, newer, found):
    assert misfits("JSON", older, newer) == found


def test_a_json_schema_that_refers_to_itself_ends():
    tree = {"$ref": "#/definitions/n", "definitions": {"n": obj(properties={"next": {"$ref": "#/definitions/n"}})}}
    assert misfits("JSON", tree, tree) == []


def proto(body, package="p", syntax="proto3"):
    return f'syntax = "{syntax}"; package {package}; {body}'


@pytest.mark.parametrize(
    "older, newer, found",
    [
        param(proto("message A { int32 a = 1; }"), proto("message A { int32 a = 1; }", "q"), ["PACKAGE_CHANGED"], id="another package"),
        param(proto("message A {} message B {}"), proto("message A {}"), ["MESSAGE_REMOVED"], id="a message less"),
        param(proto("message A { B b = 1; } message B {} message C {}"), proto("message A { C b = 1; } message B {} message C {}"),
              ["FIELD_NAMED_TYPE_CHANGED"], id="another message"),
        param(proto("message A { B b = 1; } message B {}"), proto("message A { string b = 1; } message B {}"), ["FIELD_KIND_CHANGED"], id="no message"),
        param(proto("message A { map<string, int32> m = 1; }"), proto("message A { map<string, string> m = 1; }"), ["FIELD_SCALAR_KIND_CHANGED"], id="a map"),
        param(proto("message A { map<string, int32> m = 1; }"), proto("message A { int32 m = 1; }"), ["FIELD_KIND_CHANGED"], id="a map no more"),
        param(proto("message A { oneof o { int32 a = 1; int32 b = 2; } }"), proto("message A { oneof o { int32 a = 1; } }"), ["ONEOF_FIELD_REMOVED"], id="of a oneof"),
        param(proto("message A { int32 a = 1; int32 b = 2; }"), proto("message A { oneof o { int32 a = 1; int32 b = 2; } }"),
              ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"], id="two into a oneof"),
        param(proto("message A { int32 a = 1; oneof o { int32 b = 2; } }"), proto("message A { oneof o { int32 a = 1; int32 b = 2; } }"),
              ["FIELD_MOVED_TO_EXISTING_ONEOF"], id="into a oneof that was there"),
        param(proto("message A {}", syntax="proto2"), proto("message A { required int32 a = 1; }", syntax="proto2"), ["REQUIRED_FIELD_ADDED"], id="required"),
        param(proto("message A { required int32 a = 1; }", syntax="proto2"), proto("message A {}", syntax="proto2"), ["REQUIRED_FIELD_REMOVED"], id="required no more"),
        param(proto("message A { int32 a = 1; }"), proto("message A { optional int32 a = 1; E e = 2; enum E { X = 0; } }"), [], id="optional, and an enum"),
    ],
)  # fmt: skip
def test_protobuf(older, newer, found):
    assert misfits("PROTOBUF", older, newer) == found


PROTO2 = """
syntax = "proto2";
package x.y;
import public "google/protobuf/any.proto";
option java_package = "a.b";
message A {
  required int32 a = 1 [default = 7];
  optional string s = 2 [default = "q\\"t"];
  repeated group G = 3 { optional bytes b = 1; }
  extensions 100 to 199;
  reserved 50 to 60, 200 to max;
  reserved "old";
  oneof o { E e = 4; A inner = 5; }
  enum E { option allow_alias = true; X = 0; Y = 0; reserved 9; }
}
extend A { optional int32 extra = 100; }
service S { rpc Do (A) returns (stream A) { option deprecated = true; } }
"""


def test_the_text_of_a_descriptor_compiles_to_the_same_descriptor():
    file = compile_proto(PROTO2)[MAIN]
    again = compile_proto(text_of(file))[MAIN]
    assert again == file
    assert compile_proto(base64.b64encode(file.SerializeToString()).decode())[MAIN] == file


@pytest.mark.parametrize(
    "kind, text, said",
    [
        param("PROTOBUF", 'syntax = "proto3"; message A { Foo a = 1; }', '"Foo" is not defined', id="an unknown type"),
        param("PROTOBUF", 'syntax = "proto3"; import "no.proto";', "no.proto", id="an unknown import"),
        param("AVRO", '{"type":"record","name":"R","fields":[{"name":"a","type":"x.Foo"}]}', "x.Foo", id="an unknown name"),
        param("AVRO", '{"type":"record","name":"R"}', "no list of fields", id="no fields"),
        param("JSON", '{"type":"bogus"}', "bogus", id="an unknown type of JSON"),
        param("JSON", '{"$ref":"other.json"}', "leads nowhere", id="a $ref to nobody"),
        param("THRIFT", "x", "Invalid schema type", id="an unknown kind"),
    ],
)
def test_what_is_no_schema_says_why(kind, text, said):
    with pytest.raises(DataError, match=said.replace('"', ".")):
        parsed(kind, text)


def test_names_of_imports_stay_within_their_folder():
    with pytest.raises(DataError, match="leads out of the folder"):
        compile_proto('syntax = "proto3";', {"../../x.proto": ""})
