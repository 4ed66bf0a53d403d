"""The worker's own registry: Confluent's REST API over SQLite, on its own listener.

listener.py     the address, the thread, the hosts that are answered to
api.py          the table of requests, and what each answers
bodies.py       what a request may carry, what an answer shows
registry.py     what may be registered, found, deleted
settings.py     compatibility and mode: of a subject, a context, all
store.py        SQLite
subjects.py     names of subjects and their contexts
refusals.py     Confluent's error codes
"""
