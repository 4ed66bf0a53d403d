"""Whether the records of a batch are what its header says: a checksum that fits says only that nothing was changed on the way.

Nothing is copied, and what is compressed is opened for this look alone. What nobody could read is refused here: in the log it would keep
every reader from what is after it.
"""

import functools

from standalone.errors import CorruptBatchError
from standalone.log import batch_header
from standalone.log.broker.refusal import Refusal, codes

MAX_INFLATED = 128 << 20
_FEW = 200  # records that plain Python has looked at in a millisecond


class Preparation:
    """A job: what `check_records` needs is loaded beside, for the first batch would wait for it, and all others after it."""

    def run(self):
        from standalone.log import record_batch, record_loops  # noqa: F401

        if record_loops.check_records.is_there():
            record_loops.check_records.load()


def check_records(partition, batch, header, keyed):
    """Refusal: there is a record that cannot be read, or, if `keyed`, one without a key, of which a compaction would not know what it is of.

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
        raise Refusal(codes.InvalidRecordError, f"{partition}: a record without a key cannot be kept in a compacted topic.")
    if wrong:
        what = record_batch.DAMAGE[wrong]
        raise Refusal(codes.CorruptRecordError, f"{partition}: record {record} of the {header.count} in the batch is damaged: {what}.")


@functools.cache
def _tools():
    """With the first batch: numba comes with them."""
    from standalone.kernels import readonly
    from standalone.log import compression, record_batch, record_loops

    return readonly, compression, record_batch, record_loops
