"""Failed records: retries, tolerance, dead letter queues, errant records."""
