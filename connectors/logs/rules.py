"""How files are chosen, kept open and forgotten."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Rules:
    """Times in seconds; None: never."""

    start_at_end: bool = False
    oldest_first: bool = False
    ignore_older: float = None
    close_inactive: float = 300.0
    clean_removed: float = 3600.0
    flush_partial: float = None
    flush_events: float = None
    scan_seconds: float = 10.0  # between two looks at everything, though changes are reported
    poll_seconds: float = 0.2  # where they are not
    most_open: int = None
    whole_files: bool = False  # what is at the end of a file is a line: nothing more is waited for
