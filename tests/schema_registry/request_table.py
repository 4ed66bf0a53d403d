"""Requests of Confluent's schema registry API, in order: replayed against ours and another implementation (replay.py compares).

A request is (name, method, path, body); `{a}` in a path is the id that the request named `a` was answered with. Each scenario has subjects
of its own, so that all run one after the other on one registry.
"""

import json

REQUESTS = []
_scenario = ""


def scenario(name):
    global _scenario
    _scenario = name


def ask(name, method, path, body=None):
    REQUESTS.append((f"{_scenario}: {name}", method, path, body))


def schema(text, kind=None, references=None, **more):
    body = {"schema": text if isinstance(text, str) else json.dumps(text), **more}
    if kind:
        body["schemaType"] = kind
    if references:
        body["references"] = [dict(zip(("name", "subject", "version"), each)) for each in references]
    return body


def record(*fields, name="R", **more):
    return {"type": "record", "name": name, "fields": [dict(zip(("name", "type", "default"), each)) for each in fields], **more}


A, B, C = ("a", "int"), ("b", "string"), ("c", "string", "x")

# ---- the walk of a subject
scenario("walk")
ask("an unknown subject has no versions", "GET", "/subjects/walk/versions")
ask("an unknown subject has no newest version", "GET", "/subjects/walk/versions/latest")
ask("an unknown subject knows no schema", "POST", "/subjects/walk", schema(record(A)))
ask("an unknown subject cannot be deleted", "DELETE", "/subjects/walk")
ask("first", "POST", "/subjects/walk/versions", schema(record(A)))
ask("the same again", "POST", "/subjects/walk/versions", schema(record(A)))
ask("the same with other blanks", "POST", "/subjects/walk/versions", schema(json.dumps(record(A), indent=2)))
ask("second", "POST", "/subjects/walk/versions", schema(record(A, C)))
ask("versions", "GET", "/subjects/walk/versions")
for version in ("1", "2", "3", "latest", "-1", "0", "-2", "x", "99999999999"):
    ask(f"version {version}", "GET", f"/subjects/walk/versions/{version}")
    ask(f"raw version {version}", "GET", f"/subjects/walk/versions/{version}/schema")
ask("by id", "GET", "/schemas/ids/{walk: first}")
ask("raw by id", "GET", "/schemas/ids/{walk: first}/schema")
ask("versions of an id", "GET", "/schemas/ids/{walk: first}/versions")
ask("an id that is not there", "GET", "/schemas/ids/100000")
ask("versions of an id that is not there", "GET", "/schemas/ids/100000/versions")
ask("an id that is no number", "GET", "/schemas/ids/x")
ask("types", "GET", "/schemas/types")
ask("lookup of the first", "POST", "/subjects/walk", schema(record(A)))
ask("lookup of the second", "POST", "/subjects/walk", schema(record(A, C)))
ask("lookup of none", "POST", "/subjects/walk", schema(record(B)))
ask("lookup of no schema", "POST", "/subjects/walk", schema("{"))

scenario("two subjects")
ask("one", "POST", "/subjects/two-a/versions", schema(record(A, name="Two")))
ask("other", "POST", "/subjects/two-b/versions", schema(record(A, name="Two")))
ask("newest of the other", "GET", "/subjects/two-b/versions/latest")
ask("versions of the id", "GET", "/schemas/ids/{two subjects: one}/versions")
ask("the id of both is one", "GET", "/schemas/ids/{two subjects: other}")
ask("referenced by nobody", "GET", "/subjects/two-a/versions/1/referencedby")

# ---- what is not a schema
scenario("invalid")
for name, text, kind in [
    ("Avro that is no JSON", "{", None), ("Avro of an unknown type", '{"type":"foo"}', None), ("Avro of an unknown name", '"foo"', None),
    ("a record without fields", '{"type":"record","name":"R"}', None), ("an enum without symbols", '{"type":"enum","name":"E"}', None),
    ("a fixed without size", '{"type":"fixed","name":"F"}', None), ("an array without items", '{"type":"array"}', None),
    ("a map without values", '{"type":"map"}', None), ("a record without name", '{"type":"record","fields":[]}', None),
    ("a name that is none", '{"type":"record","name":"9","fields":[]}', None),
    ("two fields of one name", record(A, A), None), ("two symbols that are one", '{"type":"enum","name":"E","symbols":["a","a"]}', None),
    ("a default of another type", record(("a", "int", "x")), None), ("a union in a union", '[["null"],"int"]', None),
    ("a union of two alike", '["int","int"]', None),
    ("JSON that is none", "{", "JSON"), ("JSON of an unknown type", '{"type":"bogus"}', "JSON"), ("a JSON list", "[]", "JSON"),
    ("Protobuf that is none", "foo", "PROTOBUF"), ("Protobuf of an unknown type", 'syntax = "proto3"; message A { Foo a = 1; }', "PROTOBUF"),
    ("Protobuf with a number twice", 'syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }', "PROTOBUF"),
    ("an unknown kind", '"int"', "THRIFT"), ("nothing", "", None),
]:  # fmt: skip
    ask(f"register {name}", "POST", "/subjects/invalid/versions", schema(text, kind))
ask("a body that is no JSON", "POST", "/subjects/invalid/versions", "{")
ask("a body that is a list", "POST", "/subjects/invalid/versions", [])
ask("a body without schema", "POST", "/subjects/invalid/versions", {})
ask("compatibility of no schema", "POST", "/compatibility/subjects/walk/versions/latest", schema("{"))
ask("nothing was registered", "GET", "/subjects/invalid/versions")

# ---- kinds of Avro
scenario("avro")
for name, text in [
    *((each, f'"{each}"') for each in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")),
    ("primitive as object", '{"type":"string"}'), ("union", '["null","int"]'), ("array", '{"type":"array","items":"int"}'),
    ("map", '{"type":"map","values":["null","string"]}'), ("enum", '{"type":"enum","name":"E","symbols":["a","b"],"default":"a"}'),
    ("fixed", '{"type":"fixed","name":"F","size":4}'), ("decimal", '{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}'),
    ("date", '{"type":"int","logicalType":"date"}'), ("namespace", record(A, name="N", namespace="x.y", doc="d")),
    ("full name", record(A, name="x.y.N2")), ("nested", record(("r", record(A, name="In", namespace="z")), name="Out", namespace="x")),
    ("recursive", record(A, ("next", ["null", "Rec"], None), name="Rec")), ("property", {"type": "string", "avro.java.string": "String"}),
    ("order", {"type": "record", "name": "O", "fields": [{"name": "a", "type": "int", "order": "ignore", "aliases": ["z"], "doc": "d", "x": 1}]}),
]:  # fmt: skip
    subject = f"avro-{name.replace(' ', '-')}"
    ask(name, "POST", f"/subjects/{subject}/versions", schema(text))
    ask(f"{name} is shown", "GET", f"/subjects/{subject}/versions/1")

# ---- compatibility of Avro: (name, older, newer)
PAIRS = [
    ("nothing", record(A), record(A, doc="x")), ("a field more", record(A), record(A, B)), ("a field with default more", record(A), record(A, C)),
    ("a field less", record(A, B), record(A)), ("a field with default less", record(A, C), record(A)), ("int to long", record(A), record(("a", "long"))),
    ("long to int", record(("a", "long")), record(A)), ("int to double", '"int"', '"double"'), ("double to int", '"double"', '"int"'),
    ("string to bytes", '"string"', '"bytes"'), ("int to string", '"int"', '"string"'), ("to a union", '"int"', '["null","int"]'),
    ("from a union", '["null","int"]', '"int"'), ("a branch more", '["null","int"]', '["null","int","string"]'),
    ("a branch less", '["null","int","string"]', '["null","int"]'),
    ("a symbol more", '{"type":"enum","name":"E","symbols":["a"]}', '{"type":"enum","name":"E","symbols":["a","b"]}'),
    ("a symbol less", '{"type":"enum","name":"E","symbols":["a","b"]}', '{"type":"enum","name":"E","symbols":["a"]}'),
    ("a symbol less with default", '{"type":"enum","name":"E","symbols":["a","b"]}', '{"type":"enum","name":"E","symbols":["a"],"default":"a"}'),
    ("another size", '{"type":"fixed","name":"F","size":4}', '{"type":"fixed","name":"F","size":8}'),
    ("another name", record(A, name="R1"), record(A, name="R2")), ("an alias", record(A, name="R1"), record(A, name="R2", aliases=["R1"])),
    ("another namespace", record(A, name="R", namespace="x"), record(A, name="R", namespace="y")),
    ("a renamed field", record(A), {"type": "record", "name": "R", "fields": [{"name": "z", "type": "int", "aliases": ["a"]}]}),
    ("items", '{"type":"array","items":"int"}', '{"type":"array","items":"long"}'), ("values", '{"type":"map","values":"long"}', '{"type":"map","values":"int"}'),
    ("array to map", '{"type":"array","items":"int"}', '{"type":"map","values":"int"}'),
    ("inner field more", record(("r", record(A, name="In"))), record(("r", record(A, B, name="In")))),
]  # fmt: skip
scenario("avro compatibility")
for number, (name, older, newer) in enumerate(PAIRS):
    for level in ("BACKWARD", "FORWARD"):
        subject = f"pair-{number}-{level.lower()}"
        ask(f"{name}, {level}: level", "PUT", f"/config/{subject}", {"compatibility": level})
        ask(f"{name}, {level}: older", "POST", f"/subjects/{subject}/versions", schema(older))
        ask(f"{name}, {level}: asked", "POST", f"/compatibility/subjects/{subject}/versions/latest", schema(newer))
        ask(f"{name}, {level}: registered", "POST", f"/subjects/{subject}/versions", schema(newer))

# ---- compatibility of JSON Schema and Protobuf
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}}
CLOSED = {**OBJECT, "additionalProperties": False}
JSON_PAIRS = [
    ("integer to number", OBJECT, {"type": "object", "properties": {"a": {"type": "number"}}}),
    ("number to integer", {"type": "number"}, {"type": "integer"}),
    ("a property more, open", OBJECT, {**OBJECT, "properties": {**OBJECT["properties"], "b": {"type": "string"}}}),
    ("a property more, closed", CLOSED, {**CLOSED, "properties": {**OBJECT["properties"], "b": {"type": "string"}}}),
    ("a property less, open", OBJECT, {"type": "object"}), ("a property less, closed", CLOSED, {"type": "object", "additionalProperties": False}),
    ("required more", OBJECT, {**OBJECT, "required": ["a"]}), ("required less", {**OBJECT, "required": ["a"]}, OBJECT),
    ("maxLength less", {"type": "string", "maxLength": 9}, {"type": "string", "maxLength": 5}),
    ("maxLength more", {"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 9}),
    ("minimum more", {"type": "number", "minimum": 1}, {"type": "number", "minimum": 2}), ("another type", {"type": "string"}, {"type": "number"}),
    ("a value more", {"enum": ["a"]}, {"enum": ["a", "b"]}), ("a value less", {"enum": ["a", "b"]}, {"enum": ["a"]}),
    ("an alternative more", {"oneOf": [{"type": "string"}]}, {"oneOf": [{"type": "string"}, {"type": "number"}]}),
    ("an alternative less", {"oneOf": [{"type": "string"}, {"type": "number"}]}, {"oneOf": [{"type": "string"}]}),
    ("open to closed", OBJECT, CLOSED), ("closed to open", CLOSED, OBJECT), ("to a union of types", {"type": "string"}, {"type": ["string", "null"]}),
]  # fmt: skip
PROTO = 'syntax = "proto3";\npackage p;\n\nmessage A {\n  %s\n}\n'
PROTO_PAIRS = [
    ("a field more", "int32 a = 1;", "int32 a = 1; string b = 2;"), ("a field less", "int32 a = 1; string b = 2;", "int32 a = 1;"),
    ("int32 to int64", "int32 a = 1;", "int64 a = 1;"), ("int32 to string", "int32 a = 1;", "string a = 1;"),
    ("string to bytes", "string a = 1;", "bytes a = 1;"), ("another name", "int32 a = 1;", "int32 z = 1;"),
    ("another number", "int32 a = 1;", "int32 a = 2;"), ("to repeated", "int32 a = 1;", "repeated int32 a = 1;"),
    ("into a oneof", "int32 a = 1;", "oneof o { int32 a = 1; string b = 2; }"),
    ("a message less", "message I { int32 x = 1; } int32 a = 1;", "int32 a = 1;"),
]  # fmt: skip
scenario("json compatibility")
for number, (name, older, newer) in enumerate(JSON_PAIRS):
    ask(f"{name}: older", "POST", f"/subjects/json-{number}/versions", schema(older, "JSON"))
    ask(f"{name}: asked", "POST", f"/compatibility/subjects/json-{number}/versions/latest", schema(newer, "JSON"))
scenario("protobuf compatibility")
for number, (name, older, newer) in enumerate(PROTO_PAIRS):
    ask(f"{name}: older", "POST", f"/subjects/proto-{number}/versions", schema(PROTO % older, "PROTOBUF"))
    ask(f"{name}: asked", "POST", f"/compatibility/subjects/proto-{number}/versions/latest", schema(PROTO % newer, "PROTOBUF"))

# ---- levels
scenario("levels")
for level in ("NONE", "FULL", "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"):
    subject = f"level-{level.lower()}"
    ask(f"{level}: set", "PUT", f"/config/{subject}", {"compatibility": level})
    ask(f"{level}: shown", "GET", f"/config/{subject}")
    for step, each in enumerate((record(A), record(A, C), record(A, C, ("d", "int", 0)), record(("a", "string")))):
        ask(f"{level}: step {step}", "POST", f"/subjects/{subject}/versions", schema(each))
    ask(f"{level}: versions", "GET", f"/subjects/{subject}/versions")
ask("an unknown level", "PUT", "/config/level-x", {"compatibility": "SIDEWAYS"})
ask("of all", "GET", "/config")
ask("of all, set", "PUT", "/config", {"compatibility": "FULL"})
ask("of all, shown", "GET", "/config")
ask("of all, set back", "PUT", "/config", {"compatibility": "BACKWARD"})
ask("of a subject without one", "GET", "/config/nobody")
ask("of a subject without one, by default that of all", "GET", "/config/nobody?defaultToGlobal=true")
ask("deleted", "DELETE", "/config/level-none")
ask("gone", "GET", "/config/level-none")
ask("compatibility with a version that is not there", "POST", "/compatibility/subjects/walk/versions/9", schema(record(A)))
ask("compatibility with an unknown subject", "POST", "/compatibility/subjects/nobody/versions/latest", schema(record(A)))
ask("compatibility with a version that is none", "POST", "/compatibility/subjects/walk/versions/x", schema(record(A)))
ask("compatibility with all", "POST", "/compatibility/subjects/walk/versions", schema(record(A, C)))
ask("mode of all", "GET", "/mode")

# ---- deleting
scenario("delete")
for step, each in enumerate((record(A, name="D"), record(A, C, name="D"), record(A, C, ("d", "int", 0), name="D"))):
    ask(f"version {step + 1}", "POST", "/subjects/del/versions", schema(each))
ask("a version for good at once", "DELETE", "/subjects/del/versions/1?permanent=true")
ask("a version", "DELETE", "/subjects/del/versions/1")
ask("a version twice", "DELETE", "/subjects/del/versions/1")
ask("it is gone", "GET", "/subjects/del/versions/1")
ask("it is there for who asks", "GET", "/subjects/del/versions/1?deleted=true")
ask("the rest", "GET", "/subjects/del/versions")
ask("all", "GET", "/subjects/del/versions?deleted=true")
ask("its id stays", "GET", "/schemas/ids/{delete: version 1}")
ask("it is not found", "POST", "/subjects/del", schema(record(A, name="D")))
ask("it is found by who asks", "POST", "/subjects/del?deleted=true", schema(record(A, name="D")))
ask("a version that is not there", "DELETE", "/subjects/del/versions/9")
ask("a version that is none", "DELETE", "/subjects/del/versions/x")
ask("the newest", "DELETE", "/subjects/del/versions/latest")
ask("a version for good", "DELETE", "/subjects/del/versions/1?permanent=true")
ask("it is gone for good", "GET", "/subjects/del/versions/1?deleted=true")
ask("the subject for good at once", "DELETE", "/subjects/del?permanent=true")
ask("the subject", "DELETE", "/subjects/del")
ask("the subject twice", "DELETE", "/subjects/del")
ask("no versions", "GET", "/subjects/del/versions")
ask("the subject for good", "DELETE", "/subjects/del?permanent=true")
ask("the subject for good twice", "DELETE", "/subjects/del?permanent=true")
ask("once more", "POST", "/subjects/del/versions", schema(record(A, name="D")))

# ---- references
scenario("references")
ask("inner", "POST", "/subjects/ref-inner/versions", schema(record(A, name="In", namespace="x")))
ask("outer", "POST", "/subjects/ref-outer/versions", schema(record(("i", "x.In"), name="Out", namespace="x"), None, [("x.In", "ref-inner", 1)]))
ask("outer is shown", "GET", "/subjects/ref-outer/versions/1")
ask("outer by id", "GET", "/schemas/ids/{references: outer}")
ask("without its reference", "POST", "/subjects/ref-none/versions", schema(record(("i", "x.In"), name="Out", namespace="x")))
ask("a reference to nobody", "POST", "/subjects/ref-nobody/versions", schema(record(("i", "x.In"), name="Out"), None, [("x.In", "nobody", 1)]))
ask("inner is referred to", "GET", "/subjects/ref-inner/versions/1/referencedby")
ask("inner cannot go", "DELETE", "/subjects/ref-inner/versions/1")
ask("nor its subject", "DELETE", "/subjects/ref-inner")
ask("outer goes", "DELETE", "/subjects/ref-outer")
ask("inner goes", "DELETE", "/subjects/ref-inner")
ask("Protobuf inner", "POST", "/subjects/pref-inner/versions", schema('syntax = "proto3"; package q; message I { int32 a = 1; }', "PROTOBUF"))
ask("Protobuf outer", "POST", "/subjects/pref-outer/versions", schema(
    'syntax = "proto3"; package p; import "i.proto"; message O { q.I i = 1; }', "PROTOBUF", [("i.proto", "pref-inner", 1)]))  # fmt: skip
ask("Protobuf without it", "POST", "/subjects/pref-none/versions", schema('syntax = "proto3"; import "i.proto"; message O { q.I i = 1; }', "PROTOBUF"))
ask("well-known", "POST", "/subjects/pref-well/versions", schema(
    'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message O { google.protobuf.Timestamp t = 1; }', "PROTOBUF"))  # fmt: skip

# ---- kinds beside each other
scenario("kinds")
ask("Avro", "POST", "/subjects/kinds/versions", schema(record(A)))
ask("JSON behind it", "POST", "/subjects/kinds/versions", schema({"type": "string"}, "JSON"))
ask("JSON asked", "POST", "/compatibility/subjects/kinds/versions/latest", schema({"type": "string"}, "JSON"))
ask("Avro named", "POST", "/subjects/kinds-named/versions", schema(record(A), "AVRO"))

# ---- addresses
scenario("addresses")
ask("unknown", "GET", "/nope")
ask("wrong method", "PUT", "/subjects/walk/versions", schema(record(A)))
ask("an encoded subject", "POST", "/subjects/a%20b/versions", schema('"int"'))
ask("an encoded subject is shown", "GET", "/subjects/a%20b/versions/1")
ask("mode of a subject without one", "GET", "/mode/nobody")
ask("mode set", "PUT", "/mode/moded", {"mode": "READONLY"})
ask("register read-only", "POST", "/subjects/moded/versions", schema('"int"'))
ask("unknown mode", "PUT", "/mode/moded", {"mode": "SIDEWAYS"})
ask("mode deleted", "DELETE", "/mode/moded")
