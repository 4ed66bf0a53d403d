"""Formats a FileDescriptorProto as .proto text, to show schemas registered in compiled form. Descriptors contain no comments."""

from google.protobuf import descriptor_pb2

_F = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    _F.TYPE_DOUBLE: "double", _F.TYPE_FLOAT: "float", _F.TYPE_INT64: "int64", _F.TYPE_UINT64: "uint64", _F.TYPE_INT32: "int32",
    _F.TYPE_FIXED64: "fixed64", _F.TYPE_FIXED32: "fixed32", _F.TYPE_BOOL: "bool", _F.TYPE_STRING: "string", _F.TYPE_BYTES: "bytes",
    _F.TYPE_UINT32: "uint32", _F.TYPE_SFIXED32: "sfixed32", _F.TYPE_SFIXED64: "sfixed64", _F.TYPE_SINT32: "sint32", _F.TYPE_SINT64: "sint64",
}  # fmt: skip
_MAX_TAG = 536870911


def text_of(file):
    syntax = file.syntax or "proto2"
    lines = [f'syntax = "{syntax}";' if syntax != "editions" else f'edition = "{descriptor_pb2.Edition.Name(file.edition)[8:]}";']
    if file.package:
        lines.append(f"package {file.package};")
    lines.append("")
    for number, name in enumerate(file.dependency):
        kind = "public " if number in file.public_dependency else "weak " if number in file.weak_dependency else ""
        lines.append(f'import {kind}"{name}";')
    options = _options(file.options)
    lines += [f"option {name} = {value};" for name, value in options]
    if file.dependency or options:
        lines.append("")
    for enum in file.enum_type:
        lines += [*_enum(enum, ""), ""]
    for message in file.message_type:
        lines += [*_message(message, "", syntax), ""]
    for service in file.service:
        lines += [*_service(service), ""]
    lines += _extensions(file.extension, "", syntax)
    return "\n".join(lines).rstrip("\n") + "\n"


def _message(message, indent, syntax):
    inner = indent + "  "
    yield f"{indent}message {message.name} {{"
    for name, value in _options(message.options, skip=("map_entry",)):
        yield f"{inner}option {name} = {value};"
    maps = {each.name: each for each in message.nested_type if each.options.map_entry}
    groups = {field.type_name.rpartition(".")[2] for field in message.field if field.type == _F.TYPE_GROUP}
    yield from _reserved(message, inner)
    done = set()
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            if field.oneof_index not in done:
                done.add(field.oneof_index)
                oneof = message.oneof_decl[field.oneof_index]
                yield f"{inner}oneof {oneof.name} {{"
                yield from (f"{inner}  option {name} = {value};" for name, value in _options(oneof.options))
                for each in message.field:
                    if each.HasField("oneof_index") and each.oneof_index == field.oneof_index:
                        yield from _field(each, inner + "  ", syntax, message, maps, in_oneof=True)
                yield f"{inner}}}"
        else:
            yield from _field(field, inner, syntax, message, maps)
    for bounds in message.extension_range:
        yield f"{inner}extensions {_span(bounds.start, bounds.end - 1, _MAX_TAG)};"
    for enum in message.enum_type:
        yield from _enum(enum, inner)
    for nested in message.nested_type:
        if nested.name not in maps and nested.name not in groups:
            yield from _message(nested, inner, syntax)
    yield from _extensions(message.extension, inner, syntax)
    yield f"{indent}}}"


def _field(field, indent, syntax, message, maps, in_oneof=False):
    entry = maps.get(field.type_name.rpartition(".")[2]) if field.type == _F.TYPE_MESSAGE else None
    if entry is not None:
        key, value = entry.field
        kind, label = f"map<{_type(key)}, {_type(value)}>", ""
    else:
        kind, label = _type(field), "" if in_oneof else _label(field, syntax)
    if field.type == _F.TYPE_GROUP:
        nested = next(each for each in message.nested_type if each.name == field.type_name.rpartition(".")[2])
        yield f"{indent}{label}group {nested.name} = {field.number} {{"
        yield from list(_message(nested, indent, syntax))[1:]
        return
    options = []
    if field.HasField("default_value"):
        options.append(("default", _default(field)))
    if field.HasField("json_name") and field.json_name != _json_name(field.name):
        options.append(("json_name", _quoted(field.json_name)))
    options += _options(field.options)
    shown = " [" + ", ".join(f"{name} = {value}" for name, value in options) + "]" if options else ""
    yield f"{indent}{label}{kind} {field.name} = {field.number}{shown};"


def _label(field, syntax):
    if field.label == _F.LABEL_REPEATED:
        return "repeated "
    if field.label == _F.LABEL_REQUIRED:
        return "required "
    return "optional " if field.proto3_optional or syntax == "proto2" else ""


def _type(field):
    return _SCALARS.get(field.type) or field.type_name


def _default(field):
    if field.type == _F.TYPE_STRING:
        return _quoted(field.default_value)
    return f'"{field.default_value}"' if field.type == _F.TYPE_BYTES else field.default_value


def _enum(enum, indent):
    inner = indent + "  "
    yield f"{indent}enum {enum.name} {{"
    yield from (f"{inner}option {name} = {value};" for name, value in _options(enum.options))
    for value in enum.value:
        options = _options(value.options)
        shown = " [" + ", ".join(f"{name} = {each}" for name, each in options) + "]" if options else ""
        yield f"{inner}{value.name} = {value.number}{shown};"
    for bounds in enum.reserved_range:
        yield f"{inner}reserved {_span(bounds.start, bounds.end, 2147483647)};"
    if enum.reserved_name:
        yield f"{inner}reserved {', '.join(map(_quoted, enum.reserved_name))};"
    yield f"{indent}}}"


def _service(service):
    yield f"service {service.name} {{"
    for method in service.method:
        asked = ("stream " if method.client_streaming else "") + method.input_type
        told = ("stream " if method.server_streaming else "") + method.output_type
        options = _options(method.options)
        yield f"  rpc {method.name} ({asked}) returns ({told})" + (" {" if options else ";")
        if options:
            yield from (f"    option {name} = {value};" for name, value in options)
            yield "  }"
    yield "}"


def _extensions(fields, indent, syntax):
    for target in dict.fromkeys(field.extendee for field in fields):
        yield f"{indent}extend {target} {{"
        for field in fields:
            if field.extendee == target:
                yield from _field(field, indent + "  ", syntax, None, {})
        yield f"{indent}}}"


def _reserved(message, indent):
    if message.reserved_range:
        yield f"{indent}reserved {', '.join(_span(each.start, each.end - 1, _MAX_TAG) for each in message.reserved_range)};"
    if message.reserved_name:
        yield f"{indent}reserved {', '.join(map(_quoted, message.reserved_name))};"


def _span(first, last, most):
    return str(first) if first == last else f"{first} to {'max' if last >= most else last}"


def _options(options, skip=()):
    """[(name, value)] of the options in descriptor.proto; custom options need their definition and are dropped."""
    found = []
    for field, value in options.ListFields():
        if field.name in skip or field.is_extension or field.message_type is not None:
            continue
        values = value if field.is_repeated else [value]
        for each in values:
            if field.enum_type is not None:
                shown = field.enum_type.values_by_number[each].name
            elif field.type == field.TYPE_STRING:
                shown = _quoted(each)
            else:
                shown = str(each).lower() if isinstance(each, bool) else str(each)
            found.append((field.name, shown))
    return found


def _quoted(text):
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(each, each) for each in text) + '"'


def _json_name(name):
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)
