"""Supervision: states, restarts after failures, history, state that survives a restart of the process, log levels."""
