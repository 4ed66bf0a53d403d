"""What becomes of records that fail: retries, tolerance, dead letters, errant records."""
