"""For the tests of share groups: a member of one, request by request."""

import time
import uuid

from kafka.protocol import admin, metadata

from standalone.log.broker import messages
from standalone.log.broker.in_flight import ACCEPT
from tests.log.broker_clients import RawClient, values_of
from tests.suite.patience import PATIENCE_SECONDS

GROUP = 32  # a kind of config resource


def topic_id(client, topic):
    Topic = metadata.MetadataRequest.MetadataRequestTopic
    request = metadata.MetadataRequest(version=12, topics=[Topic(name=topic, topic_id=uuid.UUID(int=0))], allow_auto_topic_creation=False)
    return client.call(request, metadata.MetadataResponse).topics[0].topic_id


def configure(client, group, **configs):
    """Set configs of the group; the error code."""
    Resource = admin.IncrementalAlterConfigsRequest.AlterConfigsResource
    pairs = [Resource.AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value) for name, value in configs.items()]
    resource = Resource(resource_type=GROUP, resource_name=group, configs=pairs)
    request = admin.IncrementalAlterConfigsRequest(version=1, resources=[resource], validate_only=False)
    return client.call(request, admin.IncrementalAlterConfigsResponse).responses[0].error_code


def described(client, group):
    request = messages.ShareGroupDescribeRequest(version=1, group_ids=[group], include_authorized_operations=False)
    return client.call(request, messages.ShareGroupDescribeResponse).groups[0]


def offsets(client, group):
    """{(topic, partition): (start offset, lag)}"""
    Group = messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    request = messages.DescribeShareGroupOffsetsRequest(version=1, groups=[Group(group_id=group, topics=None)])
    found = client.call(request, messages.DescribeShareGroupOffsetsResponse).groups[0]
    assert found.error_code == 0, found
    return {(topic.topic_name, part.partition_index): (part.start_offset, part.lag) for topic in found.topics for part in topic.partitions}


def alter_offset(client, group, offset, topic="t"):
    """The answer."""
    Topic = messages.AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    part = Topic.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=offset)
    request = messages.AlterShareGroupOffsetsRequest(version=0, group_id=group, topics=[Topic(topic_name=topic, partitions=[part])])
    return client.call(request, messages.AlterShareGroupOffsetsResponse)


def delete_offsets(client, group, topic="t"):
    """The answer."""
    Topic = messages.DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
    request = messages.DeleteShareGroupOffsetsRequest(version=0, group_id=group, topics=[Topic(topic_name=topic)])
    return client.call(request, messages.DeleteShareGroupOffsetsResponse)


class ShareMember:
    """A member of a share group that reads one topic. `join` begins; what `fetch` gives is to be acknowledged."""

    def __init__(self, bootstrap, group="g", topic="t", partitions=(0,), version=2):
        self.client = RawClient(bootstrap)
        self.group, self.topic, self.version = group, topic, version
        self.id = str(uuid.uuid4())
        self.epoch = 0  # of the member
        self.session = 0  # epoch of the share session
        self.partitions = list(partitions)
        self.topic_id = topic_id(self.client, topic)
        self.assigned = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.sock.close()

    # --- The member

    def heartbeat(self, epoch=None, topics=None):
        """The answer, taken in."""
        sent = self.epoch if epoch is None else epoch
        request = messages.ShareGroupHeartbeatRequest(
            version=1, group_id=self.group, member_id=self.id, member_epoch=sent, subscribed_topic_names=topics
        )
        answer = self.client.call(request, messages.ShareGroupHeartbeatResponse)
        if answer.error_code == 0 and sent >= 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {each.topic_id: sorted(each.partitions) for each in answer.assignment.topic_partitions}
        return answer

    def join(self):
        """Until it has partitions: a coordinator may be on its way still. A real Kafka makes the groups' topic when it is asked for one."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        request = metadata.FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=[self.group])
        self.client.call(request, metadata.FindCoordinatorResponse)
        answer = self.heartbeat(0, [self.topic])
        while not self.assigned:
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)
            answer = self.heartbeat(self.epoch, [self.topic])
        return self

    def leave(self):
        return self.heartbeat(-1).error_code

    # --- Records

    def request(self, acknowledged=(), wait_ms=0, most=500, is_exact=False, is_renewal=False, session=None, max_bytes=1 << 20):
        """A ShareFetch; `acknowledged`: [(partition, first, last, acknowledge types)]."""
        Topic = messages.ShareFetchRequest.FetchTopic
        parts = {number: [] for number in (self.partitions if self.session == 0 else ())}
        for number, first, last, types in acknowledged:
            batch = Topic.FetchPartition.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            parts.setdefault(number, []).append(batch)
        partitions = [Topic.FetchPartition(partition_index=number, acknowledgement_batches=batches) for number, batches in parts.items()]
        return messages.ShareFetchRequest(
            version=self.version,
            group_id=self.group,
            member_id=self.id,
            share_session_epoch=self.session if session is None else session,
            max_wait_ms=0 if is_renewal else wait_ms,
            min_bytes=0 if is_renewal else 1,
            max_bytes=0 if is_renewal else max_bytes,
            max_records=0 if is_renewal else most,
            batch_size=most,
            share_acquire_mode=int(is_exact),
            is_renew_ack=is_renewal,
            topics=[Topic(topic_id=self.topic_id, partitions=partitions)] if partitions else [],
            forgotten_topics_data=[],
        )

    def send_fetch(self, *arguments, **options):
        self.client.send(self.request(*arguments, **options))

    def fetched(self):
        """The answer to `send_fetch`."""
        answer = self.client.receive(messages.ShareFetchResponse, self.version)
        if answer.error_code == 0:
            self.session += 1
        return answer

    def ask(self, *arguments, **options):
        self.send_fetch(*arguments, **options)
        return self.fetched()

    def fetch(self, *arguments, **options):
        """[(offset, value, deliveries)] that it has now, of partition 0."""
        return acquired(self.ask(*arguments, **options))

    def fetch_some(self):
        """As `fetch`, until there is something."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := self.fetch(wait_ms=500)):
            assert time.monotonic() < deadline, "no records came"
        return found

    def acknowledge(self, first, last, *types, partition=0, session=None, is_renewal=False):
        """The error code of the partition, or of the whole."""
        Topic = messages.ShareAcknowledgeRequest.AcknowledgeTopic
        batch = Topic.AcknowledgePartition.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types or [ACCEPT]))
        part = Topic.AcknowledgePartition(partition_index=partition, acknowledgement_batches=[batch])
        request = messages.ShareAcknowledgeRequest(
            version=self.version,
            group_id=self.group,
            member_id=self.id,
            share_session_epoch=self.session if session is None else session,
            is_renew_ack=is_renewal,
            topics=[Topic(topic_id=self.topic_id, partitions=[part])],
        )
        answer = self.client.call(request, messages.ShareAcknowledgeResponse)
        if answer.error_code:
            return answer.error_code
        self.session += 1
        return answer.responses[0].partitions[0].error_code

    def end_session(self, acknowledged=()):
        answer = self.ask(acknowledged, session=-1)
        self.session = 0
        return answer


def acquired(answer, partition=0):
    """[(offset, value, deliveries)]"""
    assert answer.error_code == 0, answer
    found = []
    for topic in answer.responses:
        for part in topic.partitions:
            if part.partition_index == partition:
                assert part.error_code == 0, part
                counts = {o: run.delivery_count for run in part.acquired_records for o in range(run.first_offset, run.last_offset + 1)}
                found += [(offset, value, counts[offset]) for offset, value in values_of(part.records or b"") if offset in counts]
    return found
