"""Reject nulls that Kafka's message definition does not allow; kafka-python decodes them as None anywhere."""

import functools

_TEXTS = ("texts",)  # or numbers: arrays of scalars


def refuse_nulls(request, version):
    """Raise ValueError if there is one."""
    _check(request, _plan(type(request), version))


@functools.cache
def _plan(kind, version):
    return _rows(kind._struct.fields, version) if hasattr(kind, "_struct") else ()  # what is read elsewhere has none (produce_messages.py)


def _rows(fields, version):
    """Return [(name, whether null is forbidden, rows, whether there are several)] of the fields to check."""
    rows = []
    for name, field in fields.items():
        if not field.for_version_q(version):
            continue
        inner = _rows(field.fields, version) if field.is_struct() or field.is_struct_array() else ()
        if field.is_array() and not field.is_struct_array():
            inner = _TEXTS
        strict = (field.is_array() or field.type_str in ("string", "bytes")) and not field.nullable_for_version_q(version)
        if strict or inner:
            rows.append((name, strict, inner, field.is_array()))
    return tuple(rows)


def _check(message, rows):
    for name, strict, inner, is_array in rows:
        value = getattr(message, name)
        if value is None:
            if strict:
                raise ValueError(f"{name} is null")
        elif inner == _TEXTS:
            if None in value:
                raise ValueError(f"{name} holds null")
        elif inner:
            for each in value if is_array else (value,):
                _check(each, inner)
