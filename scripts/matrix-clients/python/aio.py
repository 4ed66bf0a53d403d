"""aiokafka against one log: aio.py BOOTSTRAP TOPIC."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from operations import BASE, CODECS, NAMES, PER_CODEC, all_records, same, told, value

SECONDS = 40
bootstrap, topic = sys.argv[1:]
group, transactional = f"{topic}-group", f"{topic}-transactions"
PARTS = [TopicPartition(topic, number) for number in range(3)]


async def with_admin(work):
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        return await work(admin)
    finally:
        await admin.close()


async def create():
    async def made(admin):
        await admin.create_topics([NewTopic(name, 3, 1, topic_configs={"retention.ms": "-1"}) for name in (topic, transactional)])
        same("partitions", 3, len((await admin.describe_topics([topic]))[0]["partitions"]))

    await with_admin(made)


async def produce(producer, name, numbers):
    sent = [await producer.send(name, value(number), b"%d" % number, timestamp_ms=BASE + number, headers=[("number", b"%d" % number)])
            for number in numbers]
    await asyncio.gather(*sent)


async def write():
    for place, codec in enumerate(CODECS):
        compression = None if codec == "none" else codec
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, compression_type=compression) as producer:
            await produce(producer, topic, range(place * PER_CODEC, (place + 1) * PER_CODEC))


def consumer(*topics, **settings):
    return AIOKafkaConsumer(*topics, bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False, **settings)


async def consume(reader, count):
    found = []
    while len(found) < count:
        for batch in (await reader.getmany(timeout_ms=200)).values():
            found += [(each.key, each.value, each.headers) for each in batch]
    return found


async def read():
    async with consumer() as reader:
        reader.assign(PARTS)
        all_records(await consume(reader, PER_CODEC * len(CODECS)))


async def in_group():
    async with consumer(topic, group_id=group) as reader:
        all_records(await consume(reader, PER_CODEC * len(CODECS)))
        await reader.commit()
        same("committed", PER_CODEC * len(CODECS), sum([await reader.committed(part) or 0 for part in PARTS]))


async def times():
    async with consumer() as reader:
        found = await reader.offsets_for_times({part: BASE + 500 for part in PARTS})
        ends = await reader.end_offsets(PARTS)
        same("records after the time", 500, sum(ends[part] - each.offset for part, each in found.items() if each))


async def transaction():
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional) as producer:
        for number in range(3):
            await producer.begin_transaction()
            await produce(producer, transactional, range(number * 10, number * 10 + 10))
            if number == 1:
                await producer.send_offsets_to_transaction({PARTS[0]: 7}, transactional)
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
    async with consumer(transactional, group_id=transactional, isolation_level="read_committed") as reader:
        found = await consume(reader, 10)
        same("committed records", [b"%d" % number for number in range(10, 20)], sorted(key for key, _, _ in found))
        same("the offset in the transaction", 7, await reader.committed(PARTS[0]))


async def configs():
    async def altered(admin):
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "123456789"})])
        answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        found = {entry[0]: entry[1] for entry in answers[0].resources[0][4]}
        same("retention.ms", "123456789", found["retention.ms"])

    await with_admin(altered)


async def groups():
    async def looked(admin):
        same("listed", True, group in {each[0] for each in await admin.list_consumer_groups()})
        same("state", "Empty", (await admin.describe_consumer_groups([group]))[0].groups[0][2])

    await with_admin(looked)


async def delete():
    async def deleted(admin):
        await admin.delete_records({PARTS[0]: RecordsToDelete(before_offset=5)})
        await admin.delete_topics([topic, transactional])

    await with_admin(deleted)


def at_most(work):
    return lambda: asyncio.run(asyncio.wait_for(work(), SECONDS))


for name, work in zip(NAMES, (create, write, read, in_group, None, times, transaction, configs, groups, delete)):
    print(name, told(work and at_most(work)), flush=True)
