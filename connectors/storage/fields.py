"""Look up a field of values by a dotted path: as a column if possible, else row by row."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from standalone import DataError, Struct


def field_column(batch, path):
    """Return (schema, Arrow array) of the field, or None if it must be looked up by rows."""
    try:
        schema, array = batch.arrow()
    except (ValueError, TypeError, OverflowError):
        return None
    for name in path.split("."):
        field = schema.field(name) if schema.type == "struct" else None
        if field is None:
            return None
        schema, array = field.schema, pc.struct_field(array, [field.index])
    return schema, array


def field_value(value, path):
    """Return (whether it exists, the value) of one record's field."""
    for name in path.split("."):
        if isinstance(value, Struct):
            if value.schema.field(name) is None:
                return False, None
            value = value.get(name)
        elif isinstance(value, dict):
            if name not in value:
                return False, None
            value = value[name]
        else:
            return False, None
    return True, value


def missing(path, batch):
    return DataError(f"There is no field '{path}' in a record of topic {batch.topic}. Check partition.field.name and timestamp.field.")


def texts_of(array):
    """Return (index of each row's string, distinct strings)."""
    coded = array.dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    return np.asarray(coded.indices), coded.dictionary.to_pylist()
