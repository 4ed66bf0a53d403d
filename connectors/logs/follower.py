"""Follows all files that match the globs through every kind of rotation, and decides which file to read next.

    discovery.py    files on disk                    known.py        files that are, or were, followed
    succession.py   order of files with one name     copies.py       which files are copies
    ready.py        files ready to read              turns.py        files that wait for others
    open_files.py   open files

A file is identified by its inode and content, not by its name (log_file.py). A file that loses its name is read to its end: until it has
not grown for `rotate_wait` seconds. The next file with the name waits for that, for some seconds at most, to keep lines in order.
"""

import logging
import os
import time

from connectors.file.open_file import Rewritten
from connectors.file.rotation import Place
from connectors.logs.copies import SECONDS_TO_SETTLE
from connectors.logs.known import Known
from connectors.logs.log_file import LogFile, Slots
from connectors.logs.names import compression
from connectors.logs.open_files import Gone, OpenFiles
from connectors.logs.ready import Ready
from connectors.logs.start_at_end import end_of
from connectors.logs.succession import Succession
from connectors.logs.turns import Turns
from standalone import ConfigError

log = logging.getLogger(__name__)

EVENTS = "events"  # a flush of the last event, which only a following line would end
SECONDS_AFTER_TROUBLE = 5.0


class Follower:
    def __init__(self, discovery, limits, rules, events, offset_reader):
        self._discovery = discovery
        self._limits = limits
        self._rules = rules
        self._events = events
        self._known = Known(Slots(), offset_reader, rules.start_at_end)
        self._ready = Ready(rules.oldest_first)
        self._turns = Turns(self._ready)
        self._open = OpenFiles(limits, rules.most_open)
        self._succession = Succession(self._known, self._open, self._ready, self._turns, discovery.exclude, limits.rotate_wait)
        self._by_event = {}  # (folder, name) -> LogFile
        self._scan_wanted = True
        self._next_scan = self._next_full = 0.0
        self._real_folders = {}
        self._is_first = True

    # --- For the task ------------------------------------------------------------------------------------------------

    def read(self):
        """(LogFile, its next Lines), or None if there are none now."""
        self._look()
        while (file := self._ready.take()) is not None:
            if self._turns.must_wait(file):
                continue
            lines = self._lines_of(file)
            if lines is not None:
                self._open.used(file)
                self._turns.heard_of(file)
                self._ready.add(file)
                self._known.slots.give(file)
                file.leave_mark()
                return file, lines
        return None

    def wait(self, seconds):
        """Wait until something may have changed, or `wake` was called on the events."""
        now = time.monotonic()
        scan = self._next_scan if self._scan_wanted else self._next_full
        seconds = min(seconds, scan - now, self._ready.patience())
        self._take_events(max(seconds, 0))

    @property
    def is_at_end(self):
        """Whether everything has been read; files that wait for a timeout do not count."""
        return self._ready.is_idle and not self._scan_wanted and not self._succession.is_undecided

    def look_at_all(self):
        """Scan all files at the next read, even without events."""
        self._next_full = 0.0

    def close_files(self):
        """Close all open files; each is reopened when it is read next."""
        self._open.close_all()

    close = close_files

    # --- Scanning -----------------------------------------------------------------------------------------------------

    def _look(self):
        self._take_events(0)
        self._turns.look()
        self._ready.wake_due()
        now = time.monotonic()
        if now >= self._next_full or (self._scan_wanted and now >= self._next_scan):
            self._scan(now)

    def _take_events(self, seconds):
        written, names = self._events.take(seconds)
        self._scan_wanted |= names
        for place in written:
            file = self._by_event.get(place)
            if file is not None:
                self._ready.add(file)
            else:
                self._scan_wanted = True

    def _scan(self, begun):
        self._scan_wanted = False
        found = self._discovery.scan()
        if self._events.watch(self._discovery.folders):
            found = self._discovery.scan()  # written before the watch started
        self._take(found)
        now = time.monotonic()
        took = now - begun
        self._next_scan = now + 4 * took
        idle = max(self._rules.poll_seconds, 50 * took) if self._events.is_blind else max(self._rules.scan_seconds, 200 * took)
        self._next_full = now + (min(idle, 1.0) if self._succession.is_undecided else idle)
        self._is_first = False

    def _take(self, found):
        """Compare the files on disk with the known ones: find renamed, deleted and new files."""
        known, unknown, lost, unread = self._known, [], [], []
        listed = set()
        for each in found:
            file = known.files.get(each.key) or known.recalled(each)
            if file is None:
                unknown.append(each)
                continue
            listed.add(each.key)
            self._update(file, each, lost, unread)
        for file in [file for file in known.files.values() if file.is_listed and file.key not in listed]:
            file.is_listed = False
            if not file.is_lost or file.reader is None:
                lost.append(file)
            file.is_lost = True
        lost += known.rest()
        self._succession.begin_look(unknown, {each.path for each in unknown if not self._is_too_old(each)})
        for file in unread:
            self._succession.unread(file)
        self._succession.lost(lost)
        self._succession.written_behind()
        unknown = [each for each in unknown if each.key not in known.files and not self._is_too_old(each)]
        for each in unknown:
            self._succession.turned_up(each.path)
        self._succession.settle()
        names = {each.path for each in found}
        for each in sorted(unknown, key=lambda each: (each.written_ns, each.path)):
            if each.key not in known.files:
                self._succession.new(each, names, lambda each=each: self._begun(each))
        self._by_event = {self._event_key(each.real): file for each in found if (file := known.files.get(each.key)) is not None}
        known.clean(self._rules.clean_removed)
        self._open.close_idle(self._rules.close_inactive)

    def _update(self, file, each, lost, unread):
        """Update a known file from the scan."""
        was_lost = file.is_lost
        if file.path != each.path:
            log.info("'%s' is '%s' now.", file.path, each.path)
            file.path = each.path
            if file.reader is not None:
                file.reader.path = each.path
        file.is_listed = True
        file.is_lost = each.path != file.home
        if (each.size, each.written_ns) != file.seen:
            if file.is_unknown and file.noted not in (None, (each.size, each.written_ns)):
                unread.append(file)
            file.is_over = False
            self._ready.add(file)
        file.noted = each.size, each.written_ns
        if file.is_lost and not was_lost:
            lost.append(file)

    def _is_too_old(self, each):
        """Whether it is not read until it is written to."""
        return self._rules.ignore_older is not None and time.time() - each.written_ns / 1e9 > self._rules.ignore_older

    def _begun(self, each):
        """Start following a new file."""
        file = LogFile(each.path, each.path, each.key, Place(0, each.key[1], each.written_ns))
        file.noted = each.size, each.written_ns
        self._known.keep(file)
        self._ready.add(file)
        if self._known.was_there_before_us(file, self._is_first):
            self._go_to_end(file)
        return file

    def _go_to_end(self, file):
        try:
            reader = self._open.opened(file.path)
        except (OSError, ConfigError):
            return  # the error is logged when it is read
        try:
            file.place = end_of(reader, self._limits)
        finally:
            reader.close()

    def _event_key(self, path):
        folder, name = os.path.split(path)
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder)
        return self._real_folders[folder], name

    # --- Reading -----------------------------------------------------------------------------------------------------

    def _lines_of(self, file):
        try:
            if file.reader is None:
                lost = self._open.resume(file)
                self._is_well(file)
                if lost is not None:
                    self._succession.truncated(file, *lost)
                    return None
            lines = file.reader.read()
            return lines if lines is not None else self._at_end(file)
        except Rewritten:
            self._succession.truncated(file, file.place, file.held)
        except Gone:
            self._scan_wanted = True  # the next scan finds out
            file.seen = None
        except ConfigError as error:
            self._refused(file, str(error))
        except OSError as error:
            self._trouble(file, error)
        return None

    def _at_end(self, file):
        """No complete line is left for now. Return Lines if an incomplete one counts as complete."""
        reader, rules = file.reader, self._rules
        file.seen = reader.seen
        quiet = reader.quiet_for()
        if file.is_lost or reader.complete:
            wait = self._limits.rotate_wait
            if quiet < wait:
                self._ready.add_later(file, wait - quiet)
                return None
            lines = reader.read(final=True)
            if lines is None:
                self._end(file)
            return lines
        if rules.whole_files:
            return reader.read(final=True)
        if quiet >= self._limits.rotate_wait:
            self._turns.passed(file)
        elif self._turns.is_awaited(file):
            self._ready.add_later(file, self._limits.rotate_wait - quiet)
        if file.seen is None or file.seen[0] <= reader.position:
            return None
        for seconds, flush in ((rules.flush_events, EVENTS), (rules.flush_partial, True)):
            if seconds is not None:
                if quiet >= seconds:
                    lines = reader.read(final=flush)
                    if lines is not None:
                        return lines
                else:
                    self._ready.add_later(file, seconds - quiet)
        return None

    def _end(self, file):
        if not file.is_over:
            log.info("'%s' was read to its end at byte %d.", file.path, file.place.position)
        file.seen = file.reader.seen
        is_deleted = file.reader.status().st_nlink == 0
        self._open.close(file)
        file.is_over = True
        if file.copy_of is not None and file.slot is None:
            file.copy_of.remember_copy(file.place)
        self._turns.passed(file)
        if is_deleted:
            self._succession.gone(file)

    # --- Errors -----------------------------------------------------------------------------------------

    def _trouble(self, file, error):
        if isinstance(error, FileNotFoundError):
            self._scan_wanted = True
            return
        why = error.strerror or str(error)
        if compression(file.path) and error.errno is None and file.reader is not None:
            if time.time() - file.reader.status().st_mtime > SECONDS_TO_SETTLE:
                log.warning("'%s' is damaged (%s): only its first %d bytes could be read.", file.path, why, file.place.position)
                self._end(file)
                return
            self._open.close(file)
        self._refused(file, f"cannot be read ({why})")

    def _refused(self, file, why):
        if file.trouble != why:
            file.trouble = why
            log.warning("'%s' %s: retrying every %d s.", file.path, why, SECONDS_AFTER_TROUBLE)
        self._ready.add_later(file, SECONDS_AFTER_TROUBLE)

    @staticmethod
    def _is_well(file):
        if file.trouble is not None:
            log.info("'%s' can be read now.", file.path)
            file.trouble = None
