"""WHAT SCHEMAS ARE CALLED: a client of Confluent's schema registry, and a registry of the worker's own.

schema.py        a schema as a registry knows it: text, kind, references
client.py        what converters and commands ask, with caches
http.py          one request: addresses in turn, retries, errors that say what to do
credentials.py   who asks: basic and bearer
keys.py          the keys of all this, under Confluent's names
"""
