"""What connectctl does beside asking the REST API: previews, the log by its own clients, dead letters sent again."""
