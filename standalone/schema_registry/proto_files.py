"""Protobuf files and descriptors: compiles .proto text with protoc in this process, and decodes base64 descriptors.

files = compile_proto('syntax = "proto3"; message A {}', {})
files["default"].message_type[0].name  ->  "A"
"""

import base64
import binascii
import functools
import os
import pathlib
import re
import tempfile
import threading
import warnings

from standalone.errors import DataError

MAIN = "default"  # the name of the main file: a registry has its subject, not its path
_OWN = pathlib.Path(__file__).parent / "protos"
_SERIALIZED = re.compile(r"AddSerializedFile\((b(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))\)")
_SYNTAX = re.compile(r"^\s*(syntax|edition)\s*=", re.MULTILINE)
_lock = threading.Lock()  # protoc collects warnings and errors in process-wide state


def compile_proto(text, references=()):
    """{name: FileDescriptorProto} of the file (named `default`) and all its imports.

    `references` is {name: text} of imports that are not well-known ones. A string may also be a FileDescriptorProto in base64, which is how
    Confluent's Python client registers it. Raises DataError with protoc's message.
    """
    return _compiled(text, tuple(dict(references).items()))


@functools.lru_cache(maxsize=256)
def _compiled(text, references):
    names = {MAIN: _as_text(text), **{name: _as_text(each) for name, each in references}}
    with _lock, tempfile.TemporaryDirectory() as folder:
        for name, each in names.items():
            path = pathlib.Path(folder, name)
            if not path.resolve().is_relative_to(pathlib.Path(folder).resolve()):
                raise DataError(f"'{name}' is not a name for an import of a Protobuf schema: it leads out of the folder.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_with_syntax(each), encoding="utf-8")
        return {file.name: file for file in _descriptors([folder, str(_OWN), _well_known()])}


def _descriptors(paths):
    """The descriptors of the main file and all its imports, extracted from protoc's generated Python: that way protoc reports errors by an
    exception, not on stderr."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from grpc_tools import _protoc_compiler

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unused imports
        try:
            modules = _protoc_compiler.get_protos(MAIN.encode(), [path.encode() for path in paths])
        except Exception as error:
            raise DataError(f"The Protobuf schema is not valid: {_told(error)}.") from None
    codes = [text.decode() for path, text in modules if path.endswith(b"_pb2.py")]
    return [FileDescriptorProto.FromString(_bytes(_SERIALIZED.search(code)[1])) for code in codes]


def _bytes(literal):
    """Return the value of a bytes literal. ast.literal_eval could raise SystemError while another thread parses: Python 3.11.0 to 3.11.7 count
    the recursion depth of all threads in one place (python/cpython#106905), and format each traceback with the parser."""
    return literal[2:-1].encode().decode("unicode_escape").encode("latin-1")


def _well_known():
    import grpc_tools

    return os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")


def _with_syntax(text):
    """Add the syntax: protoc warns on stderr if it is missing."""
    return text if _SYNTAX.search(text) else f'syntax = "proto2"; {text}'


def _told(error):
    problems = error.args[0] if error.args and isinstance(error.args[0], list) else []
    lines = [f"{_file(each)}line {each.line + 1}, column {each.column + 1}: {_plain(each.message)}" for each in problems]
    return "; ".join(lines).rstrip(".") or str(error) or type(error).__name__


def _file(problem):
    name = _plain(problem.filename)
    return "" if name == MAIN else f"{name}, "


def _plain(message):
    """Decode protoc's message, which contains the text of bytes objects."""
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    return text[2:-1].replace("\\'", "'") if text.startswith(("b'", 'b"')) else text


def serialized_of(text):
    """The FileDescriptorProto in a base64 text, or None if it is not one."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        found = FileDescriptorProto.FromString(base64.b64decode("".join(text.split()), validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    return found if text.strip() and (found.message_type or found.enum_type or found.service or found.syntax) else None


def _as_text(text):
    found = serialized_of(text)
    if found is None:
        return text
    from standalone.schema_registry.proto_text import text_of

    return text_of(found)
