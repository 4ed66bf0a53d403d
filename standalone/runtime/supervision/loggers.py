"""Log levels, changed at run time by Connect's level names; they survive a restart."""

import logging
import threading

from standalone.errors import NotFoundError

ROOT = "root"
_JAVA = "org.apache.kafka.connect"  # requests for Connect's loggers change ours
_OURS = "standalone"


class Loggers:
    LEVELS = {"OFF": 100, "FATAL": 50, "ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10, "TRACE": 5, "ALL": 1}

    def __init__(self, state, clock):
        self._state = state
        self._clock = clock
        self._lock = threading.Lock()
        self._set = {}  # name -> (level, timestamp in ms)

    def restore(self):
        """Set the levels stored by an earlier run of this worker."""
        for name, level, modified_ms in self._state.loggers():
            self._set[name] = (level, modified_ms)
            _logger(name).setLevel(self.LEVELS[level])

    def knows_level(self, level):
        return level.upper() in self.LEVELS

    def all(self):
        """{name: {level, last_modified}} of the root and of each logger with its own level, sorted by name."""
        with self._lock:
            found = {name: {"level": level, "last_modified": modified} for name, (level, modified) in self._set.items()}
        found.setdefault(ROOT, {"level": _name_of(logging.getLogger().level), "last_modified": None})
        return dict(sorted(found.items()))

    def get(self, name):
        found = self.all().get(name)
        if found is None and isinstance(logging.root.manager.loggerDict.get(name), logging.Logger):
            found = {"level": _name_of(logging.getLogger(name).getEffectiveLevel()), "last_modified": None}
        if found is None:
            raise NotFoundError(f"There is no logger '{name}'.")
        return found

    def set(self, name, level):
        """Set the level of a logger and those below it; return the names of those whose level changed."""
        level, now = level.upper(), self._clock.now_ms()
        with self._lock:
            meant = {name, *(each for each in self._set if name == ROOT or each.startswith(f"{name}."))}
            touched = sorted(each for each in meant if _name_of(_logger(each).getEffectiveLevel()) != level)
            for each in touched:
                self._set[each] = (level, now)
                _logger(each).setLevel(self.LEVELS[level])
        self._state.put_loggers([(each, level, now) for each in touched])
        return touched


def _logger(name):
    if name == ROOT:
        return logging.getLogger()
    return logging.getLogger(_OURS if name == _JAVA else name)


def _name_of(number):
    """The name of the level that has this number."""
    return next((name for name, low in sorted(Loggers.LEVELS.items(), key=lambda item: item[1]) if number <= low), "OFF")
