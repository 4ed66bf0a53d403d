"""The keys of the worker and of connectors, parsed and validated, with all errors reported at once."""
