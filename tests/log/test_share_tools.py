"""Java's own share consumers and tools, on the embedded log and on a real Kafka."""

import re
import uuid

from tests.log.broker_clients import RawClient, batch, make_topic, wait_for

TOOLS = "org.apache.kafka.tools"
SHARE_GROUPS = f"{TOOLS}.consumer.group.ShareGroupCommand"
COUNT = 600


def rows_of(said, group):
    return [line.split() for line in said.splitlines() if line.startswith(group)]


def test_javas_tools_read_describe_reset_and_delete_a_share_group(broker, java):
    group = f"tools-{uuid.uuid4()}"
    with RawClient(broker) as client:
        assert make_topic(client, group, 2).error_code == 0
        for number in range(0, COUNT, 100):
            values = [b"%d" % value for value in range(number, number + 100)]
            data = batch(values, compression="lz4" if number % 200 else "none")
            wait_for(lambda data=data, part=number // 100 % 2: client.produce(group, data, partition=part).error_code == 0)
    server = ("--bootstrap-server", broker)
    entity = ("--entity-type", "groups", "--entity-name", group)
    java("kafka.admin.ConfigCommand", *server, "--alter", *entity, "--add-config", "share.auto.offset.reset=earliest")
    assert "share.auto.offset.reset=earliest" in java("kafka.admin.ConfigCommand", *server, "--describe", *entity)
    asked = ("--topic", group, "--group", group, "--max-messages", str(COUNT), "--timeout-ms", "40000")
    said = java(f"{TOOLS}.consumer.ConsoleShareConsumer", *server, *asked)
    assert sorted(map(int, said.split())) == list(range(COUNT))

    assert group in java(SHARE_GROUPS, *server, "--list").split()
    rows = rows_of(java(SHARE_GROUPS, *server, "--describe", "--group", group), group)
    assert sorted((row[2], row[4]) for row in rows) == [("0", "0"), ("1", "0")]  # partition and lag
    assert "Empty" in java(SHARE_GROUPS, *server, "--describe", "--state", "--group", group)
    assert re.search(rf"{group}\s+Share", java(f"{TOOLS}.GroupsCommand", *server, "--list"))
    java(SHARE_GROUPS, *server, "--reset-offsets", "--to-earliest", "--execute", "--topic", group, "--group", group)
    assert {row[4] for row in rows_of(java(SHARE_GROUPS, *server, "--describe", "--group", group), group)} == {"300"}
    said = java(
        f"{TOOLS}.ShareConsumerPerformance", *server, "--topic", group, "--group", group, "--num-records", str(COUNT), "--timeout", "40000"
    )
    assert re.search(rf" {COUNT},", said), said
    java(SHARE_GROUPS, *server, "--delete-offsets", "--topic", group, "--group", group)
    assert "successful" in java(SHARE_GROUPS, *server, "--delete", "--group", group)
    assert group not in java(SHARE_GROUPS, *server, "--list").split()
