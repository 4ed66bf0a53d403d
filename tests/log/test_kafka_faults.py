"""A worker through each fault of a cluster of three real brokers, for a moment each. The long form: scripts/soak/kafka_faults.py."""

import pytest

from tests.log import kafka_faults
from tests.servers.kafka_cluster import KafkaCluster
from tests.suite.shared import skipped_where_unavailable

WHOLE = [kafka_faults._line(number, None) for number in range(10)]


@pytest.mark.parametrize(
    "sink, topic, problems",
    [
        pytest.param(WHOLE, WHOLE, {}, id="all is well"),
        pytest.param(WHOLE[:6] + WHOLE[3:], WHOLE, {}, id="redelivery"),
        pytest.param(WHOLE, WHOLE[4:], {}, id="a topic whose start was deleted"),
        pytest.param(WHOLE[:3] + WHOLE[4:], WHOLE, {"lost": 1, "misplaced": 1}, id="lost on the way to the file"),
        pytest.param(WHOLE, WHOLE[:3] + WHOLE[4:], {"missing_in_topic": 1}, id="lost in the topic"),
        pytest.param(WHOLE, WHOLE[:3] + WHOLE[2:], {"doubled_in_topic": 1}, id="doubled in the topic"),
        pytest.param(WHOLE[:3] + [WHOLE[4], WHOLE[3]] + WHOLE[5:], WHOLE, {"misplaced": 2}, id="out of order in the file"),
        pytest.param(WHOLE, [*WHOLE[:3], WHOLE[4], WHOLE[3], *WHOLE[5:]], {"misplaced_in_topic": 1}, id="out of order in the topic"),
        pytest.param([*WHOLE[:9], WHOLE[9][:-1]], WHOLE, {"torn": 1}, id="torn"),
        pytest.param([*WHOLE, b"never committed"], WHOLE, {"strange": [b"never committed"]}, id="dirty"),
    ],
)
def test_the_judge_sees(sink, topic, problems):
    assert kafka_faults.verdict(10, sink, topic).problems() == problems


def test_what_was_deleted_on_purpose_is_not_lost():
    found = kafka_faults.verdict(10, WHOLE[:2] + WHOLE[5:], WHOLE[4:], gone={2, 3, 4})
    assert not found.problems()


@pytest.fixture(scope="module")
def stage(forks, tmp_path_factory):
    with skipped_where_unavailable():
        cluster = KafkaCluster().start()
    stage = kafka_faults.Stage(cluster, tmp_path_factory.mktemp("worker"), forks, **kafka_faults.SHORT_TIMEOUTS)
    yield stage
    stage.close()
    cluster.stop()


@pytest.mark.kafka
@pytest.mark.xdist_group("kafka cluster")
@pytest.mark.parametrize("name", kafka_faults.FAULTS)
def test_nothing_is_lost_doubled_or_out_of_order(stage, name):
    verdict, _, _ = kafka_faults.FAULTS[name].through(stage, name, seconds=1)
    assert not verdict.problems()
    assert verdict.lines > 500
