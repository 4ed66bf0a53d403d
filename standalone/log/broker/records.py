"""Validate the records of a batch: a valid checksum only proves that nothing changed in transit.

Nothing is copied; a compressed batch is decompressed for this check only. A batch that no consumer could decode is rejected: in the log it
would block every consumer at its offset.
"""

import functools

from standalone.errors import CorruptBatchError
from standalone.log import batch_header
from standalone.log.broker.refusal import Refusal, codes

MAX_INFLATED = 128 << 20
_FEW = 200  # plain Python checks this many within a millisecond


class Preparation:
    """A job that loads what `check_records` needs in the background; otherwise the first batch, and all requests after it, would wait."""

    def run(self):
        from standalone.log import record_batch, record_loops  # noqa: F401

        if record_loops.check_records.is_there():
            record_loops.check_records.load()


def check_records(partition, batch, header, keyed):
    """Raise Refusal if a record cannot be decoded, or, with `keyed`, has no key, which compaction requires.

    `batch` is an array that is not written to. Until the machine code is there only small batches are looked at, for the others wait
    meanwhile; keys are looked for in all.
    """
    readonly, compression, record_batch, record_loops = _tools()
    if not keyed and header.count > _FEW and not record_loops.check_records.is_there():
        return
    data, at = batch, batch_header.HEADER.size
    try:
        if codec := header.attributes & batch_header.CODEC_MASK:
            body = data[at:]
            data, at = readonly(compression.decompress(body, codec, MAX_INFLATED, int(1.2 * partition.inflation * len(body)))), 0
            partition.inflation = len(data) / max(len(body), 1)
    except CorruptBatchError as error:
        raise Refusal(codes.CorruptRecordError, f"{partition}: {error}") from error
    wrong, record = record_loops.check_records(data, at, header.count, keyed)
    if wrong == record_loops.NO_KEY:
        raise Refusal(codes.InvalidRecordError, f"{partition}: a compacted topic accepts only records with a key.")
    if wrong:
        what = record_batch.DAMAGE[wrong]
        raise Refusal(codes.CorruptRecordError, f"{partition}: record {record} of the {header.count} in the batch is damaged: {what}.")


@functools.cache
def _tools():
    """Imported with the first batch, because they import numba."""
    from standalone.kernels import readonly
    from standalone.log import compression, record_batch, record_loops

    return readonly, compression, record_batch, record_loops
