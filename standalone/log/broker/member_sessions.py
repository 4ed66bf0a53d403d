"""Sessions of group members: the broker removes a member that sends no heartbeat in time."""


class MemberSessions:
    """For groups with `members`, `_session_seconds`, `_clock`, `_timers` and `_remove(member)`; members have an `id` and a `deadline`."""

    def _begin_session(self, member):
        self._timers.after(self._session_seconds, lambda: self._check_session(member))

    def _alive(self, member):
        member.deadline = self._clock.monotonic() + self._session_seconds

    def _check_session(self, member):
        if self.members.get(member.id) is not member:
            return
        left = member.deadline - self._clock.monotonic()
        if left > 0:
            self._timers.after(left, lambda: self._check_session(member))
        else:
            self._remove(member)
