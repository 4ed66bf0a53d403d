"""The embedded registry: Confluent's REST API over SQLite, on its own listener.

listener.py     address, thread, allowed hosts
api.py          the table of requests and their handlers
bodies.py       request and response bodies
registry.py     register, find, delete
settings.py     compatibility and mode: of a subject, a context, global
store.py        SQLite
subjects.py     names of subjects and their contexts
refusals.py     Confluent's error codes
"""
