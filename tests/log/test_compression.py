"""Compression: every codec there and back, in the framings of other writers, and with what is damaged."""

import gzip
import os
import random
import zlib

import cramjam
import lz4.frame
import numpy as np
import pytest
from pytest import param

from standalone.errors import ConfigError, CorruptBatchError
from standalone.log.compression import NAMES, SNAPPY_HEADER, SNAPPY_MAGIC, compress, decompress, number

TEXT = b"".join(b"%d the quick brown fox jumps over the lazy dog\n" % (line * 7919 % 99991) for line in range(9000))
NOISE = os.urandom(300_000)
CODECS = NAMES[1:]


def back(data, name, **options):
    return decompress(data, number(name), **options).tobytes()


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize(
    "data",
    [
        param(b"", id="nothing"),
        param(b"x", id="a byte"),
        param(TEXT, id="text"),
        param(NOISE, id="noise"),
        param(TEXT * 15, id="more than the largest lz4 block"),
        param(bytes(5 << 20), id="zeros"),
    ],
)
def test_what_is_compressed_is_decompressed(name, data):
    array = np.frombuffer(data, np.uint8)
    assert back(np.frombuffer(compress(array, name), np.uint8), name) == data


@pytest.mark.parametrize(
    "name, level", [("gzip", -1), ("gzip", 1), ("gzip", 9), ("lz4", 1), ("lz4", 9), ("lz4", 17), ("zstd", -5), ("zstd", 22)]
)
def test_levels(name, level):
    for data in (TEXT, NOISE):
        assert back(compress(data, name, level), name) == data


def test_a_higher_level_makes_it_smaller():
    words = [b"%x" % (number * 2654435761 % 65521) for number in range(500)]
    prose = b" ".join(random.Random(1).choices(words, k=50_000))
    for name, low, high in (("gzip", 1, 9), ("lz4", 9, 17), ("zstd", 1, 19)):
        assert len(compress(prose, name, high)) < len(compress(prose, name, low))


@pytest.mark.parametrize("level", [None, 12])
@pytest.mark.parametrize("size", [1000, 100_000, 300_000, 2 << 20, 5 << 20])
def test_lz4_frames_are_of_independent_blocks_without_checksums_as_java_reads_them(size, level):
    frame = bytes(compress(bytes(size), "lz4", level))
    told = lz4.frame.get_frame_info(frame)
    assert not told["block_linked"] and not told["content_checksum"] and not told["block_checksum"]
    assert lz4.frame.decompress(frame) == bytes(size)


def xerial(data, block_size=32 << 10):
    blocks = (bytes(cramjam.snappy.compress_raw(data[at : at + block_size])) for at in range(0, len(data), block_size))
    return SNAPPY_HEADER.pack(SNAPPY_MAGIC, 1, 1) + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)


@pytest.mark.parametrize(
    "name, data",
    [
        param("gzip", gzip.compress(TEXT), id="gzip of another library"),
        param("gzip", gzip.compress(TEXT[:5000]) + gzip.compress(TEXT[5000:]), id="two gzip members"),
        param("snappy", bytes(cramjam.snappy.compress_raw(TEXT)), id="raw snappy"),
        param("snappy", xerial(TEXT), id="snappy in blocks of 32 KiB"),
        param("snappy", xerial(TEXT[:70_000]) + xerial(TEXT[70_000:]), id="two snappy streams"),
        param("lz4", lz4.frame.compress(TEXT, block_linked=False), id="lz4 of another library"),
        param("lz4", lz4.frame.compress(TEXT, content_checksum=True, block_checksum=True), id="linked lz4 with checksums and size"),
        param("lz4", lz4.frame.compress(TEXT[:9]) + lz4.frame.compress(TEXT[9:]), id="two lz4 frames"),
        param("zstd", bytes(cramjam.zstd.compress(TEXT[:9])) + bytes(cramjam.zstd.compress(TEXT[9:])), id="two zstd frames"),
    ],
)
def test_framings_of_other_writers(name, data):
    assert back(data, name) == TEXT


@pytest.mark.parametrize("name", CODECS)
def test_what_is_damaged_is_named(name):
    whole = bytes(compress(TEXT, name))
    with pytest.raises(CorruptBatchError, match=f"{name} data of {len(whole) // 2} bytes"):
        back(whole[: len(whole) // 2], name, limit=1 << 20)


def test_a_snappy_block_that_claims_too_much_is_not_given_memory():
    claim = b"\xff\xff\xff\xff\x07abc"  # 2 GiB
    with pytest.raises(CorruptBatchError, match="claims to hold 2147483647; the limit is 1000000"):
        back(claim, "snappy", limit=1_000_000)


def test_a_good_guess_and_a_bad_one_give_the_same():
    packed = gzip.compress(bytes(3 << 20))
    assert back(packed, "gzip", expected=3 << 20) == back(packed, "gzip", expected=1) == zlib.decompress(packed, 31)


def test_a_codec_that_nobody_knows_is_refused():
    with pytest.raises(ConfigError, match="'zip' is not a codec"):
        number("zip")
    with pytest.raises(CorruptBatchError, match="codec 5"):
        decompress(b"", 5)
