"""The four compression codecs of record batches, by Kafka's numbers and names, in the framings of Java's clients."""

import functools
import struct

import cramjam
import lz4.block
import numpy as np

from standalone.errors import ConfigError, CorruptBatchError

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")  # ordered by their numbers in batch attributes
MAX_DECOMPRESSED_BYTES = 256 << 20
# Kafka's levels: gzip 1 to 9, -1 for its default; lz4 1 to 17, where the default 9 is the fast mode; zstd as in zstd.
GZIP_DEFAULT_LEVEL, LZ4_DEFAULT_LEVEL, ZSTD_DEFAULT_LEVEL = 6, 9, 3
LZ4_LEAST_SLOW_LEVEL, LZ4_TOP_LEVEL = 3, 12  # the library's levels

# The Java library's snappy framing: this header, then chunks of a big-endian length and a raw snappy block; the header may
# repeat.
SNAPPY_HEADER = struct.Struct(">8sii")
SNAPPY_MAGIC = b"\x82SNAPPY\x00"

# LZ4 frames with independent blocks, without checksums or sizes: the only kind that every Java consumer reads.
# Per block size: the frame header, whose last byte is a checksum of the two bytes before.
LZ4_HEADERS = {
    64 << 10: b"\x04\x22\x4d\x18\x60\x40\x82",
    256 << 10: b"\x04\x22\x4d\x18\x60\x50\xfb",
    1 << 20: b"\x04\x22\x4d\x18\x60\x60\x51",
    4 << 20: b"\x04\x22\x4d\x18\x60\x70\x73",
}
LZ4_END, LZ4_STORED = b"\0\0\0\0", 1 << 31


def number(name):
    """Return the codec's number; raise ConfigError for an unknown name."""
    if name not in NAMES:
        raise ConfigError.of({"compression.type": f"'{name}' is not a codec. Known are: {', '.join(NAMES)}."})
    return NAMES.index(name)


def compress(data, name, level=None):
    """Compress the bytes-like `data`; `level` as in the producer's compression.NAME.level, None for the default."""
    return _COMPRESS[number(name)](data, level)


def decompress(data, codec, limit=MAX_DECOMPRESSED_BYTES, expected=0):
    """Decompress `data` into a uint8 array; raise CorruptBatchError if it is damaged or larger than `limit` bytes.

    `expected` is an estimate of the size, which avoids repeated attempts.
    """
    if not 0 < codec < len(NAMES):
        raise CorruptBatchError(f"A record batch names compression codec {codec}. Known are 1 to 4: {', '.join(NAMES[1:])}.")
    if NAMES[codec] == "snappy":
        return _unsnap(data, limit)
    return _inflate(data, codec, limit, expected)


def _gzip(data, level):
    return cramjam.gzip.compress(data, level=GZIP_DEFAULT_LEVEL if level in (None, -1) else level)


def _snappy(data, level):
    block = cramjam.snappy.compress_raw(data)
    return b"".join((SNAPPY_HEADER.pack(SNAPPY_MAGIC, 1, 1), len(block).to_bytes(4, "big"), block))


def _lz4(data, level):
    if level in (None, LZ4_DEFAULT_LEVEL):
        block_size = next((size for size in LZ4_HEADERS if len(data) <= size), max(LZ4_HEADERS))
        block_of = _fast_lz4_block
    else:
        block_size = min(LZ4_HEADERS)
        level = min(max(level, LZ4_LEAST_SLOW_LEVEL), LZ4_TOP_LEVEL)
        block_of = functools.partial(_slow_lz4_block, level=level)
    chunks = (data[at : at + block_size] for at in range(0, len(data), block_size))
    return b"".join((LZ4_HEADERS[block_size], *map(block_of, chunks), LZ4_END))


def _fast_lz4_block(chunk):
    return _framed(cramjam.lz4.compress_block(chunk, store_size=False), chunk)


def _slow_lz4_block(chunk, level):
    return _framed(lz4.block.compress(chunk, mode="high_compression", compression=level, store_size=False), chunk)


def _framed(block, chunk):
    if len(block) < len(chunk):
        return len(block).to_bytes(4, "little") + memoryview(block)
    return (len(chunk) | LZ4_STORED).to_bytes(4, "little") + bytes(chunk)


def _zstd(data, level):
    return cramjam.zstd.compress(data, level=ZSTD_DEFAULT_LEVEL if level is None else level)


_COMPRESS = (lambda data, level: data, _gzip, _snappy, _lz4, _zstd)
_INTO = {1: cramjam.gzip.decompress_into, 3: cramjam.lz4.decompress_into, 4: cramjam.zstd.decompress_into}


def _inflate(data, codec, limit, expected):
    """Decompress into growing buffers, since the formats need not state their size; untouched memory costs nothing."""
    room = min(limit, max(expected, 8 * len(data), 1 << 12))
    while True:
        out = np.empty(room, np.uint8)
        try:
            return out[: _INTO[codec](data, out)]
        except cramjam.DecompressionError as error:
            if room == limit:
                raise CorruptBatchError(
                    f"A record batch's {NAMES[codec]} data of {len(data)} bytes is damaged, or holds more than {limit}: {error}."
                ) from error
            room = min(limit, 4 * room)


def _unsnap(data, limit):
    data = memoryview(data)
    if bytes(data[: len(SNAPPY_MAGIC)]) != SNAPPY_MAGIC:
        blocks = [data]
    else:
        blocks = list(_snappy_blocks(data))
    try:
        sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
        if sum(sizes) > limit:
            raise CorruptBatchError(
                f"A record batch's snappy data of {len(data)} bytes claims to hold {sum(sizes)}; the limit is {limit}."
            )
        out = np.empty(sum(sizes), np.uint8)
        at = 0
        for block, size in zip(blocks, sizes):
            if size:
                at += cramjam.snappy.decompress_raw_into(block, out[at : at + size])
    except cramjam.DecompressionError as error:
        raise CorruptBatchError(f"A record batch's snappy data of {len(data)} bytes is damaged: {error}.") from error
    return out


def _snappy_blocks(data):
    at = 0
    while at < len(data):
        if data[at : at + len(SNAPPY_MAGIC)] == SNAPPY_MAGIC:
            at += SNAPPY_HEADER.size
            continue
        length = int.from_bytes(data[at : at + 4], "big")
        block = data[at + 4 : at + 4 + length]
        if len(block) < length or len(data) - at < 4:
            raise CorruptBatchError(f"A record batch's snappy data of {len(data)} bytes ends within a block of {length} bytes.")
        yield block
        at += 4 + length
