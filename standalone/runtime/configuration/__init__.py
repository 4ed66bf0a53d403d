"""The keys of the worker and of connectors, and what a configuration means: checked, with every error at once."""
