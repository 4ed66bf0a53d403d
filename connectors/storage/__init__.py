"""File sinks for data lakes and object stores, and shared code."""
