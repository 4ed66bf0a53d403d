"""A worker whose embedded log is secured: its own connectors need no settings, others log in and do what ACLs allow."""

import confluent_kafka.admin
import pytest

from standalone.local_worker import LocalWorker, wait_for

USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="ann-s secret";'


def secured(folder):
    return LocalWorker(folder, **{
        "embedded.log.listener": "SASL_PLAINTEXT://127.0.0.1:0",
        "embedded.log.sasl.jaas.config": USERS,
        "embedded.log.authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    })


def test_the_workers_own_connectors_need_no_settings_and_strangers_are_kept_out(tmp_path):
    with secured(tmp_path) as worker:
        written = worker.run_source({"connector.class": "FileStreamSource", "topic": "logs"}, lines=["foo", "bar"])
        assert [record.value for record in written] == [b"foo", b"bar"]
        worker.run_sink({"connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics": "logs"}, [b"more"])
        assert (tmp_path / "out").read_text().splitlines()[:2] == ["foo", "bar"]
        told = {"bootstrap.servers": worker.bootstrap, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ann",
                "sasl.password": "ann-s secret"}
        assert confluent_kafka.admin.AdminClient(told).list_topics(timeout=5).topics == {}


def test_a_connector_that_says_who_it_is_may_do_what_that_user_may(tmp_path):
    with secured(tmp_path) as worker:
        login = {
            "producer.override.security.protocol": "SASL_PLAINTEXT",
            "producer.override.sasl.mechanism": "PLAIN",
            "producer.override.sasl.jaas.config": USERS.replace("user_ann", "username=\"ann\" password"),
        }
        (tmp_path / "in").write_text("line\n")
        worker.create("asks", {"connector.class": "FileStreamSource", "file": str(tmp_path / "in"), "topic": "secret", **login})
        wait_for(lambda: "FAILED" in worker.states("asks"), what="the task's failure")
        assert "TopicAuthorizationException" in worker.trace("asks") and "ann-s secret" not in worker.trace("asks")


@pytest.mark.parametrize("listener", ["SSL://127.0.0.1:0", "KAFKA://127.0.0.1:0"])
def test_a_listener_that_cannot_be_is_told_at_the_start(tmp_path, listener):
    with pytest.raises(Exception, match="embedded.log"):
        LocalWorker(tmp_path, **{"embedded.log.listener": listener}).__enter__()
