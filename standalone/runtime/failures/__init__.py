"""What happens to records that fail: retries, tolerance, dead letters, errant records."""
