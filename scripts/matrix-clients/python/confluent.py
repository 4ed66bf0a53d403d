"""confluent-kafka (librdkafka) against one log: confluent.py BOOTSTRAP TOPIC."""

import sys
import time

from confluent_kafka import AcknowledgeType, Consumer, ConsumerGroupTopicPartitions, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from operations import BASE, CODECS, NAMES, PER_CODEC, all_records, same, told, value

SECONDS = 40
bootstrap, topic = sys.argv[1:]
group, transactional = f"{topic}-group", f"{topic}-transactions"
admin = AdminClient({"bootstrap.servers": bootstrap})


def create():
    for future in admin.create_topics([NewTopic(name, 3, 1, config={"retention.ms": "-1"}) for name in (topic, transactional)]).values():
        future.result(SECONDS)
    same("partitions", 3, len(admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions))


def produce(producer, name, numbers):
    failures = []
    for number in numbers:
        producer.produce(name, value(number), b"%d" % number, headers=[("number", b"%d" % number)], timestamp=BASE + number,
                         on_delivery=lambda error, _: error and failures.append(error))
    same("left", 0, producer.flush(SECONDS))
    same("failures", [], failures)


def write():
    for place, codec in enumerate(CODECS):
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": codec, "linger.ms": 20})
        produce(producer, topic, range(place * PER_CODEC, (place + 1) * PER_CODEC))


def consumer(**settings):
    config = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    return Consumer({**config, **{name.replace("_", "."): each for name, each in settings.items()}})


def consume(reader, count):
    found, deadline = [], time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < deadline:
        for message in reader.consume(1000, 0.2):
            same("error", None, message.error())
            found.append((message.key(), message.value(), message.headers()))
    return found


def read():
    reader = consumer()
    reader.assign([TopicPartition(topic, number, 0) for number in range(3)])
    all_records(consume(reader, PER_CODEC * len(CODECS)))
    reader.close()


def in_group():
    for protocol, name in (("classic", group), ("consumer", f"{group}-848")):
        reader = consumer(group_id=name, group_protocol=protocol)
        reader.subscribe([topic])
        all_records(consume(reader, PER_CODEC * len(CODECS)))
        reader.commit(asynchronous=False)
        committed = reader.committed([TopicPartition(topic, number) for number in range(3)], SECONDS)
        same("committed", PER_CODEC * len(CODECS), sum(each.offset for each in committed))
        reader.close()


def share():
    shared = f"{topic}-share"
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, shared, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)
    with ShareConsumer({"bootstrap.servers": bootstrap, "group.id": shared, "share.acknowledgement.mode": "explicit"}) as reader:
        reader.subscribe([topic])
        accepted, again = [], set()
        deadline = time.monotonic() + SECONDS
        while len(accepted) < PER_CODEC * len(CODECS) and time.monotonic() < deadline:
            for message in reader.poll(0.5):
                same("error", None, message.error())
                is_first = message.key().endswith(b"7") and message.key() not in again
                reader.acknowledge(message, AcknowledgeType.RELEASE if is_first else AcknowledgeType.ACCEPT)
                if is_first:
                    again.add(message.key())
                else:
                    accepted.append((message.key(), message.value(), message.headers()))
            same("acknowledged", {None}, {None, *reader.commit_sync(SECONDS).values()})
    all_records(accepted)
    same("released", PER_CODEC * len(CODECS) // 10, len(again))


def times():
    reader = consumer()
    found = reader.offsets_for_times([TopicPartition(topic, number, BASE + 500) for number in range(3)], SECONDS)
    ends = [reader.get_watermark_offsets(TopicPartition(topic, number), SECONDS)[1] for number in range(3)]
    same("records after the time", 500, sum(end - each.offset for end, each in zip(ends, found) if each.offset >= 0))
    reader.close()


def transaction():
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional})
    producer.init_transactions(SECONDS)
    reads = consumer()
    for number, end in enumerate((producer.abort_transaction, producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        produce(producer, transactional, range(number * 10, number * 10 + 10))
        if number == 1:
            producer.send_offsets_to_transaction([TopicPartition(topic, 0, 7)], reads.consumer_group_metadata(), SECONDS)
        end(SECONDS)
    reads.close()
    reader = consumer(isolation_level="read_committed")
    reader.assign([TopicPartition(transactional, number, 0) for number in range(3)])
    same("committed records", [b"%d" % number for number in range(10, 20)], sorted(key for key, _, _ in consume(reader, 10)))
    same("the offset in the transaction", 7, reader.committed([TopicPartition(topic, 0)], SECONDS)[0].offset)
    reader.close()


def configs():
    entry = ConfigEntry("retention.ms", "123456789", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)
    asked = ConfigResource(ResourceType.TOPIC, topic)
    same("retention.ms", "123456789", admin.describe_configs([asked])[asked].result(SECONDS)["retention.ms"].value)


def groups():
    same("listed", True, group in {each.group_id for each in admin.list_consumer_groups().result(SECONDS).valid})
    same("state", "EMPTY", admin.describe_consumer_groups([group])[group].result(SECONDS).state.name)
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(SECONDS).topic_partitions
    same("offset", True, any(each.topic == topic for each in offsets))
    admin.delete_consumer_groups([group])[group].result(SECONDS)


def delete():
    place = TopicPartition(topic, 0, 5)
    same("start", 5, admin.delete_records([place])[place].result(SECONDS).low_watermark)
    for future in admin.delete_topics([topic, transactional]).values():
        future.result(SECONDS)


for name, work in zip(NAMES, (create, write, read, in_group, share, times, transaction, configs, groups, delete)):
    print(name, told(work), flush=True)
