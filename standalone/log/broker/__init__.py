"""The embedded log: a broker of one node, inside this process, that any Kafka client may use.

    socket       server.py (the owner's thread), heartbeats.py ─ listeners.py, connection.py, encrypted.py ─ call.py
    login, ACLs  security.py ─ logins.py, kerberos.py, tokens.py, users.py, client.py; acls.py, operations.py
    requests     requests.py: request → versions, operation, handler ─ *_api.py, a function a request ─ refusal.py, nulls.py
                 produce_messages.py, opaque.py: the two with records ─ primitives.py
    records      topics.py ─ partitions.py ─ segments.py, producers.py, aborted.py, control.py, records.py, compaction.py
    groups       groups.py (classic) ─ member.py; consumer_group.py (KIP-848) ─ assignors.py; in_order.py for their commits; group_configs.py
    share groups share_group.py (KIP-932) ─ share_members.py, share_assignor.py; in_flight.py; share_sessions.py
    transactions transactions.py
    all of them  node.py (what handlers share; flushing), store.py (SQLite), timers.py; options.py, security_options.py

The terms are Kafka's: a partition is a list of segments, each with an index; it has a high watermark, up to which consumers read, and a last
stable offset, up to which no transaction is open; producers have ids, epochs and sequences; a group has a generation or an epoch, and members.
Two terms are added: the *owner* is the one thread that changes state; *durable* means fsynced.
"""
