"""The group state machine, by calls and our own clock: who joins, who leads, who is asked again, who is thrown out."""

import pytest
from kafka.protocol.consumer import ConsumerProtocolSubscription
from pytest import param

from standalone.log.broker.groups import COMPLETING, EMPTY, PREPARING, STABLE, Groups
from standalone.log.broker.member import Committed
from standalone.log.broker.refusal import NONE, Refusal, codes
from standalone.log.broker.store import Store
from standalone.log.broker.timers import Timers

SESSION_MS, REBALANCE_MS = 10_000, 60_000
ILLEGAL, UNKNOWN, FENCED, REBALANCING = (
    codes.IllegalGenerationError.errno,
    codes.UnknownMemberIdError.errno,
    codes.FencedInstanceIdError.errno,
    codes.RebalanceInProgressError.errno,
)


class ManualClock:
    def __init__(self):
        self.seconds = 1000.0

    def monotonic(self):
        return self.seconds

    def now_ms(self):
        return int(self.seconds * 1000)


def subscription(*topics, user_data=b""):
    return ConsumerProtocolSubscription(version=0, topics=list(topics), user_data=user_data).encode()


class World:
    """One group `g` and what it answers; answers are lists, empty until they come."""

    def __init__(self, folder):
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.store = Store(str(folder))
        self.groups = Groups(self.store, None, self.clock, self.timers)
        self.group = self.groups.make("g")

    def join(self, member_id="", instance_id=None, metadata=None, protocols=None, kind="consumer", session_ms=SESSION_MS, known=True):
        """`known`: with an id from the group, as clients do who are told to ask again."""
        answers = []
        if known and not member_id and not instance_id:
            self.group.join("", None, ("client", "host"), session_ms, REBALANCE_MS, kind, protocols or [("range", b"")], True, answers.append)
            if answers[0].error != codes.MemberIdRequiredError.errno:
                return answers
            member_id = answers.pop().member_id
        protocols = protocols or [("range", subscription("t") if metadata is None else metadata)]
        self.group.join(member_id, instance_id, ("client", "host"), session_ms, REBALANCE_MS, kind, protocols, True, answers.append)
        return answers

    def sync(self, joined, assignments=None, instance_id=None, generation=None):
        answers = []
        generation = joined.generation if generation is None else generation
        self.group.sync(joined.member_id, instance_id, generation, None, None, assignments or {}, answers.append)
        return answers

    def heartbeat(self, joined, instance_id=None):
        return self.group.heartbeat(joined.member_id, instance_id, joined.generation)

    def settle(self, *joins):
        """Joined members, the leader's sync last, become a stable group; their last answers."""
        leader = next(j for j in joins if j[-1].members)[-1]
        shares = {member_id: member_id.encode() for member_id, _, _ in leader.members}
        for join in joins:
            if join[-1] is not leader:
                self.sync(join[-1])
        self.sync(leader, shares)
        assert self.group.state == STABLE
        return [join[-1] for join in joins]

    def two(self, instances=(None, None)):
        """A stable group of two."""
        first = self.join(instance_id=instances[0])
        second = self.join(instance_id=instances[1])
        first += self.join(first[0].member_id, instances[0])
        return self.settle(first, second)

    def pass_seconds(self, seconds, alive=()):
        """Let time go by; those of `alive` send heartbeats."""
        for _ in range(int(seconds)):
            self.clock.seconds += 1
            for joined, instance_id in alive:
                self.heartbeat(joined, instance_id)
            self.timers.run_due()


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.store.close()


# --- Joining


def test_a_newcomer_is_told_its_id_first(world):
    answers = []
    world.group.join("", None, ("c", "h"), SESSION_MS, REBALANCE_MS, "consumer", [("range", b"")], True, answers.append)
    assert answers[0].error == codes.MemberIdRequiredError.errno and answers[0].member_id.startswith("c-")
    assert not world.group.members


def test_an_old_client_joins_at_once_without_an_id(world):
    answers = []
    world.group.join("", None, ("c", "h"), SESSION_MS, REBALANCE_MS, "consumer", [("range", b"")], False, answers.append)
    assert answers[0].error == NONE and answers[0].generation == 1


def test_a_lone_member_leads_and_gets_what_it_gives_itself(world):
    join = world.join()
    (joined,) = join
    assert (joined.error, joined.generation, joined.leader, joined.protocol) == (NONE, 1, joined.member_id, "range")
    assert [member_id for member_id, _, _ in joined.members] == [joined.member_id]
    (synced,) = world.sync(joined, {joined.member_id: b"all"})
    assert synced.assignment == b"all" and world.group.state == STABLE
    assert world.heartbeat(joined) == NONE


def test_a_second_member_starts_a_round_that_waits_for_the_first(world):
    first = world.join()
    world.settle(first)
    second = world.join()
    assert second == [] and world.group.state == PREPARING
    assert world.heartbeat(first[0]) == REBALANCING
    first += world.join(first[0].member_id)
    assert second[0].error == NONE and second[0].generation == first[1].generation == 2
    assert second[0].leader == first[1].leader == first[0].member_id
    assert len(first[1].members) == 2 and second[0].members == ()


def test_followers_wait_for_the_leaders_division(world):
    first, second = world.join(), world.join()
    first += world.join(first[0].member_id)
    waiting = world.sync(second[0])
    assert waiting == [] and world.group.state == COMPLETING
    world.sync(first[1], {second[0].member_id: b"half"})
    assert waiting[0].assignment == b"half"


def test_a_follower_that_joins_again_unchanged_disturbs_nobody(world):
    leader, follower = world.two()
    again = world.join(follower.member_id)
    assert again[0].generation == follower.generation and world.group.state == STABLE


@pytest.mark.parametrize("which, metadata", [param(0, None, id="the leader"), param(1, subscription("other"), id="another subscription")])
def test_a_join_that_starts_a_new_round(world, which, metadata):
    joined = world.two()[which]
    assert world.join(joined.member_id, metadata=metadata) == []
    assert world.group.state == PREPARING


@pytest.mark.parametrize(
    "options, error",
    [
        param({"kind": "connect"}, codes.InconsistentGroupProtocolError, id="another protocol type"),
        param({"kind": ""}, codes.InconsistentGroupProtocolError, id="no protocol type"),
        param({"protocols": [("sticky", b"")]}, codes.InconsistentGroupProtocolError, id="no protocol in common"),
        param({"session_ms": 1}, codes.InvalidSessionTimeoutError, id="a session too short"),
        param({"member_id": "stranger"}, codes.UnknownMemberIdError, id="an id that was not given"),
        param({"member_id": "m", "instance_id": "i"}, codes.UnknownMemberIdError, id="an instance that is not there"),
    ],
)
def test_who_may_not_join(world, options, error):
    world.settle(world.join())
    assert world.join(**options)[0].error == error.errno
    assert world.group.state == STABLE


def test_the_protocol_is_the_one_that_all_know_and_most_like(world):
    first = world.join(protocols=[("sticky", b"1"), ("range", b"2")])
    second = world.join(protocols=[("range", b"3")])
    first += world.join(first[0].member_id, protocols=[("sticky", b"1"), ("range", b"2")])
    assert second[0].protocol == "range"
    assert dict((m, data) for m, _, data in first[1].members) == {first[0].member_id: b"2", second[0].member_id: b"3"}


# --- Leaving and silence


def test_who_leaves_starts_a_round_for_the_others(world):
    leader, follower = world.two()
    assert world.group.leave(leader.member_id, None) == NONE
    assert world.heartbeat(follower) == REBALANCING
    again = world.join(follower.member_id)
    assert again[0].leader == follower.member_id and len(again[0].members) == 1


def test_the_last_one_out_leaves_an_empty_group(world):
    (joined,) = world.settle(world.join())
    world.group.leave(joined.member_id, None)
    assert world.group.state == EMPTY and world.group.leave(joined.member_id, None) == UNKNOWN


def test_a_silent_member_is_out_after_its_session(world):
    leader, follower = world.two()
    world.pass_seconds(9, alive=[(leader, None)])
    assert world.group.state == STABLE
    world.pass_seconds(2, alive=[(leader, None)])
    assert world.group.state == PREPARING and world.heartbeat(follower) == UNKNOWN
    assert world.join(leader.member_id)[0].generation == leader.generation + 1


def test_a_member_that_waits_for_others_does_not_time_out(world):
    first = world.join()
    world.settle(first)
    second = world.join()
    world.pass_seconds(30, alive=[(first[0], None)])  # the first continues with its heartbeats, but does not join
    assert second == [] and len(world.group.members) == 2
    world.pass_seconds(31, alive=[(first[0], None)])  # the time for a round is over
    assert second[0].generation == 2 and list(world.group.members) == [second[0].member_id]


def test_a_promised_member_that_never_comes_is_waited_for_no_longer_than_a_session(world):
    first = world.join()
    world.settle(first)
    world.group.join("", None, ("c", "h"), SESSION_MS, REBALANCE_MS, "consumer", [("range", b"")], True, lambda joined: None)
    again = world.join(first[0].member_id)  # it leads, so this starts a round
    assert again == []
    world.pass_seconds(11)
    assert again[0].error == NONE


def test_a_leader_that_never_divides_is_out(world):
    first, second = world.join(), world.join()
    first += world.join(first[0].member_id)
    waiting = world.sync(second[0])
    world.pass_seconds(61, alive=[(first[1], None), (second[0], None)])
    assert waiting[0].error == REBALANCING
    assert world.join(second[0].member_id)[0].leader == second[0].member_id


# --- Static members


def test_a_static_member_that_comes_back_takes_its_place_without_a_round(world):
    leader, follower = world.two(("a", "b"))
    (again,) = world.join(instance_id="b", metadata=subscription("t", user_data=b"owns other partitions now"))
    assert (again.error, again.generation) == (NONE, follower.generation) and again.member_id != follower.member_id
    assert world.group.state == STABLE and world.heartbeat(leader, "a") == NONE
    (synced,) = world.sync(again, instance_id="b")
    assert synced.assignment == follower.member_id.encode()


def test_a_static_leader_that_comes_back_leads_on_and_divides_nothing(world):
    leader, _ = world.two(("a", "b"))
    (again,) = world.join(instance_id="a")
    assert again.leader == again.member_id and again.skip_assignment and len(again.members) == 2
    assert world.sync(again, instance_id="a")[0].assignment == leader.member_id.encode()


def test_the_old_self_is_fenced(world):
    _, old = world.two(("a", "b"))
    world.join(instance_id="b")
    assert world.heartbeat(old, "b") == FENCED
    assert world.sync(old, instance_id="b")[0].error == FENCED
    assert world.join(old.member_id, "b")[0].error == FENCED
    assert world.group.leave(old.member_id, "b") == FENCED
    with pytest.raises(Refusal) as refused:
        world.group.check_commit(old.member_id, "b", old.generation)
    assert refused.value.code == FENCED


def test_the_old_self_that_waits_in_a_round_is_fenced(world):
    first = world.join(instance_id="a")
    world.settle(first)
    waiting = world.join(instance_id="b")
    new = world.join(instance_id="b")
    assert waiting[0].error == FENCED and new == []
    world.join(first[0].member_id, "a")
    assert new[0].error == NONE


def test_a_static_member_with_another_subscription_starts_a_round(world):
    world.two(("a", "b"))
    assert world.join(instance_id="b", metadata=subscription("t", "u")) == []
    assert world.group.state == PREPARING


def test_a_static_member_that_replaces_itself_during_a_division_starts_the_round_again(world):
    first, _ = world.join(instance_id="a"), world.join(instance_id="b")
    first += world.join(first[0].member_id, "a")
    assert world.group.state == COMPLETING
    new = world.join(instance_id="b")
    assert new == [] and world.group.state == PREPARING
    world.join(first[0].member_id, "a")
    assert new[0].error == NONE


def test_a_silent_static_member_keeps_its_place_through_a_round_but_not_beyond_its_session(world):
    leader, gone = world.two(("a", "b"))
    world.join(leader.member_id, "a")
    assert world.group.state == PREPARING  # waits for b
    world.pass_seconds(11)
    assert world.group.state == COMPLETING and "b" not in {m.instance_id for m in world.group.members.values()}


@pytest.mark.parametrize("with_member_id", [False, True])
def test_a_static_member_is_removed_by_its_instance_id(world, with_member_id):
    _, follower = world.two(("a", "b"))
    assert world.group.leave(follower.member_id if with_member_id else "", "b") == NONE
    assert world.group.state == PREPARING
    assert world.group.leave("", "b") == UNKNOWN


# --- Generations


@pytest.mark.parametrize(
    "generation, error", [param(0, ILLEGAL, id="too old"), param(99, ILLEGAL, id="of the future"), param(2, NONE, id="the present one")]
)
def test_only_the_present_generation_counts(world, generation, error):
    leader, _ = world.two()
    assert world.group.heartbeat(leader.member_id, None, generation) == error
    assert world.sync(leader, generation=generation)[0].error == error


# --- Offsets


def commit(world, *who):
    try:
        world.group.check_commit(*who)
    except Refusal as refusal:
        return refusal.code
    return NONE


def test_who_may_commit(world):
    assert commit(world, "", None, -1) == NONE  # nobody is a member: an admin, or a consumer that assigns itself
    leader, _ = world.two()
    assert commit(world, "", None, -1) == UNKNOWN
    assert commit(world, leader.member_id, None, leader.generation) == NONE
    assert commit(world, leader.member_id, None, leader.generation - 1) == ILLEGAL
    assert commit(world, "stranger", None, leader.generation) == UNKNOWN


def test_no_commit_while_the_partitions_are_divided(world):
    (joined,) = world.join()
    assert commit(world, joined.member_id, None, joined.generation) == REBALANCING


def test_committed_offsets_are_known_after_a_restart(world):
    world.group.commit({("t", 0): Committed(5, 0, "note"), ("t", 1): Committed(7, -1, "")}, 0)
    world.group.commit({("t", 0): Committed(6, 0, "")}, 0)
    again = Groups(world.store, None, world.clock, world.timers)
    assert again.get("g").offsets == {("t", 0): Committed(6, 0, ""), ("t", 1): Committed(7, -1, "")}
    assert again.get("g").state == EMPTY


def test_offsets_of_a_subscribed_topic_cannot_be_deleted(world):
    world.group.commit({("t", 0): Committed(5, 0, ""), ("u", 0): Committed(5, 0, "")}, 0)
    world.two()
    with pytest.raises(Refusal) as refused:
        world.group.delete_offset("t", 0)
    assert refused.value.code == codes.GroupSubscribedToTopicError.errno
    world.group.delete_offset("u", 0)
    assert list(world.group.offsets) == [("t", 0)]


def test_a_group_that_holds_nothing_is_forgotten(world):
    (joined,) = world.settle(world.join())
    world.groups.tidy()
    assert world.groups.get("g") is world.group
    world.group.leave(joined.member_id, None)
    world.group.commit({("t", 0): Committed(5, 0, "")}, 0)
    world.groups.tidy()
    assert world.groups.get("g") is world.group
    world.group.delete_offset("t", 0)
    world.groups.tidy()
    assert world.groups.get("g") is None


def test_only_an_empty_group_can_be_deleted(world):
    (joined,) = world.settle(world.join())
    with pytest.raises(Refusal) as refused:
        world.groups.delete("g")
    assert refused.value.code == codes.NonEmptyGroupError.errno
    world.group.leave(joined.member_id, None)
    world.groups.delete("g")
    assert world.groups.get("g") is None
    with pytest.raises(Refusal):
        world.groups.delete("g")
