"""The log: it stores and moves bytes. Its clients, and the embedded log (broker/), which speaks the same protocol.

    producer     producer.py ─ sender.py ─ intake.py, routing.py, partitioner.py ─ partition_queue.py ─ produce_request.py
    consumer     consumer.py ─ subscription.py, positions.py, leaders.py, fetch.py
    transactions transactions.py, of a producer with a transactional id
    group        group.py (classic), consumer_protocol.py (KIP-848) ─ group_link.py, assignment.py, commits.py; heartbeats.py, one thread for all
                 members of the process
    admin        admin.py
    all of them  client.py (metadata, requests) ─ connection.py ─ connection_setup.py ─ security.py ─ tls.py, jaas.py, oauth.py, kerberos.py
                 link.py (requests in flight), steps.py (waiting for many at once), retry.py (backoff), error_codes.py, broker_errors.py
    settings     client_config.py, client_keys.py
    record batch record_batch.py, record_loops.py, batch_header.py, compression.py, varint.py

Words are Kafka's: a topic's partition has a leader with a leader epoch, and replicas; a group has a coordinator, members and generations;
offsets are committed; a position is the offset of the next record to be read. The embedded log's own map is in broker/__init__.py.

Connectors that are Kafka clients themselves import the names below: `from standalone.log import Admin, Consumer, …`. Each name is imported
lazily: kafka-python takes a while to load, and code that only packs or unpacks batches does not need it.
"""

import importlib

_HOMES = {
    "standalone.clock": ("SYSTEM",),
    "standalone.errors": ("LogError", "LogFatalError", "LogRetriableError"),
    "standalone.log.acls": ("Acl", "Acls"),
    "standalone.log.admin": ("Admin",),
    "standalone.log.client": ("Clusters",),
    "standalone.log.client_config": ("AdminConfig", "ConsumerConfig", "ProducerConfig"),
    "standalone.log.consumer": ("Consumer",),
    "standalone.log.producer": ("Producer",),
    "standalone.wire": ("Records",),
}
_PUBLIC = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_PUBLIC)  # noqa: PLE0605


def __getattr__(name):
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
