"""Whether a request has nulls where Kafka's definition of it allows none; kafka-python reads them as None wherever they are."""

import functools

_TEXTS = ("texts",)  # or numbers: what is in an array of no fields of its own


def refuse_nulls(request, version):
    """ValueError: there is one."""
    _check(request, _plan(type(request), version))


@functools.cache
def _plan(kind, version):
    return _rows(kind._struct.fields, version) if hasattr(kind, "_struct") else ()  # what is read elsewhere has none (produce_messages.py)


def _rows(fields, version):
    """[(name, whether it may not be null, the rows of what is in it, whether that are several)] of the fields that are worth a look."""
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
