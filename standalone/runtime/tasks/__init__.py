"""The threads of tasks: how a source and a sink run, and the group of a connector's tasks."""
