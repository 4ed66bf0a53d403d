"""What happens to a record that fails in the chain: the task fails (errors.tolerance=none), or it is skipped (all)."""

import logging

log = logging.getLogger(__name__)


class Tolerance:
    def __init__(self, config):
        self._all = str(config.get("errors.tolerance", "none")).lower() == "all"
        self._logs = config.get("errors.log.enable", False)
        self._shows = config.get("errors.log.include.messages", False)
        self.skipped = 0

    def judge(self, failures):
        """Returns if all these failures are tolerated; else raises the first."""
        for failure in failures:
            if self._logs:
                shown = f", on the record {failure.record!r}" if self._shows and failure.record is not None else ""
                log.error("Error in stage %s %s%s: %s", failure.stage, failure.name or "", shown, failure.error)
            if not self._all:
                raise failure from failure.error
            self.skipped += 1

    @property
    def none(self):
        return not self._all
