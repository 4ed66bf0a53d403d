"""Formatted schemas, and the differences between two."""

import difflib
import json

from standalone.schema_registry.schema import PROTOBUF


def pretty(schema):
    """The formatted text of a schema."""
    if schema.kind == PROTOBUF:
        return schema.text.rstrip("\n") + "\n"
    try:
        return json.dumps(json.loads(schema.text), indent=2, ensure_ascii=False) + "\n"
    except ValueError:
        return schema.text + "\n"


def differences(older, newer, context=3):
    """[(mark, line)]: "-" removed, "+" added, " " unchanged, "@" omitted lines."""
    lines = difflib.unified_diff(pretty(older).splitlines(), pretty(newer).splitlines(), lineterm="", n=context)
    return [(line[:1], line if line.startswith("@@") else line[1:]) for line in lines if not line.startswith(("---", "+++"))]


def versions_of(client, subject):
    """[{version, id, kind, schema, references}] of a subject, in order."""
    found = []
    for version in client.versions(subject):
        id, schema = client.version(subject, version)
        references = [{"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references]
        found.append({"version": version, "id": id, "kind": schema.kind, "schema": pretty(schema), "references": references})
    return found
