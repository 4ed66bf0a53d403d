"""ACLs of topics on a real Kafka with an authorizer; and on logs that have none."""

import pytest

from standalone.clock import SYSTEM
from standalone.log.acls import ALLOW, READ, Acl, Acls
from standalone.log.admin import Admin
from standalone.log.client import Cluster
from tests.servers.kafka_broker import KafkaBroker
from tests.suite.shared import skipped_where_unavailable

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:ANONYMOUS"}
WANTED = [Acl("t", "User:reader", "*", READ, ALLOW), Acl("t", "User:other", "127.0.0.1", READ, ALLOW)]


def acls_of(bootstrap):
    return Acls(Admin(Cluster({"bootstrap.servers": bootstrap}, SYSTEM), {}, SYSTEM))


@pytest.mark.slow
def test_acls_are_made_and_read_back_and_making_them_again_changes_nothing():
    with skipped_where_unavailable():
        broker = KafkaBroker(settings=AUTHORIZER).start()
    try:
        acls = acls_of(broker.bootstrap)
        assert acls.read() == []
        assert acls.write(WANTED) is True and acls.write(WANTED) is True
        assert sorted(acls.read()) == sorted(WANTED)
    finally:
        broker.stop()


def test_a_log_without_an_authorizer_says_so(kafka):
    assert acls_of(kafka).read() is None and acls_of(kafka).write(WANTED) is False


def test_nothing_to_make_asks_nobody():
    assert Acls(None).write([]) is True
