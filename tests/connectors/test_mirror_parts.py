"""The mirror connectors without clusters: keys, names of topics, bytes of records, translated offsets."""

import json
import pathlib

import pytest
from pytest import param

from connectors.mirror import formats
from connectors.mirror.checkpoint import MirrorCheckpointConnector
from connectors.mirror.formats import Checkpoint, Heartbeat, OffsetSync
from connectors.mirror.heartbeat import MirrorHeartbeatConnector
from connectors.mirror.keys import Names
from connectors.mirror.offset_syncs import MOST, NO_PLACE, SyncStore, SyncWriter
from connectors.mirror.policy import policy_of
from connectors.mirror.source import MirrorSourceConnector, assigned
from connectors.mirror.topics import Topics
from standalone import REQUIRED, ConnectError, ExactlyOnceSupport
from standalone.log import Acl

KEYS = json.loads((pathlib.Path(__file__).parent.parent / "golden" / "mirror-keys.json").read_text())
CONNECTORS = {"source": MirrorSourceConnector, "checkpoint": MirrorCheckpointConnector, "heartbeat": MirrorHeartbeatConnector}
CLUSTERS = {"source.cluster.alias": "a", "source.cluster.bootstrap.servers": "h:1", "target.cluster.bootstrap.servers": "h:2", "target.cluster.alias": "b"}
# Classes of Java's that a key chooses from are strings here: there is nothing to load.
CHOICES = ("replication.policy.class", "forwarding.admin.class", "topic.filter.class", "group.filter.class", "config.property.filter.class")


@pytest.mark.parametrize("kind", CONNECTORS)
def test_a_connector_has_mirrormakers_keys_with_their_types_defaults_and_importances(kind):
    ours = {option.name: option for option in CONNECTORS[kind].config_def}
    theirs = {key["name"]: key for key in KEYS[kind]}
    assert sorted(ours) == sorted(theirs)
    parsed = CONNECTORS[kind].config_def.parse({"source.cluster.alias": "a"})
    for name, key in theirs.items():
        assert ours[name].type == ("STRING" if name in CHOICES else key["type"]), name
        assert ours[name].importance == key["importance"], name
        if key["default"] == "REQUIRED":
            assert ours[name].default is REQUIRED, name
        else:
            assert parsed[name] == key["default"], name


POLICY = {"replication.policy.separator": ".", "replication.policy.internal.topic.separator.enabled": True, "source.cluster.alias": "a"}


def policy(kind="Default", **changes):
    return policy_of({**POLICY, "replication.policy.class": f"org.apache.kafka.connect.mirror.{kind}ReplicationPolicy", **changes})


@pytest.mark.parametrize(
    "made, call, wanted",
    [
        param(policy(), lambda p: p.remote("a", "t"), "a.t", id="alias, separator, topic"),
        param(policy(), lambda p: (p.source("a.t"), p.source("t")), ("a", None), id="where it came from"),
        param(policy(), lambda p: p.original("a.b.t"), "t", id="over multiple clusters"),
        param(policy(**{"replication.policy.separator": "_"}), lambda p: (p.remote("a", "t"), p.offset_syncs("a")), ("a_t", "mm2-offset-syncs_a_internal"), id="another separator"),
        param(
            policy(**{"replication.policy.separator": "_", "replication.policy.internal.topic.separator.enabled": False}),
            lambda p: (p.offset_syncs("a"), p.checkpoints("a")), ("mm2-offset-syncs.a.internal", "a.checkpoints.internal"), id="not in the internal topics",
        ),
        param(policy(), lambda p: [p.is_internal(t) for t in ("__x", ".x", "a.checkpoints.internal", "t")], [True, True, True, False], id="internal topics"),
        param(policy(), lambda p: [p.is_cycle(t, "b") for t in ("b.t", "c.b.t", "c.t", "t")], [True, True, False, False], id="cycles"),
        param(policy(), lambda p: [p.is_heartbeats(t) for t in ("heartbeats", "c.heartbeats", "t")], [True, True, False], id="heartbeats"),
        param(policy("Identity"), lambda p: (p.remote("a", "t"), p.remote("a", "heartbeats")), ("t", "a.heartbeats"), id="identity"),
        param(policy("Identity"), lambda p: [p.is_cycle(t, "b") for t in ("t", "b.heartbeats")], [False, True], id="identity sees no cycle but of heartbeats"),
    ],
)  # fmt: skip
def test_names_of_topics(made, call, wanted):
    assert call(made) == wanted


@pytest.mark.parametrize(
    "topic, taken",
    [
        param("t", True, id="a topic"),
        param("not-me", False, id="an excluded one"),
        param("b.t", False, id="one that came from the target"),
        param("__consumer_offsets", False, id="one of Kafka's own"),
        param("mm2-offset-syncs.b.internal", False, id="one of MirrorMaker's own"),
        param("heartbeats", True, id="heartbeats, whatever topics says"),
    ],
)
def test_which_topics_are_mirrored(topic, taken):
    config = {"heartbeats.replication.enabled": True, "target.cluster.alias": "b", "source.cluster.alias": "a"}
    assert Topics(config, None, None, policy(), Names(["t", "not-.*", r"b\.t", "__.*", "mm2.*"], ["not-.*"]), None).mirrors(topic) is taken


def test_records_have_mirrormakers_bytes_and_are_read_back():
    checkpoint = Checkpoint("g", "a.t", 3, 10, 7, "m")
    assert formats.checkpoint_key(checkpoint) == b"\x00\x01g\x00\x03a.t\x00\x00\x00\x03"
    assert formats.checkpoint_value(checkpoint) == b"\x00\x00" + b"\x00" * 7 + b"\x0a" + b"\x00" * 7 + b"\x07" + b"\x00\x01m"
    assert formats.read_checkpoint(formats.checkpoint_key(checkpoint), formats.checkpoint_value(checkpoint)) == checkpoint
    sync = OffsetSync("t", 1, 5, 4)
    assert (formats.sync_key(sync), formats.sync_value(sync)) == (b"\x00\x01t\x00\x00\x00\x01", b"\x00" * 7 + b"\x05" + b"\x00" * 7 + b"\x04")
    assert formats.read_sync(formats.sync_key(sync), formats.sync_value(sync)) == sync
    beat = Heartbeat("a", "b", 1)
    assert (formats.heartbeat_key(beat), formats.heartbeat_value(beat)) == (b"\x00\x01a\x00\x01b", b"\x00\x00" + b"\x00" * 7 + b"\x01")
    assert formats.read_heartbeat(formats.heartbeat_key(beat), formats.heartbeat_value(beat)) == beat


class Written:
    def __init__(self):
        self.syncs = []

    def write(self, topic, partition, key, value, on_done):
        self.syncs.append(formats.read_sync(key, value)[2:])
        on_done(None)


@pytest.mark.parametrize(
    "runs, wanted",
    [
        param([(0, 9, 0, 9)], [(0, 0)], id="the first"),
        param([(0, 9, 0, 9), (10, 19, 10, 19)], [(0, 0)], id="no other while they are close"),
        param([(0, 9, 0, 9), (10, 120, 10, 120)], [(0, 0), (120, 120)], id="another after offset.lag.max"),
        param([(0, 9, 0, 9), (15, 19, 10, 14)], [(0, 0), (15, 10)], id="after a gap between batches"),
        param([(0, 19, 0, 9)], [(19, 9)], id="after a gap within one"),
        param([(50, 59, 50, 59), (60, 61, 0, 1)], [(50, 50), (60, 0)], id="where the target started over"),
    ],
)
def test_which_offsets_are_noted(runs, wanted):
    written = Written()
    syncs = SyncWriter(written, "s", 100)
    for run in runs:
        syncs.note(("t", 0), *run)
        syncs.write()
    assert written.syncs == wanted


@pytest.mark.parametrize(
    "upstream, there",
    [
        param(9, NO_PLACE, id="before all: unknown"),
        param(10, 3, id="at a sync: its place"),
        param(15, 4, id="between two: just after the earlier"),
        param(20, 13, id="at the later one"),
        param(99, 14, id="after all"),
    ],
)
def test_offsets_are_translated_to_places_that_skip_nothing(upstream, there):
    store = SyncStore()
    store.take([(formats.sync_key(each), formats.sync_value(each)) for each in (OffsetSync("t", 0, 10, 3), OffsetSync("t", 0, 20, 13))])
    assert store.translate("t", 0, upstream) == there
    assert store.translate("other", 0, upstream) is None


def test_syncs_are_bounded_and_those_of_a_topic_made_anew_take_the_place_of_the_old():
    store = SyncStore()
    for n in range(3 * MOST):
        store.take([(b"\x00\x01t\x00\x00\x00\x00", formats.sync_value(OffsetSync("t", 0, n, n)))])
    assert store.translate("t", 0, 3 * MOST - 1) == 3 * MOST - 1 and len(store._syncs["t", 0][0]) <= MOST
    store.take([(b"\x00\x01t\x00\x00\x00\x00", formats.sync_value(OffsetSync("t", 0, 5, 2)))])
    assert store.translate("t", 0, 3 * MOST - 1) == 3


@pytest.mark.parametrize(
    "config, keys",
    [
        param({"source.cluster.alias": "a"}, ["target.cluster.alias"], id="no clusters"),
        param({**CLUSTERS, "target.cluster.alias": "a"}, ["target.cluster.alias"], id="the same alias"),
        param(CLUSTERS, [], id="all right"),
    ],
)
@pytest.mark.parametrize("kind", CONNECTORS)
def test_clusters_must_be_two(kind, config, keys):
    found = dict(CONNECTORS[kind]().validate(config))
    lacks_source = found.pop("source.cluster.alias", None) is not None
    assert list(found) == keys
    assert lacks_source is (kind != "heartbeat" and "source.cluster.bootstrap.servers" not in config)  # of the source a heartbeat knows the name


def test_exactly_once_needs_committed_records_alone():
    says = MirrorSourceConnector().exactly_once_support
    assert says({**CLUSTERS, "source.consumer.isolation.level": "read_committed"}) is ExactlyOnceSupport.SUPPORTED
    assert says(CLUSTERS) is ExactlyOnceSupport.UNSUPPORTED


@pytest.mark.parametrize(
    "kind, partition, offset, fine",
    [
        param("source", {"cluster": "a", "topic": "t", "partition": 0}, {"offset": 5}, True, id="a record"),
        param("source", {"cluster": "a", "topic": "t", "partition": 0}, None, True, id="a reset"),
        param("source", {"cluster": "a", "topic": "t", "partition": 0}, {"offset": -1}, False, id="before the beginning"),
        param("source", {"topic": "t", "partition": 0}, {"offset": 1}, False, id="of no cluster"),
        param("checkpoint", {"group": "g", "topic": "t", "partition": 0}, {"offset": 0}, True, id="a checkpoint"),
        param("checkpoint", {"group": "g", "topic": "t", "partition": 0}, {"offset": 1}, False, id="a checkpoint's is always 0"),
        param("heartbeat", {"sourceClusterAlias": "a", "targetClusterAlias": "b"}, {"offset": 0}, True, id="a heartbeat"),
        param("heartbeat", {"sourceClusterAlias": "a"}, {"offset": 0}, False, id="a heartbeat to nowhere"),
    ],
)
def test_offsets_that_an_operator_may_set(kind, partition, offset, fine):
    connector = CONNECTORS[kind]()
    if fine:
        assert connector.alter_offsets({}, [(partition, offset)]) is True
    else:
        with pytest.raises(ConnectError):
            connector.alter_offsets({}, [(partition, offset)])


def test_assigned_partitions_may_have_dashes_in_their_topics():
    assert assigned("a-b-0,c-12") == [("a-b", 0), ("c", 12)]


class FakeAdmin:
    """Answers to Acls: what the cluster has, and what was made."""

    def __init__(self, acls):
        self.acls, self.made = acls, []


@pytest.fixture
def fake_acls(monkeypatch):
    from connectors.mirror import topics

    class Fake:
        def __init__(self, admin):
            self._admin = admin

        def read(self):
            return self._admin.acls

        def write(self, acls):
            self._admin.made += acls
            return self._admin.acls is not None

    monkeypatch.setattr(topics, "Acls", Fake)


READ_T = Acl("t", "User:a", "*", 3, 3)


@pytest.mark.parametrize(
    "there, made",
    [
        param(READ_T, READ_T._replace(topic="a.t"), id="leave to read"),
        param(READ_T._replace(operation=2), READ_T._replace(topic="a.t"), id="leave for everything is leave to read"),
        param(READ_T._replace(operation=4), None, id="leave to write is the mirror's alone"),
        param(READ_T._replace(operation=4, permission=2), READ_T._replace(topic="a.t", operation=4, permission=2), id="a denial stays one"),
        param(READ_T._replace(topic="other"), None, id="of a topic that is not mirrored"),
    ],
)
def test_acls_on_the_target(fake_acls, there, made):
    source, target = (type("Side", (), {"admin": FakeAdmin(acls)})() for acls in ([there], []))
    topics = Topics({"source.cluster.alias": "a", "target.cluster.alias": "b"}, source, target, policy(), Names(["t"], []), None)
    topics.partitions = [("t", 0)]
    topics.sync_acls()
    assert target.admin.made == ([made] if made else [])


def test_without_an_authorizer_no_acls_are_made_and_that_is_said_once(fake_acls, caplog):
    source, target = (type("Side", (), {"admin": FakeAdmin(None)})() for _ in range(2))
    topics = Topics({"source.cluster.alias": "a", "target.cluster.alias": "b"}, source, target, policy(), Names(["t"], []), None)
    with caplog.at_level("INFO"):
        topics.sync_acls()
        topics.sync_acls()
    assert target.admin.made == [] and caplog.text.count("no authorizer") == 1
