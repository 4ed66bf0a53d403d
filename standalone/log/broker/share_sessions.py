"""Share sessions: a session has the partitions that a member of a share group fetches, so each request names only changes. A session ends when
the member closes it, or with its connection. The records that the member has acquired are then released.
"""

from standalone.log.broker.refusal import Refusal, ShareSessionLimitReached, codes

INITIAL, FINAL = 0, -1  # epochs of the first and the last request
MAX_SESSIONS = 2000  # Kafka's default of group.share.max.share.sessions
_LAST_EPOCH = (1 << 31) - 1


class ShareSession:
    def __init__(self):
        self.epoch = INITIAL + 1  # of the next request
        self.partitions = {}  # (topic id, partition) -> None, in order of arrival
        self.unbind = lambda: None  # from its connection


class ShareSessions:
    def __init__(self):
        self._by_member = {}  # (group id, member id) -> ShareSession

    def __len__(self):
        return len(self._by_member)

    def open(self, group_id, member_id):
        """A new session. It replaces a former one."""
        key = group_id, member_id
        if key not in self._by_member and len(self) >= MAX_SESSIONS:
            raise Refusal(ShareSessionLimitReached, f"There are {MAX_SESSIONS} share sessions already.")
        self.close(group_id, member_id)
        session = self._by_member[key] = ShareSession()
        return session

    def get(self, group_id, member_id):
        session = self._by_member.get((group_id, member_id))
        if session is None:
            raise Refusal(codes.ShareSessionNotFoundError, f"Member {member_id} of group '{group_id}' has no share session.")
        return session

    def next_epoch(self, group_id, member_id, epoch):
        """The session, moved to its next epoch."""
        session = self.get(group_id, member_id)
        if epoch != session.epoch:
            raise Refusal(codes.InvalidShareSessionEpochError, f"The epoch of the share session is {session.epoch}, not {epoch}.")
        session.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        return session

    def close(self, group_id, member_id, session=None):
        """Close the session and return it, or None. With `session`, close only that one."""
        key = group_id, member_id
        if session is not None and self._by_member.get(key) is not session:
            return None
        session = self._by_member.pop(key, None)
        if session is not None:
            session.unbind()
        return session
