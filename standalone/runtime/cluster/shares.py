"""The partitions of a sink whose tasks run on a cluster: the worker is the group member, and assigns its partitions to the tasks.

    Shares     one connector's; a thread that is the group member and makes all decisions
    Holder     one task's channel and its partitions

The group sees all tasks as one member. So starting or stopping a task causes no rebalance, commits are fenced by the member's generation,
and messages from the channel of a dead task are ignored: partitions move only when the previous owner is gone. A task whose executor died
keeps its partitions for a while, as it is restarted; those of a task that failed or ended go to the others, as in Java.
"""

import contextlib
import logging
import queue
import threading

from standalone.errors import LogError, LogRetriableError, trace_of

log = logging.getLogger(__name__)

SETTLE_SECONDS = 3.0  # from the first task until partitions are assigned, even if others are missing
GRACE_SECONDS = 30.0  # how long the partitions of a lost task are reserved for its successor
IDLE_SECONDS = 5.0
AGAIN_SECONDS = 0.5


class Holder:
    """`tell(kind, pairs)` sends a task "give" ({pair: mark or None}), "take_back" or "lose"."""

    def __init__(self, number, tell):
        self.number = number
        self.tell = tell
        self.held = set()
        self.asked_back = set()


class Shares:
    """Thread-safe; one thread, `_run`, makes all decisions. `new_consumer(listener)` creates the group member."""

    def __init__(self, name, new_consumer, subscription, clock, flush_seconds, failed):
        self._name = name
        self._subscription = subscription
        self._clock = clock
        self._flush_seconds = flush_seconds
        self._failed = failed  # called with this object and the error that ended the membership
        self._orders = queue.SimpleQueue()
        self._owned = set()
        self._expected = set()  # numbers of the expected tasks
        self._holders = {}  # number -> Holder of connected tasks
        self._left = {}  # number -> (when its channel was lost, its partitions)
        self._first_at = None
        self._is_settled = False
        self._again_at = 0.0
        self._closed = threading.Event()
        self._consumer = new_consumer(self)
        self._thread = threading.Thread(target=self._run, name=f"shares-{name}", daemon=True)
        self._thread.start()

    # ---------------------------------------------------------------- thread-safe
    def expect(self, number):
        """That task will connect."""
        self._order(lambda: self._expected.add(number))

    def there(self, holder):
        """The task is connected."""
        self._order(lambda: self._came(holder))

    def gone(self, holder, for_good):
        """Its channel is lost: ignore its messages from now on. `for_good`: the task has ended."""
        self._order(lambda: self._went(holder, for_good))

    def forget(self, number):
        """That task is not expected any more."""
        self._order(lambda: self._forgotten(number))

    def released(self, holder, pairs):
        self._order(lambda: self._release(holder, pairs))

    def commit(self, holder, offsets, seconds, answer):
        """Call `answer(None or a LogError)` once committed."""
        self._order(lambda: answer(self._commit(holder, offsets, seconds)))

    def close(self, seconds):
        self._closed.set()
        self._order(lambda: None)
        self._thread.join(seconds)

    def _order(self, act):
        self._orders.put(act)
        self._consumer.wakeup()

    # ---------------------------------------------------------------- the member's thread
    def _run(self):
        try:
            self._consumer.subscribe(**self._subscription)
            while not self._closed.is_set():
                self._consumer.poll(self._due_in())
                self._do_orders()
                self._share_out()
            self._do_orders()
        except Exception as error:
            log.error("The group member of connector '%s' has failed: %s", self._name, trace_of(error))
            self._failed(self, error)
            while not self._closed.is_set():  # callers get an error
                with contextlib.suppress(queue.Empty):
                    self._guarded(self._orders.get(timeout=IDLE_SECONDS))
        finally:
            try:
                self._consumer.close(self._flush_seconds)
            except Exception as error:
                log.warning("The group member of connector '%s' did not leave its group: %s", self._name, error)

    def _do_orders(self):
        with contextlib.suppress(queue.Empty):
            while True:
                self._guarded(self._orders.get_nowait())

    def _guarded(self, act):
        try:
            act()
        except Exception:
            log.exception("Assigning partitions of connector '%s' failed", self._name)

    def _due_in(self):
        now = self._clock.monotonic()
        times = [at + GRACE_SECONDS for at, _ in self._left.values()] + [self._again_at] * (self._again_at > now)
        if self._first_at is not None and not self._is_settled:
            times.append(self._first_at + SETTLE_SECONDS)
        return max(0.0, min([IDLE_SECONDS, *(at - now for at in times)]))

    # ---- tasks
    def _came(self, holder):
        self._first_at = self._first_at if self._first_at is not None else self._clock.monotonic()
        self._expected.add(holder.number)
        self._holders[holder.number] = holder

    def _went(self, holder, for_good):
        if self._holders.get(holder.number) is not holder:
            return
        del self._holders[holder.number]
        if not for_good:
            self._left[holder.number] = self._clock.monotonic(), set(holder.held)
        holder.held.clear()
        holder.asked_back.clear()

    def _forgotten(self, number):
        self._expected.discard(number)
        self._left.pop(number, None)

    def _release(self, holder, pairs):
        for pair in pairs:
            holder.held.discard(pair)
            holder.asked_back.discard(pair)

    def _commit(self, holder, offsets, seconds):
        """Commit; return None, or the LogError."""
        if self._holders.get(holder.number) is not holder or not holder.held >= offsets.keys():
            return LogRetriableError(
                f"Task {holder.number} of connector '{self._name}' cannot commit: its partitions were assigned to another executor, where the "
                "records since the last commit are redelivered.",
                "org.apache.kafka.clients.consumer.CommitFailedException",
            )
        try:
            self._consumer.commit(offsets, min(seconds or self._flush_seconds, self._flush_seconds))
        except LogError as error:
            return error
        return None

    # ---- partitions
    def _share_out(self):
        """Revoke partitions that others should have, and assign the free ones."""
        now = self._clock.monotonic()
        self._left = {number: left for number, left in self._left.items() if now - left[0] < GRACE_SECONDS}
        if not self._holders or not self._settled(now):
            return
        had = {number: left for number, (_, left) in self._left.items()}
        had.update({number: holder.held - holder.asked_back | had.get(number, set()) for number, holder in self._holders.items()})
        self._left = {number: left for number, left in self._left.items() if number not in self._holders}
        wanted = shared_out(self._owned, had)
        for number, holder in self._holders.items():
            if back := holder.held - holder.asked_back - wanted[number]:
                holder.asked_back |= back
                holder.tell("take_back", back)
        taken = set().union(*(holder.held for holder in self._holders.values()))
        for number, holder in self._holders.items():
            if fresh := wanted[number] - taken:
                try:
                    marks = self._consumer.marks(sorted(fresh), self._flush_seconds)
                except LogRetriableError as error:
                    log.warning("Task %d of connector '%s' gets its partitions later: %s", number, self._name, error)
                    self._again_at = now + AGAIN_SECONDS
                    continue
                holder.held |= fresh
                log.info("Task %d of connector '%s' was assigned %d partitions", number, self._name, len(fresh))
                holder.tell("give", {pair: marks.get(pair) for pair in fresh})

    def _settled(self, now):
        """Whether all expected tasks are connected, or the wait for them is over."""
        self._is_settled = self._is_settled or self._expected <= self._holders.keys() or now - self._first_at >= SETTLE_SECONDS
        return self._is_settled

    # ---- the group's listener, within poll
    def on_assigned(self, pairs):
        self._consumer.pause(pairs)  # the tasks fetch the records
        self._owned |= set(pairs)

    def on_revoked(self, pairs):
        """Let the tasks commit their offsets before other members get these partitions."""
        self._ask_all("take_back", set(pairs))
        deadline = self._clock.monotonic() + 2 * self._flush_seconds
        while any(holder.held & set(pairs) for holder in self._holders.values()) and self._clock.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                self._guarded(self._orders.get(timeout=max(0.0, deadline - self._clock.monotonic())))
        self._drop(pairs)

    def on_lost(self, pairs):
        self._ask_all("lose", set(pairs))
        self._drop(pairs)

    def _ask_all(self, kind, pairs):
        self._owned -= pairs
        for holder in self._holders.values():
            if mine := holder.held & pairs - (holder.asked_back if kind == "take_back" else set()):
                holder.asked_back |= mine
                holder.tell(kind, mine)

    def _drop(self, pairs):
        for holder in self._holders.values():
            self._release(holder, pairs)


def shared_out(pairs, had):
    """{number: its pairs} for the numbers of `had` ({number: its current or last pairs}): evenly, with as few moves as possible."""
    least, more = divmod(len(pairs), len(had))
    left, shares = set(pairs), {}
    for number in sorted(had, key=lambda number: (-len(had[number]), number)):
        kept = sorted(had[number] & left)[: least + (more > 0)]
        more -= len(kept) > least
        shares[number] = set(kept)
        left -= shares[number]
    for pair in sorted(left):
        shares[min(shares, key=lambda number: (len(shares[number]), number))].add(pair)
    return shares
