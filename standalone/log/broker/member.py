"""A member of a consumer group, what it is answered, and what a group has committed."""

from typing import NamedTuple


class Joined(NamedTuple):
    error: int
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple = ()  # (member id, instance id, metadata); the leader alone is told


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
        self.protocols = ()  # (name, metadata), the liked one first
        self.assignment = b""
        self.deadline = 0.0  # of the session
        self.on_joined = None  # waits for the group to be complete
        self.on_synced = None  # waits for the leader's division

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
