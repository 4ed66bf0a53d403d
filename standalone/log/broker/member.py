"""A member of a consumer group, the results of joins and syncs, and committed offsets."""

from typing import NamedTuple


class Joined(NamedTuple):
    error: int
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple = ()  # sent to the leader only


class Synced(NamedTuple):
    error: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Committed(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str | None


class Member:
    def __init__(self, member_id, instance_id, client_id, host):
        self.id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.host = host
        self.session_ms = self.rebalance_ms = 0
        self.protocols = ()  # (name, metadata), preferred first
        self.assignment = b""
        self.deadline = 0.0  # end of the session
        self.on_joined = None  # callback of a pending JoinGroup
        self.on_synced = None  # callback of a pending SyncGroup

    def metadata(self, protocol):
        return dict(self.protocols).get(protocol, b"")

    def answer_join(self, joined):
        reply, self.on_joined = self.on_joined, None
        if reply:
            reply(joined)

    def answer_sync(self, synced):
        reply, self.on_synced = self.on_synced, None
        if reply:
            reply(synced)
