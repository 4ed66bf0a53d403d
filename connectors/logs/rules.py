"""Settings for choosing, opening, closing and forgetting files."""

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
    scan_seconds: float = 10.0  # between full scans, even with notifications
    poll_seconds: float = 0.2  # without notifications
    most_open: int = None
    whole_files: bool = False  # the end of a file ends its last line: files are complete
