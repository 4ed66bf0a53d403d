"""Transaction markers: a control batch with one record, commit or abort, ends a transaction in a partition."""

from struct import Struct

import numpy as np

from standalone.log import batch_header, varint

ABORT, COMMIT = 0, 1
_KEY = Struct(">hh")  # version, type
_VALUE = Struct(">hi")  # version, the coordinator's epoch
_TYPE_AT = batch_header.HEADER.size + 5 + 2  # one byte each: length, attributes, time, offset, the key's length; then the version


def control_batch(producer_id, epoch, commit, now_ms):
    key, value = _KEY.pack(0, COMMIT if commit else ABORT), _VALUE.pack(0, 0)
    record = b"\0\0\0" + varint.encode(len(key)) + key + varint.encode(len(value)) + value + b"\0"
    body = varint.encode(len(record)) + record
    batch = bytearray(batch_header.HEADER.size) + body
    attributes = batch_header.TRANSACTIONAL_BIT | batch_header.CONTROL_BIT
    length = len(batch) - batch_header.PREFIX_BYTES
    batch_header.HEADER.pack_into(
        batch, 0, 0, length, -1, batch_header.MAGIC, 0, attributes, 0, now_ms, now_ms, producer_id, epoch, -1, 1
    )
    batch_header.set_checksum(np.frombuffer(batch, np.uint8))
    return batch


def is_abort(batch):
    """Whether a control batch is an abort marker."""
    return len(batch) > _TYPE_AT + 1 and batch[_TYPE_AT : _TYPE_AT + 2] == ABORT.to_bytes(2, "big")
