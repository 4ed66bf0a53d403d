"""Source offsets: the journal, the tracker that decides which offsets may be stored, and tools for operators."""
