"""States and what follows a failure: restarts, history, what outlives the process, levels of loggers."""
