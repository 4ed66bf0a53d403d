"""Task threads: how source and sink tasks run, and the group of a connector's tasks."""
