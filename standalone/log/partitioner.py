"""The default partitioner of Kafka clients, for a whole column of keys."""

import numpy as np

from standalone.kernels import BYTES, INTS, LONGS, compiled, readonly, written

SEED = 0x9747B28C
NO_PARTITION = -1


def murmur2(keys):
    """Kafka's murmur2 hash of each key as an int32 array; 0 for null."""
    hashes = np.zeros(len(keys), np.int32)
    _murmur2(readonly(keys.data), readonly(keys.starts), readonly(keys.lengths), hashes)
    return hashes


def partition_for_keys(keys, partitions):
    """The partition of each key of a ByteColumn as an int32 array; NO_PARTITION for a null key."""
    chosen = (murmur2(keys) & 0x7FFFFFFF) % np.int32(partitions)
    chosen[keys.lengths < 0] = NO_PARTITION
    return chosen


@compiled
def _murmur2(data: BYTES, starts: LONGS, lengths: INTS, hashes: written(INTS)):
    multiplier = np.uint64(0x5BD1E995)
    low_word = np.uint64(0xFFFFFFFF)  # numba widens 32-bit products to 64 bits: truncate them explicitly
    for row in range(len(starts)):
        length = lengths[row]
        if length < 0:
            continue
        at = starts[row]
        state = np.uint64(SEED) ^ np.uint64(length)
        for _ in range(length // 4):
            word = (np.uint64(data[at]) | np.uint64(data[at + 1]) << np.uint64(8)
                    | np.uint64(data[at + 2]) << np.uint64(16) | np.uint64(data[at + 3]) << np.uint64(24))
            at += 4
            word = (word * multiplier) & low_word
            word = ((word ^ (word >> np.uint64(24))) * multiplier) & low_word
            state = ((state * multiplier) & low_word) ^ word
        rest = length % 4
        for byte in range(rest):
            state ^= np.uint64(data[at + byte]) << np.uint64(8 * byte)
        if rest:
            state = (state * multiplier) & low_word
        state = ((state ^ (state >> np.uint64(13))) * multiplier) & low_word
        state ^= state >> np.uint64(15)
        hashes[row] = np.int32(np.uint32(state))
