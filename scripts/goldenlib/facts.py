"""The cases about the client library: properties files, option types, the partitioner, record batches."""

import base64

from standalone import properties
from standalone.config import CLASS, PASSWORD, class_name, parse_type
from standalone.errors import ConfigError
from standalone.log import partitioner, record_batch
from standalone.wire import CREATE_TIME, NO_TIMESTAMP, ByteColumn

PARTITION_COUNTS = (1, 2, 3, 6, 12, 100)


def properties_file(case):
    try:
        return {"properties": properties.parse(case["text"])}
    except ConfigError as error:
        return {"error": "IllegalArgumentException", "message": str(error)}


def config_type(case):
    try:
        value = parse_type("k", case["value"], case["type"])
    except ConfigError as error:
        return {"error": "ConfigException", "message": str(error)}
    if case["type"] == PASSWORD and value is not None:
        return {"parsed": {"$password": value.value}}
    if case["type"] == CLASS and value is not None:
        return {"parsed": {"$class": class_name(value)}}
    return {"parsed": value}


def partition(case):
    keys = ByteColumn.of([base64.b64decode(case["key"])])
    counts = case.get("partition") or PARTITION_COUNTS
    chosen = {str(count): int(partitioner.partition_for_keys(keys, int(count))[0]) for count in counts}
    return {"murmur2": int(partitioner.murmur2(keys)[0]), "partition": chosen}


def batch(case):
    """What is in a batch; and again, after what was in it has been packed again."""
    data = base64.b64decode(case["batch"])
    header = record_batch.verify(data)
    (records,) = record_batch.unpack(data).records
    rows = _rows(records)
    again = bytearray(_packed_again(records, header))
    record_batch.set_base_offset(again, 0, header.base_offset, header.leader_epoch)
    if _rows(record_batch.unpack(again).records[0]) != rows:
        return {"error": "packed and unpacked again it holds other records"}
    return {
        "codec": header.codec,
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "timestampType": "CREATE_TIME" if header.timestamp_type == CREATE_TIME else "LOG_APPEND_TIME",
        "maxTimestamp": header.max_timestamp,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "transactional": header.is_transactional,
        "leaderEpoch": header.leader_epoch,
        "crc": header.crc,
        "records": rows,
    }


def _packed_again(records, header):
    return record_batch.pack(
        records,
        compression=header.codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        base_offset=header.base_offset,
        keep_offsets=True,
        transactional=header.is_transactional,
        timestamp_type=header.timestamp_type,
    )


def _rows(records):
    count = len(records)

    def texts(column):
        return [None] * count if column is None else [None if item is None else base64.b64encode(item).decode() for item in column]

    times = [NO_TIMESTAMP] * count if records.timestamps is None else records.timestamps.tolist()
    headers = records.headers or [()] * count
    return [
        {"offset": offset, "timestamp": time, "key": key, "value": value, "headers": _headers(row)}
        for offset, time, key, value, row in zip(records.offsets.tolist(), times, texts(records.keys), texts(records.values), headers)
    ]


def _headers(row):
    return [[name, None if value is None else base64.b64encode(value).decode()] for name, value in row or ()]


OUTCOMES = {"properties": properties_file, "config_types": config_type, "partitions": partition, "batches": batch}
