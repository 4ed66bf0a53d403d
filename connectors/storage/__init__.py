"""Files of a lake: sinks that put topics into files, and what they share."""
