"""Values of records, one by one, as what Arrow takes for the columns of a DataFrame."""

import orjson
import pyarrow as pa

from standalone.data.scalars import Instant
from standalone.data.struct import Struct


def field_of(value, name):
    if isinstance(value, Struct):
        field = value.schema.field(name)
        if field is not None:
            return value.get(name)
        value = value.to_dict()
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    folded = name.casefold()
    return next((each for key, each in value.items() if isinstance(key, str) and key.casefold() == folded), None)


def fit(kind):
    """A function of a value that is not null, as records hold it, which makes what Arrow takes for that type."""
    if pa.types.is_struct(kind):
        parts = [(field.name, fit(field.type)) for field in kind]

        def fit_struct(value):
            if not isinstance(value, (dict, Struct)):
                raise TypeError(f"a {type(value).__name__}")
            found = ((name, fit_part, field_of(value, name)) for name, fit_part in parts)
            return {name: None if each is None else fit_part(each) for name, fit_part, each in found}

        return fit_struct
    if pa.types.is_map(kind):
        fit_key, fit_item = fit(kind.key_type), fit(kind.item_type)

        def fit_map(value):
            items = value.to_dict() if isinstance(value, Struct) else value
            return [(fit_key(key), None if item is None else fit_item(item)) for key, item in items.items()]

        return fit_map
    if pa.types.is_list(kind):
        fit_item = fit(kind.value_type)
        return lambda value: [None if item is None else fit_item(item) for item in _listed(value)]
    if pa.types.is_string(kind):
        return lambda value: value if type(value) is str else _text(value)
    if pa.types.is_boolean(kind):
        return _boolean
    if pa.types.is_integer(kind):
        return lambda value: value if type(value) is int else _whole(value)
    if pa.types.is_floating(kind):
        return lambda value: float(value)
    if pa.types.is_decimal(kind):
        import decimal

        quantum = decimal.Decimal(1).scaleb(-kind.scale)
        return lambda value: decimal.Decimal(str(value)).quantize(quantum, rounding=decimal.ROUND_HALF_UP)
    if pa.types.is_timestamp(kind):
        return lambda value: _instant(value) * 1000
    if pa.types.is_date(kind):
        return lambda value: _days(value)
    if pa.types.is_binary(kind):
        return _bytes
    raise ValueError(f"records hold no {kind}")


def _listed(value):
    if not isinstance(value, list):
        raise TypeError(f"a {type(value).__name__}")
    return value


def _text(value):
    """What a text column has of another value: its JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Instant):
        return str(value.ms)
    return orjson.dumps(_plain(value), default=str).decode() if isinstance(value, (dict, list, Struct)) else str(value)


def _plain(value):
    if isinstance(value, Struct):
        return {name: _plain(item) for name, item in value.to_dict().items()}
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Instant):
        return value.ms
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _boolean(value):
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise TypeError(f"a {type(value).__name__}")


def _bytes(value):
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"a {type(value).__name__}")  # of a number Python would make as many zeros
    return bytes(value)


def _whole(value):
    if isinstance(value, bool):
        raise TypeError("a bool")
    if isinstance(value, Instant):
        return value.ms
    return int(value)


def _instant(value):
    if isinstance(value, Instant):
        return value.ms
    if isinstance(value, str):
        import datetime

        moment = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        return Instant.of(moment).ms
    return _whole(value)


def _days(value):
    import datetime

    if isinstance(value, Instant):
        return value.ms // 86_400_000
    if isinstance(value, str):
        return (datetime.date.fromisoformat(value) - datetime.date(1970, 1, 1)).days
    return _whole(value)


def short(value):
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
