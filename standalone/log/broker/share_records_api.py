"""ShareFetch and ShareAcknowledge (KIP-932).

Each function gets the node, its call and the decoded request. It returns the response, or None if it answers the call later.
"""

from standalone.log.broker import lookup
from standalone.log.broker.in_flight import RENEW
from standalone.log.broker.messages import ShareAcknowledgeResponse
from standalone.log.broker.node import NODE_ID
from standalone.log.broker.opaque import ShareFetchResponse
from standalone.log.broker.partitions import LEADER_EPOCH
from standalone.log.broker.refusal import NONE, Refusal, codes
from standalone.log.broker.segments import FileSlice
from standalone.log.broker.share_sessions import FINAL, INITIAL

RECORD_LIMIT = 1  # the acquire mode with an exact limit of records; 0 acquires whole batches
READ_COMMITTED = "read_committed"


def share_fetch(node, call, request):
    """Versions 1-2. Applies the acknowledgements, then acquires records. Waits up to max wait for min bytes.

    Reads from the first available record on, up to max bytes and max records.
    """
    group = _group(node, request)
    acknowledged = [
        (topic.topic_id, part.partition_index) for topic in request.topics for part in topic.partitions if part.acknowledgement_batches
    ]
    epoch, member = request.share_session_epoch, request.member_id
    is_renewal = call.version >= 2 and request.is_renew_ack
    if is_renewal and any((request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)):
        raise Refusal(codes.InvalidRequestError, "The limits of a ShareFetch that renews acquisition locks must be 0.")
    if epoch == INITIAL:
        if acknowledged:
            raise Refusal(codes.InvalidRequestError, "The first request of a share session has acknowledgements.")
        session = _open(node, call, group, member)
    elif epoch == FINAL:
        session = node.share_sessions.get(group.id, member)
        if request.topics and not acknowledged:
            raise Refusal(codes.InvalidRequestError, "The last request of a share session adds partitions.")
    else:
        session = node.share_sessions.next_epoch(group.id, member, epoch)
    outcome = _acknowledge(node, call, group, request, is_renewal)
    if epoch == FINAL:
        _close(node, group, member)
        keys = []
    else:
        keys = _update_session(node, session, request)
    _ShareFetch(node, call, request, group, [] if is_renewal else keys, outcome).begin()


def _update_session(node, session, request):
    """The keys to fetch. An unknown partition gets its error once; it does not become part of the session."""
    unknown = []
    for topic in request.topics:
        known = node.topics.by_id(topic.topic_id)
        for part in topic.partitions:
            key = topic.topic_id, part.partition_index
            if known is not None and 0 <= part.partition_index < len(known.partitions):
                session.partitions[key] = None
            elif key not in session.partitions:
                unknown.append(key)
    for topic in request.forgotten_topics_data:
        for number in topic.partitions:
            session.partitions.pop((topic.topic_id, number), None)
    return [*session.partitions, *unknown]


def share_acknowledge(node, call, request):
    """Versions 1-2."""
    group = _group(node, request)
    epoch, member = request.share_session_epoch, request.member_id
    if epoch == INITIAL:
        raise Refusal(codes.InvalidShareSessionEpochError, "The first request of a share session must be a ShareFetch.")
    if epoch == FINAL:
        node.share_sessions.get(group.id, member)
    else:
        node.share_sessions.next_epoch(group.id, member, epoch)
    outcome = _acknowledge(node, call, group, request, call.version >= 2 and request.is_renew_ack)
    if epoch == FINAL:
        _close(node, group, member)
    Topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
    topics = []
    for topic in request.topics:
        parts = []
        for part in topic.partitions:
            refusal = outcome.get((topic.topic_id, part.partition_index))
            parts.append(
                Topic.PartitionData(
                    version=call.version,
                    partition_index=part.partition_index,
                    error_code=refusal.code if refusal else NONE,
                    error_message=refusal.message if refusal else None,
                    current_leader=_leader(Topic.PartitionData, call),
                )
            )
        topics.append(Topic(version=call.version, topic_id=topic.topic_id, partitions=parts))
    response = ShareAcknowledgeResponse(version=call.version, error_code=NONE, responses=topics, node_endpoints=[])
    response.acquisition_lock_timeout_ms = group.lock_ms
    return response


def _group(node, request):
    if not request.group_id or not request.member_id:
        raise Refusal(codes.InvalidRequestError, "The group id or the member id is empty.")
    return node.groups.share(request.group_id)


def _leader(PartitionData, call):
    return PartitionData.LeaderIdAndEpoch(version=call.version, leader_id=NODE_ID, leader_epoch=LEADER_EPOCH)


def _share_partition(node, call, group, topic_id, number):
    topic = lookup.topic_by_id(node, topic_id)
    return group.open(topic, lookup.partition(node, call, topic.name, topic_id, number))


# --- Sessions


def _open(node, call, group, member):
    session = node.share_sessions.open(group.id, member)

    def ended():
        if node.share_sessions.close(group.id, member, session) is not None:
            group.release(member)

    call.when_it_ends((group.id, member), ended)
    session.unbind = lambda: call.when_it_ends((group.id, member), None)
    return session


def _close(node, group, member):
    node.share_sessions.close(group.id, member)
    group.release(member)


# --- Acknowledging


def _acknowledge(node, call, group, request, is_renewal):
    """{(topic id, partition): Refusal, or None}"""
    outcome, asked, keys = {}, {}, {}
    for topic in request.topics:
        for part in topic.partitions:
            if not part.acknowledgement_batches:
                continue
            key = topic.topic_id, part.partition_index
            try:
                batches = _checked(part.acknowledgement_batches, is_renewal)
                if not group.configs()["share.renew.acknowledge.enable"] and any(RENEW in types for *_, types in batches):
                    raise Refusal(codes.InvalidRecordStateError, "The group's share.renew.acknowledge.enable is false.")
                share = _share_partition(node, call, group, *key)
            except Refusal as refusal:
                outcome[key] = refusal
                continue
            asked[share], keys[share] = batches, key
    for share, refusal in group.acknowledge(request.member_id, asked).items():
        outcome[keys[share]] = refusal
    return outcome


def _checked(batches, is_renewal):
    """[(first, last, acknowledge types)]"""
    found, after = [], -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if not after < first <= last:
            raise Refusal(codes.InvalidRequestError, f"The offsets {first} to {last} are not a range after offset {after}.")
        if len(types) not in (1, last - first + 1) or not all(0 <= kind <= (RENEW if is_renewal else RENEW - 1) for kind in types):
            raise Refusal(codes.InvalidRequestError, f"The acknowledge types for the offsets {first} to {last} are invalid.")
        found.append((first, last, types))
        after = last
    return found


# --- Fetching


class _ShareFetch:
    """A ShareFetch. It may wait for records of several partitions."""

    def __init__(self, node, call, request, group, keys, acknowledged):
        self._node = node
        self._call = call
        self._request = request
        self._group = group
        turn = max(request.share_session_epoch, 0) % len(keys) if keys else 0
        self._keys = keys[turn:] + keys[:turn]  # each partition is the first one in turn
        self._acknowledged = acknowledged
        self._is_record_limit = call.version >= 2 and request.share_acquire_mode == RECORD_LIMIT
        self._answers = {}  # (topic id, partition) -> PartitionData
        self._waits_in = []
        self._timer = None
        self._is_over = False

    @property
    def _is_committed_only(self):
        return self._group.configs()["share.isolation.level"] == READ_COMMITTED

    def _bound(self, partition):
        return partition.last_stable_offset if self._is_committed_only else partition.high_watermark

    def begin(self):
        if not self._keys or self._request.max_wait_ms <= 0 or self._request.max_records <= 0:
            self._answer()
            return
        if self._is_ready():
            return
        for share in self._shares():
            self._waits_in += (share.waiting, share.partition.waiting)
        for waiting in self._waits_in:
            waiting.add(self)
        self._timer = self._node.timers.after(self._request.max_wait_ms / 1000, self._answer)
        self._call.on_hang_up = self._give_up

    def wake(self, more=None):
        """There are new records or available ones, or a partition was removed."""
        if not self._is_over:
            self._is_ready()

    def _is_ready(self):
        """Answer if there is enough. Returns whether it did."""
        try:
            there = 0
            for share in self._shares():
                share.in_flight.start_at(share.partition.start)
                there += share.partition.available(share.in_flight.next_offset, self._bound(share.partition))
        except Refusal:
            self._answer()  # errors are not delayed
            return True
        if there and there >= min(self._request.min_bytes, self._request.max_bytes):
            self._take()
        if not self._answers:
            return False
        self._answer()
        return True

    def _shares(self):
        return [_share_partition(self._node, self._call, self._group, *key) for key in self._keys]

    def _give_up(self):
        self._is_over = True
        for waiting in self._waits_in:
            waiting.discard(self)
        self._waits_in = []
        if self._timer:
            self._timer.cancel()

    def _take(self):
        """Acquire records."""
        Part = ShareFetchResponse.ShareFetchableTopicResponse.PartitionData
        room, max_records = self._request.max_bytes, self._request.max_records
        for key in self._keys:
            part = self._part(Part, key)
            try:
                share = _share_partition(self._node, self._call, self._group, *key)
                part.records, acquired = self._read(share, room, max_records, is_first=not self._answers)
            except Refusal as refusal:
                part.error_code, part.error_message = refusal.code, refusal.message
                self._answers[key] = part
                continue
            if not acquired:
                continue
            part.acquired_records = [
                Part.AcquiredRecords(version=self._call.version, first_offset=run.first, last_offset=run.last, delivery_count=run.count)
                for run in acquired
            ]
            self._answers[key] = part
            room = max(room - part.records.length, 0)
            max_records -= sum(run.size for run in acquired)
            if max_records <= 0:
                return

    def _read(self, share, room, max_records, is_first):
        """(FileSlice, acquired runs), or (None, ())."""
        partition, in_flight = share.partition, share.in_flight
        in_flight.start_at(partition.start)
        bound, locks = self._bound(partition), self._group.configs()["share.partition.max.record.locks"]
        while (offset := in_flight.next_offset) < bound and not in_flight.is_full(locks):
            piece, found = partition.read_batches(offset, room, is_first, bound)
            if piece is None:
                break
            seen = []
            batches = self._batches(partition, found, seen, piece)
            member_id, size = self._request.member_id, self._request.batch_size
            acquired = self._group.acquire(share, batches, member_id, max_records, self._is_record_limit, size)
            if acquired:
                begin = next(at for at, header in seen if header.last_offset >= acquired[0].first)
                end = next(at + header.size for at, header in reversed(seen) if header.base_offset <= acquired[-1].last)
                return FileSlice(piece.file, begin, end - begin), acquired
            if in_flight.next_offset <= offset:
                break
        return None, ()

    def _batches(self, partition, found, seen, piece):
        """The batches for InFlight.acquire. `seen` gets the (position, header) of each one that it has read."""
        aborted = None
        for at, header in found:
            seen.append((at, header))
            is_delivered = header.count > 0 and not header.is_control
            if is_delivered and header.is_transactional and self._is_committed_only:
                if aborted is None:
                    aborted = partition.aborted.between(header.base_offset, partition.last_stable_offset)
                is_delivered = not any(row.producer_id == header.producer_id and row.first <= header.base_offset <= row.last for row in aborted)
            yield header.base_offset, header.last_offset, is_delivered

    def _part(self, Part, key):
        refusal = self._acknowledged.get(key)
        return Part(
            version=self._call.version,
            partition_index=key[1],
            error_code=NONE,
            acknowledge_error_code=refusal.code if refusal else NONE,
            acknowledge_error_message=refusal.message if refusal else None,
            current_leader=_leader(Part, self._call),
            records=None,
            acquired_records=[],
        )

    def _answer(self):
        self._give_up()
        Topic = ShareFetchResponse.ShareFetchableTopicResponse
        if not self._answers and self._request.max_records > 0:
            self._take()
        keys = [*self._answers, *(key for key in self._acknowledged if key not in self._answers)]
        if self._request.share_session_epoch == INITIAL:
            keys += [key for key in self._keys if key not in self._answers]
        topics = {}
        for key in keys:
            part = self._answers.get(key) or self._part(Topic.PartitionData, key)
            topics.setdefault(key[0], []).append(part)
        response = ShareFetchResponse(
            version=self._call.version,
            error_code=NONE,
            acquisition_lock_timeout_ms=self._group.lock_ms,
            responses=[Topic(version=self._call.version, topic_id=topic_id, partitions=parts) for topic_id, parts in topics.items()],
            node_endpoints=[],
        )
        self._call.answer_spliced(response)
