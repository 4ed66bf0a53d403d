"""Where records rest: bytes in, bytes out. The log's clients (producer, consumer, admin) and the embedded log (broker/).

Nothing is imported here: kafka-python takes a while to load, and what only packs or unpacks batches does without it.
"""
