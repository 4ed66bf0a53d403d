"""Record batch headers (Kafka's message format v2): parse, verify the checksum, and set the fields that a broker sets.

Records are never decoded here. All numbers are big-endian. The checksum does not cover the base offset and the leader epoch, so a
broker can set them without a new checksum.
"""

import struct
from typing import NamedTuple

import google_crc32c
import numpy as np

from standalone import wire
from standalone.errors import CorruptBatchError
from standalone.log import compression

MAGIC = 2
PREFIX_BYTES = 12  # base offset and length; the length counts what follows
HEADER = struct.Struct(">qiibIhiqqqhii")
LEADER_EPOCH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, MAX_TIMESTAMP_AT = 12, 16, 17, 21, 35
CODEC_MASK, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT, DELETE_HORIZON_BIT = 0x07, 0x08, 0x10, 0x20, 0x40
MAX_INT = 2**31 - 1


class Header(NamedTuple):
    """The header of a record batch."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    first_timestamp: int  # the delete horizon if there is one; records' times are relative to it either way
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def size(self):
        """Size of the whole batch in bytes."""
        return PREFIX_BYTES + self.length

    @property
    def last_offset(self):
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self):
        return self.last_offset + 1

    @property
    def last_sequence(self):
        """Sequences wrap to 0 after 2^31-1."""
        return next_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self):
        """Name of the compression codec, or its number if unknown."""
        number = self.attributes & CODEC_MASK
        return compression.NAMES[number] if number < len(compression.NAMES) else number

    @property
    def timestamp_type(self):
        return wire.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else wire.CREATE_TIME

    @property
    def is_transactional(self):
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self):
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self):
        return bool(self.attributes & DELETE_HORIZON_BIT)



def next_sequence(sequence, count):
    """Return the producer's sequence `count` records after `sequence`; it wraps to 0 after 2^31-1."""
    return (sequence + count) & MAX_INT


def parse_header(buffer, at=0):
    """Parse the header of the batch at `at`. The buffer must hold the whole header; only the magic is checked."""
    rest = len(buffer) - at
    if rest > MAGIC_AT and buffer[at + MAGIC_AT] != MAGIC:
        raise wrong_magic(buffer[at + MAGIC_AT], f"at byte {at}")
    if rest < HEADER.size:
        raise CorruptBatchError(f"{rest} bytes are too few for a record batch: its header alone takes {HEADER.size}.")
    return Header._make(HEADER.unpack_from(buffer, at))


def headers(buffer):
    """Yield (position, header) of each whole batch in `buffer`; skip a truncated one at its end."""
    at = 0
    while at + HEADER.size <= len(buffer):
        header = parse_header(buffer, at)
        check_header(header)
        if at + header.size > len(buffer):
            return
        yield at, header
        at += header.size


def verify(buffer, at=0):
    """Verify the batch at `at`: header, length and checksum. Return its header; records are not decoded."""
    header = parse_header(buffer, at)
    check_header(header)
    if at + header.size > len(buffer):
        there = len(buffer) - at
        raise CorruptBatchError(f"The record batch at offset {header.base_offset} is {header.size} bytes long, but only {there} bytes are available.")
    found = checksum(np.frombuffer(buffer, np.uint8)[at : at + header.size])
    if found != header.crc:
        raise wrong_checksum(header.base_offset, header.crc, found)
    return header


def check_header(header):
    """Raise CorruptBatchError if the header contradicts itself."""
    if header.size < HEADER.size:
        raise wrong_length(header.base_offset, header.size)
    in_range = header.last_offset_delta >= 0 and 0 <= header.base_offset <= 2**63 - 2 - header.last_offset_delta
    if not in_range or not 0 <= header.count <= header.last_offset_delta + 1:
        raise CorruptBatchError(
            f"The header of the record batch at offset {header.base_offset} contradicts itself: "
            f"{header.count} records, the last of them {header.last_offset_delta} offsets after the first."
        )


def set_base_offset(buffer, at, offset, leader_epoch):
    """Set the base offset and leader epoch; the checksum stays valid."""
    struct.pack_into(">q", buffer, at, offset)
    struct.pack_into(">i", buffer, at + LEADER_EPOCH_AT, leader_epoch)


def set_append_time(buffer, at, timestamp_ms):
    """Set the batch's log append time and update its checksum."""
    header = parse_header(buffer, at)
    struct.pack_into(">h", buffer, at + ATTRIBUTES_AT, header.attributes | LOG_APPEND_TIME_BIT)
    struct.pack_into(">q", buffer, at + MAX_TIMESTAMP_AT, timestamp_ms)
    set_checksum(np.frombuffer(buffer, np.uint8)[at : at + header.size])


def checksum(batch):
    """CRC-32C of one batch, a uint8 array: the library reads arrays without a copy, but rejects memoryviews."""
    return google_crc32c.value(batch[ATTRIBUTES_AT:])


def set_checksum(batch):
    struct.pack_into(">I", batch, CRC_AT, checksum(batch))


def wrong_length(base_offset, size):
    return CorruptBatchError(
        f"The record batch at offset {base_offset} claims to be {size} bytes long, less than the {HEADER.size} of its header."
    )


def wrong_checksum(base_offset, expected, found):
    return CorruptBatchError(
        f"The record batch at offset {base_offset} is corrupt: "
        f"its checksum (CRC-32C) should be 0x{expected:08x}, its bytes make 0x{found:08x}."
    )


def wrong_magic(magic, where):
    if magic < MAGIC:
        return CorruptBatchError(
            f"The records {where} are in message format v{magic}, which is not supported: Kafka writes v{MAGIC} since 0.11, "
            "and nothing else since 4.0. Copy them into a new topic with a client that still reads it."
        )
    return CorruptBatchError(
        f"The records {where} are in message format v{magic}; v{MAGIC} is the newest known. They may be damaged."
    )
