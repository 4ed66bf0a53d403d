"""Following all files that the globs name, through every kind of rotation: whose lines come next.

A file is known by what it is, not by its name (log_file.py). One that loses its name is read to its end: until it has not grown for
`rotate_wait` seconds. Whoever gets the name after it waits for that, for some seconds at most, so that lines keep their order. Rotated
files that the globs do not name are read if they were written since we last read their predecessor: they had the name while nobody looked.
"""

import collections
import errno
import logging
import math
import os
import resource
import time

from connectors.file import rotation
from connectors.file.open_file import OpenFile, Rewritten
from connectors.file.rotation import MARK_BYTES, SURE_BYTES, Place
from connectors.logs.birth import born, born_of
from connectors.logs.compressed_file import CompressedFile, first_bytes, holds
from connectors.logs.contents import Contents
from connectors.logs.log_file import LogFile, Slots
from connectors.logs.names import Siblings, bases_of, compression
from connectors.logs.ready import Ready
from standalone import ConfigError

log = logging.getLogger(__name__)

EVENTS = "events"  # a flush of what only its successor would end
SECONDS_FOR_PREDECESSOR = 10.0  # a file waits no longer for the one that had its name before
SECONDS_TO_SETTLE = 2.0  # a compressed file that was written to since may still be written
SECONDS_AFTER_TROUBLE = 5.0
LEAST_DEAD = 1000  # files that are gone and remembered, whatever their age


class Follower:
    def __init__(self, discovery, limits, rules, events, offset_reader):
        self._discovery = discovery
        self._limits = limits
        self._rules = rules
        self._events = events
        self.slots = Slots()
        self._files = {}  # device and inode -> LogFile
        self._by_home = collections.defaultdict(list)
        self._by_event = {}  # (folder, name) -> LogFile
        self._copies = {}  # device and inode of what has the content of another file -> when it was made
        self._last_of = {}  # name -> the file that had it last and lost it
        self._open = collections.OrderedDict()
        self._most_open = rules.most_open or _descriptors()
        self._dead = collections.deque()
        self._held = collections.defaultdict(list)  # file -> those that wait for it
        self._ready = Ready(rules.oldest_first)
        self._stored = collections.defaultdict(list)  # by inode, or by name where somebody has set the position by hand
        for file in self.slots.load(offset_reader):
            self._stored[file.place.inode or file.home].append(file)
        self._at_end_first = rules.start_at_end and not self._stored
        self._scan_wanted = True
        self._next_scan = self._next_full = 0.0
        self._real_folders = {}
        self._siblings, self._contents = {}, None
        self._is_first = True
        self._unread = []
        self._undecided = False

    # --- For the task ------------------------------------------------------------------------------------------------

    def read(self):
        """(LogFile, its next Lines), or None if there are none for now."""
        self._look()
        while (file := self._ready.take()) is not None:
            if self._must_wait(file):
                continue
            lines = self._lines_of(file)
            if lines is not None:
                file.used_at = time.monotonic()
                self._ready.add(file)
                self.slots.give(file)
                return file, lines
        return None

    def wait(self, seconds):
        """Until something may have changed, or `wake` was called on the events."""
        now = time.monotonic()
        scan = self._next_scan if self._scan_wanted else self._next_full
        seconds = min(seconds, scan - now, self._ready.patience())
        self._take_events(max(seconds, 0))

    @property
    def is_at_end(self):
        """Whether all there is has been read; files that wait for their time do not count."""
        return self._ready.is_idle and not self._scan_wanted and not self._undecided

    def status(self):
        """For a log line: (files known, open ones)."""
        return len(self._files), len(self._open)

    def close(self):
        for file in list(self._open):
            file.close()
        self._open.clear()

    # --- Looking -----------------------------------------------------------------------------------------------------

    def _look(self):
        self._take_events(0)
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
        self._scan_wanted = self._undecided = False
        self._siblings, self._contents = {}, None
        found = self._discovery.scan()
        if self._events.watch(self._discovery.folders):
            found = self._discovery.scan()  # what was written before we watched
        self._take(found)
        now = time.monotonic()
        took = now - begun
        self._next_scan = now + 4 * took
        idle = max(self._rules.poll_seconds, 50 * took) if self._events.is_blind else max(self._rules.scan_seconds, 200 * took)
        self._next_full = now + (min(idle, 1.0) if self._undecided else idle)
        self._is_first = False

    def _take(self, found):
        """Compare what is there with what we know: files that were renamed, that are gone, that are new."""
        listed, unknown, lost, self._unread = set(), [], [], []
        for each in found:
            file = self._files.get(each.key)
            if file is not None and file.reader is None and self._has_new_owner(file, each):
                self._forget(file)  # another file has got the inode number
                file.is_lost, file.is_listed = True, False
                lost.append(file)
                file = None
            if file is None:
                file = self._recalled(each)
            if file is None:
                unknown.append(each)
                continue
            listed.add(each.key)
            if self._update(file, each):
                lost.append(file)
        if self._copies:
            there = {each.key for each in unknown}
            self._copies = {key: made for key, made in self._copies.items() if key in there}
        for file in [file for file in self._files.values() if file.is_listed and file.key not in listed]:
            file.is_listed = False
            if not file.is_lost or file.reader is None:
                lost.append(file)
            file.is_lost = True
        lost += self._recall_rest()
        for file in self._unread:
            self._truncated_unread(file, {each.key for each in unknown})
        names = {each.path for each in found}
        for file in sorted(lost, key=lambda file: file.place.written_ns):
            self._lose(file, {each.key for each in unknown})
        for each in sorted(unknown, key=lambda each: (each.written_ns, each.path)):
            self._add_new(each, names)
        self._by_event = {self._event_key(each.real): file for each in found if (file := self._files.get(each.key)) is not None}
        self._clean()

    @staticmethod
    def _has_new_owner(file, each):
        changed = file.path != each.path or (each.size, each.written_ns) != file.seen
        return changed and file.born and born(each.path) != file.born

    def _update(self, file, each):
        """What was found of a file we know; whether it has lost the name it was written under just now."""
        was_lost = file.is_lost
        if file.path != each.path:
            log.info("'%s' is '%s' now.", file.path, each.path)
            file.path = each.path
            if file.reader is not None:
                file.reader.path = each.path
        file.is_listed = True
        file.is_lost = each.path != file.home
        if (each.size, each.written_ns) != file.seen:
            if file.seen is not None and file.place.position == 0:
                self._unread.append(file)
            file.is_over = False
            self._ready.add(file)
        return file.is_lost and not was_lost

    def _event_key(self, path):
        folder, name = os.path.split(path)
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder)
        return self._real_folders[folder], name

    def _recalled(self, each):
        """The file we knew before we were started, by its inode or, where somebody has set the position, by its name."""
        for file in (*self._stored.get(each.key[1], ()), *self._stored.get(each.path, ())):
            if file.place.inode and not self._is_the_same(file, each.path):
                continue
            self._stored[file.place.inode or file.home].remove(file)
            file.key, file.path = each.key, each.path
            file.born = born(each.path)
            file.is_lost = False  # whether it has, is found out anew
            self._keep(file)
            return file
        return None

    def _is_the_same(self, file, path):
        now = born(path)
        if file.born and now:
            return file.born == now
        return holds(path, file.place)

    def _recall_rest(self):
        """Those we knew before we were started and that have none of the names that are asked for."""
        rest = [file for files in self._stored.values() for file in files]
        self._stored.clear()
        for file in rest:
            file.is_lost, file.is_listed = True, False
            if file.place.inode:
                self._by_home[file.home].append(file)
            else:
                self._die(file)
        return [file for file in rest if file.place.inode]

    # --- Files that lost their name ----------------------------------------------------------------------------------

    def _lose(self, file, unknown):
        """It has another name now, or none: read it to its end, then what had its name since, then whoever has it now."""
        if file.reader is None and not file.is_listed and not self._find_again(file):
            place = file.place
            self._forget(file)
            self._die(file)
            if not file.is_over:
                log.info("'%s' is gone, read up to byte %d.", file.home, place.position)
        else:
            file.is_passed = False
            self._ready.add(file)
        self._chain(file, self._missed(file.home, file, file.place, unknown))

    def _find_again(self, file):
        """It, or a copy of it, under a name that nobody asks for."""
        siblings = self._beside(file.home)
        sibling = siblings.by_inode.get(file.place.inode)
        if sibling is not None and self._files.get(sibling.key) in (None, file) and self._is_the_same(file, sibling.path):
            return self._go_to(file, sibling)
        copy = self._copy_of(file, file.place)
        if copy is None:
            return False
        log.info("What was '%s' is '%s' now: going on there at byte %d.", file.home, copy.path, file.place.position)
        return self._go_to(file, copy)

    def _go_to(self, file, sibling):
        self._files.pop(file.key, None)
        self._copies.pop(sibling.key, None)
        file.key, file.path, file.born = sibling.key, sibling.path, born(sibling.path)
        self._keep(file)
        return True

    def _copy_of(self, file, place):
        """The oldest rotated file that has what was read of it."""
        names = [file.home, *(os.path.join(os.path.dirname(file.home), base) for base in bases_of(os.path.basename(file.home)))]
        for sibling in (sibling for name in names for sibling in self._generations(name)):
            if sibling.key != file.key and sibling.key not in self._files and sibling.written_ns >= place.written_ns and holds(sibling.path, place):
                return sibling
        return None

    def _missed(self, home, file, place, unknown):
        """Rotated files that had that name after `file` did, and that we never saw; the oldest first."""
        generations = self._generations(home)
        at = next((at for at, sibling in enumerate(generations) if sibling.key == file.key), None)
        later = generations[at + 1 :] if at is not None else [sibling for sibling in generations if sibling.age > (place.written_ns, math.inf)]
        missed = []
        for sibling in later:
            if sibling.key in self._files or sibling.key in unknown or sibling.key in self._copies:
                continue
            verdict = self._is_copy(sibling.path, sibling.written_ns)
            if verdict is None:
                self._undecided = True
            elif not verdict:
                missed.append(sibling)
        return missed

    def _chain(self, file, missed):
        last = file
        for sibling in missed:
            log.info("'%s' was '%s' while nobody looked: it is read now.", sibling.path, file.home)
            next_one = LogFile(file.home, sibling.path, sibling.key, born(sibling.path), Place(0, sibling.key[1], sibling.written_ns))
            next_one.is_lost, next_one.is_listed = True, False
            self._wait_for(next_one, last)
            self._keep(next_one)
            self._ready.add(next_one)
            last = next_one
        self._last_of[file.home] = last
        for successor in self._by_home[file.home]:
            if not successor.is_lost and successor is not last and successor.after in (None, file) and not successor.is_passed:
                self._wait_for(successor, last)
        return last

    def _is_copy(self, path, written_ns):
        """Whether a file has the content of one that we read: a copy, maybe compressed. None: it cannot be told yet."""
        self._contents = self._contents or Contents(self._by_home)
        if self._contents.hold(path):
            return True
        if compression(path) and self._is_of_unread(path):
            return True
        if compression(path) and time.time() - written_ns / 1e9 < SECONDS_TO_SETTLE:
            return None
        return False

    def _is_of_unread(self, path):
        """Whether it was made of an open file of which no finished line was read yet: that one is read to its end."""
        plain = os.path.splitext(path)[0]
        for known in self._open:
            if plain in (known.path, known.home) and known.place.position == 0 and not known.reader.complete:
                first = os.pread(known.reader.descriptor, MARK_BYTES, 0)
                if first and first == first_bytes(path, MARK_BYTES):
                    return True
        return False

    # --- New files ---------------------------------------------------------------------------------------------------

    def _add_new(self, each, names):
        if each.key in self._files or each.key in self._copies and self._copies[each.key] == born(each.path):
            return
        if self._rules.ignore_older is not None and time.time() - each.written_ns / 1e9 > self._rules.ignore_older:
            return  # not before it is written to
        folder, name = os.path.split(each.path)
        homes = [os.path.join(folder, base) for base in bases_of(name)]
        for home in homes:
            self._look_for_truncation(home)
        if each.key in self._files:
            return  # it has what was truncated
        verdict = self._is_copy(each.path, each.written_ns) if homes else self._is_put_back(each)
        if verdict is None:
            self._undecided = True
            return
        if verdict:
            self._copies[each.key] = born(each.path)
            return
        file = LogFile(each.path, each.path, each.key, born(each.path), Place(0, each.key[1], each.written_ns))
        self._wait_for(file, self._last_of.get(each.path))
        self._keep(file)
        self._ready.add(file)
        if self._at_end_first and self._is_first:
            self._go_to_end(file)
        is_quiet = time.time() - each.written_ns / 1e9 > self._limits.rotate_wait
        for home in homes:
            if is_quiet and (home in names or home in self._last_of):  # a generation: whoever has the name now comes after it
                if self._last_of.get(home) is not file:
                    self._wait_for(file, self._last_of.get(home))
                self._last_of[home] = file
                for known in self._by_home.get(home, ()):
                    if known is not file and not known.is_lost and known.place.position == 0:
                        self._wait_for(known, file)

    def _look_for_truncation(self, home):
        """A rotated file turned up: what was truncated comes before it."""
        for known in self._by_home.get(home, ()):
            if known.is_listed and not known.is_lost and known.place.position and not holds(known.path, known.place):
                try:
                    if known.reader is not None or self._resume(known):
                        self._begin_anew(known, known.place)
                except OSError:
                    continue  # it is found out when it is read
                return

    def _is_put_back(self, each):
        """Whether it is the file that had the name before, put back from a copy: equal content of some length. Then that one goes on in it."""
        for known in self._by_home.get(each.path, ()):
            if not known.is_listed and known.reader is None and known.place.position >= SURE_BYTES and holds(each.path, known.place):
                log.info("'%s' is another file now, but with the same content up to byte %d: going on there.", each.path, known.place.position)
                self._files.pop(known.key, None)
                known.key, known.path, known.born, known.dead_at = each.key, each.path, born(each.path), None
                known.is_lost, known.is_listed, known.is_over, known.seen = False, True, False, None
                self._by_home[each.path].remove(known)
                self.slots.give(known)
                self._keep(known)
                self._ready.add(known)
                return True
        return False

    def _go_to_end(self, file):
        try:
            reader = self._opened(file)
        except (OSError, ConfigError):
            return
        if reader.complete:
            while reader.read() is not None:
                pass
        else:
            size = reader.status().st_size
            tail = os.pread(reader.descriptor, min(size, 1 << 20), max(0, size - (1 << 20)))
            reader.go_on_from(size - (len(tail) - tail.rfind(b"\n") - 1))
        file.place = reader.place()
        reader.close()

    # --- Reading -----------------------------------------------------------------------------------------------------

    def _must_wait(self, file):
        """Whether it is not its turn, as the file before it is not read to its end."""
        before = file.after
        if before is None:
            return False
        left = file.after_until - time.monotonic()
        if before.is_passed or before.is_over or before.dead_at is not None or left <= 0:
            file.after = None
            return False
        self._held[before].append(file)
        self._ready.add_later(file, left)
        return True

    def _wait_for(self, file, before):
        if before is not None and before is not file and not before.is_over and before.dead_at is None:
            file.after, file.after_until = before, time.monotonic() + SECONDS_FOR_PREDECESSOR

    def _passed(self, file):
        file.is_passed = True
        for waiting in self._held.pop(file, ()):
            self._ready.add(waiting)

    def _lines_of(self, file):
        try:
            if file.reader is None and not self._resume(file):
                return None
            lines = file.reader.read()
            return lines if lines is not None else self._at_end(file)
        except Rewritten:
            self._begin_anew(file, file.place)
        except OSError as error:
            self._trouble(file, error)
        return None

    def _at_end(self, file):
        """Nothing finished is left in it for now. Lines: what counts as finished all the same."""
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
            self._passed(file)
        elif self._held.get(file):
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
            log.info("'%s' is read to its end, byte %d.", file.path, file.place.position)
        file.seen = file.reader.seen
        is_deleted = file.reader.status().st_nlink == 0
        self._close(file)
        file.is_over = True
        if file.copy_of is not None and file.slot is None:
            file.copy_of.remember_copy(file.place)
        self._passed(file)
        if is_deleted:
            self._forget(file)
            self._die(file)

    def _begin_anew(self, file, place):
        """It was truncated behind that place. A copy made before, if there is one, has what we have not seen."""
        line = file.line
        log.warning("'%s' was truncated or rewritten: %d bytes were read. It is read from its beginning.", file.path, place.position)
        self._siblings, self._contents = {}, None
        before = None
        copy = self._copy_of(file, place)
        if copy is not None:
            log.info("What was not read of it yet is read from its copy '%s'.", copy.path)
            before = LogFile(file.home, copy.path, copy.key, born(copy.path), place, line)
            before.is_lost, before.is_listed, before.copy_of = True, copy.key in self._copies, file
            self._copies.pop(copy.key, None)
            self._wait_for(before, file.after)
            self._keep(before)
            self._ready.add(before)
        missed = self._missed(file.home, before or file, place, ())
        file.reader.restart()
        file.line, file.is_passed, file.seen = 0, False, None
        if before is None and missed:
            before = self._chain_from(file, missed)
        elif before is not None:
            before = self._chain(before, missed)
        self._last_of.pop(file.home, None)
        file.after = None
        self._wait_for(file, before)
        self._ready.add(file)

    def _truncated_unread(self, file, unknown):
        """It was written to and no finished line of it was read: if it was copied and truncated, the copy counts as missed."""
        missed = self._missed(file.home, file, file.place, unknown)
        if missed:
            file.after = None
            self._wait_for(file, self._chain_from(file, missed))

    def _chain_from(self, file, missed):
        first, *rest = missed
        begun = LogFile(file.home, first.path, first.key, born(first.path), Place(0, first.key[1], first.written_ns))
        begun.is_lost, begun.is_listed = True, False
        self._keep(begun)
        self._ready.add(begun)
        return self._chain(begun, rest)

    def _resume(self, file):
        """Open it where reading stopped. False: it is not there, or not it; the next look will tell."""
        try:
            reader = self._opened(file)
        except FileNotFoundError:
            self._scan_wanted = True
            file.seen = None
            return False
        except ConfigError as error:
            self._refused(file, str(error))
            return False
        except OSError as error:
            self._trouble(file, error)
            return False
        if file.trouble is not None:
            log.info("'%s' can be read now.", file.path)
            file.trouble = None
        if (reader.device, reader.inode) != file.key or (file.born and born_of(reader.descriptor) != file.born):
            reader.close()
            self._scan_wanted = True
            file.seen = None
            return False
        place, file.reader = file.place, reader
        self._open[file] = True
        if place.position == 0:
            return True
        if place.inode == 0:
            self._go_on_by_hand(file, place)
        elif isinstance(reader, CompressedFile) or place.is_in(reader.descriptor):
            reader.go_on_from(place.position)
        else:
            self._begin_anew(file, place)
            return False
        return True

    def _go_on_by_hand(self, file, place):
        position = rotation.position_in_bytes(file.reader.descriptor, place.position)
        if position > file.reader.status().st_size:
            log.warning("'%s' has fewer bytes than the stored position %d: it is read from its beginning.", file.path, position)
        else:
            file.reader.go_on_from(position)

    def _opened(self, file):
        while len(self._open) >= self._most_open and self._park_one():
            pass
        make = CompressedFile if compression(file.path) else OpenFile
        try:
            return make(file.path, self._limits)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._park_one():
                raise
            self._most_open = max(8, len(self._open))
            return make(file.path, self._limits)

    def _park_one(self):
        """Close the file that was read longest ago. One without a name could not be opened again."""
        for file in self._open:
            if file.is_listed or not file.is_lost:
                self._close(file)
                return True
        return False

    def _close(self, file):
        file.close()
        self._open.pop(file, None)

    def _trouble(self, file, error):
        if isinstance(error, FileNotFoundError):
            self._scan_wanted = True
            return
        why = error.strerror or str(error)
        if compression(file.path) and error.errno is None:
            if file.reader is not None and time.time() - file.reader.status().st_mtime > SECONDS_TO_SETTLE:
                log.warning("'%s' is damaged (%s): what could be read of it, %d bytes, is all that comes.", file.path, why, file.place.position)
                self._end(file)
                return
            if file.reader is not None:
                self._close(file)
        self._refused(file, f"cannot be read ({why})")

    def _refused(self, file, why):
        if file.trouble != why:
            file.trouble = why
            log.warning("'%s' %s: it is tried again every %d s.", file.path, why, SECONDS_AFTER_TROUBLE)
        self._ready.add_later(file, SECONDS_AFTER_TROUBLE)

    # --- Keeping -----------------------------------------------------------------------------------------------------

    def _keep(self, file):
        self._files[file.key] = file
        if file not in self._by_home[file.home]:
            self._by_home[file.home].append(file)
        file.dead_at = None

    def _forget(self, file):
        """No file on disk is it any more."""
        if self._files.get(file.key) is file:
            del self._files[file.key]
        if file.reader is not None:
            self._close(file)
        self._ready.forget(file)

    def _die(self, file):
        """It is gone. Its marks are kept for a while: a compressed copy of it may turn up."""
        file.dead_at = time.monotonic()
        self._dead.append(file)
        self._passed(file)

    def _clean(self):
        now = time.monotonic()
        most = max(LEAST_DEAD, len(self._files))
        while self._dead and (len(self._dead) > most or now - (self._dead[0].dead_at or 0) > self._rules.clean_removed):
            file = self._dead.popleft()
            if file.dead_at is None or file.key in self._files and self._files[file.key] is file:
                continue  # it came back
            if file in self._by_home.get(file.home, ()):
                self._by_home[file.home].remove(file)
            if not self._by_home.get(file.home):
                self._by_home.pop(file.home, None)
            if self._last_of.get(file.home) is file:
                del self._last_of[file.home]
            self.slots.take_back(file)
        for file in [file for file in self._open if now - file.used_at > self._rules.close_inactive and file.is_listed and not file.is_queued]:
            if file.seen is not None:
                self._close(file)

    def _generations(self, home):
        """The rotated files of that name, the oldest first; of a link those of the file it leads to."""
        return self._beside(home).generations(os.path.basename(os.path.realpath(home)))

    def _beside(self, path):
        folder = os.path.dirname(os.path.realpath(path))
        if folder not in self._siblings:
            self._siblings[folder] = Siblings(folder, self._discovery.exclude)
        return self._siblings[folder]


def _descriptors():
    """How many files may be open at once: half of what the process may have, and not more than are of any use."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2048 if soft == resource.RLIM_INFINITY else max(16, min(2048, soft // 2))
