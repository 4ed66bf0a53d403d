"""SCHEMA REGISTRY: a client of Confluent's schema registry, and the worker's embedded registry.

schema.py        a schema as a registry knows it: text, kind, references
client.py        the client of converters and commands, with caches
http.py          one request: failover, retries, errors with advice
credentials.py   authentication: basic and bearer
keys.py          the client's keys, under Confluent's names
"""
