"""connectctl's operations beyond the REST API: previews, reading and writing topics, replay of dead letters."""
