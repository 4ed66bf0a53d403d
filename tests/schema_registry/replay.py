"""Replays the table of requests against a registry, and makes of each answer what two implementations can be compared by.

    python -m tests.schema_registry.replay http://127.0.0.1:8080/apis/ccompat/v7 > tests/schema_registry/apicurio.json
"""

import json
import re
import sys

import httpx

from tests.schema_registry.request_table import REQUESTS

_HEADERS = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
_SHOWN = ("subject", "version", "schemaType", "references", "is_compatible", "compatibilityLevel", "compatibility", "mode")


def replay(url):
    """{name of the request: [status, what of the body counts]}"""
    ids, found = {}, {}
    with httpx.Client(timeout=60) as client:
        for name, method, path, body in REQUESTS:
            path = re.sub(r"\{([^}]+)\}", lambda match: str(ids.get(match[1], 0)), path)
            content = body if isinstance(body, str) or body is None else json.dumps(body)
            answer = client.request(method, url + path, content=content, headers=_HEADERS if content is not None else {})
            try:
                told = answer.json()
            except ValueError:
                told = answer.text
            if isinstance(told, dict) and "id" in told:
                ids[name] = told["id"]
            assert name not in found, name
            found[name] = [answer.status_code, _what_counts(told, answer.status_code)]
    return found


def _what_counts(told, status):
    if status >= 400:
        return {"error_code": told.get("error_code")} if isinstance(told, dict) and status < 500 else None
    if not isinstance(told, dict):
        return sorted(told, key=str) if isinstance(told, list) else told
    shown = {key: told[key] for key in _SHOWN if told.get(key) not in (None, [])}
    if shown.get("schemaType") == "AVRO":
        del shown["schemaType"]  # it goes without saying
    if "schema" in told:
        shown["schema"] = _meaning(told["schema"])
    if "version" in told and "subject" not in told:
        shown.pop("version")  # newer registries tell it of what they have registered
        shown.pop("schema", None)
        shown.pop("schemaType", None)
        shown.pop("references", None)
    if isinstance(told.get("schema"), str) and "subject" not in told and "id" in told:
        shown = {}
    return shown or ({"id": True} if "id" in told else {})


def _meaning(text):
    try:
        return json.loads(text)
    except ValueError:
        return " ".join(text.split())


if __name__ == "__main__":
    answers = replay(sys.argv[1])
    print("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items()) + "\n}")
