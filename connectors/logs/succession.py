"""Who had a name before, and who has it next: files that were renamed, copied, truncated, packed or replaced, also while nobody looked.

A file is known by what it is (device, inode, when it was made), a copy by the marks of what was read of its original, and, where
nothing was read yet, of what was seen of its first line. What is neither has content that nobody has read: a rotated file of that
kind is read if it was written since we last read the one that had its name before. copies.py tells which is which.
"""

import contextlib
import itertools
import logging
import math
import os
import time

from connectors.file.rotation import SURE_BYTES, Place
from connectors.logs.compressed_file import holds, place_at_end
from connectors.logs.copies import Copies
from connectors.logs.known import is_the_same
from connectors.logs.log_file import LogFile
from connectors.logs.names import Siblings, bases_of, compression, is_surely_rotated
from connectors.logs.open_files import Gone
from standalone import ConfigError

log = logging.getLogger(__name__)


class Succession:
    def __init__(self, known, open_files, ready, turns, exclude, rotate_wait):
        self._known = known
        self._open_files = open_files
        self._ready = ready
        self._turns = turns
        self._exclude = exclude
        self._rotate_wait = rotate_wait
        self._judge = Copies(known)
        self._copies = set()  # keys of what has the content of another file
        self._unsettled = {}  # name -> files that had it, in order: who had it after each is to be found out
        self._unread = []  # files whose unread content may have been copied and truncated
        self._asked_for = set()  # keys of what was found and is not followed
        self._siblings = {}
        self.is_undecided = False  # something cannot be known yet: look again soon

    def begin_look(self, unknown, coming):
        """`unknown`: what was found and is not followed; `coming`: the names of what will be, unless it is a copy."""
        self._siblings = {}
        self._judge.begin_look(coming)
        self._asked_for = {each.key for each in unknown}
        self._copies &= self._asked_for
        self.is_undecided = False

    # --- Files that lost their name ----------------------------------------------------------------------------------

    def lost(self, files):
        """They have other names now, or none: each is read to its end, then what had its name since, then anyone who has it now."""
        closed = [file for file in files if file.reader is None and not file.is_listed]
        missing = [file for file in closed if not self._find_itself(file)]
        there = set(files).difference(missing)
        for file in sorted(missing, key=lambda file: -file.place.position):  # of two that a copy may be of, it is of the longer one
            if self._find_copy(file):
                there.add(file)
        for file in sorted(files, key=lambda file: file.place.written_ns):
            if file in there:
                file.is_passed = False
                self._ready.add(file)
                if file.is_unknown:
                    self.unread(file)
            else:
                self.gone(file)
                if not file.is_over:
                    log.info("'%s' is gone, read up to byte %d.", file.home, file.place.position)
            self._known.last_of[file.home] = file
            self._unsettled.setdefault(file.home, []).append(file)

    def written_behind(self):
        """Who read them to their end did so too early: anyone who writes had the rotated file open for longer than that."""
        for file in list(self._known.last_of.values()):
            if not file.is_over or file.is_listed or file.dead_at is not None or compression(file.path):
                continue
            sibling = self._beside(file.home).of_inode(file.key[1])
            if sibling is not None and sibling.key == file.key and sibling.size > file.place.position:
                self._go_to(file, sibling)
                file.is_over = False
                self._ready.add(file)

    def gone(self, file):
        """No file on disk is it any more."""
        self._known.leave(file)
        if file.reader is not None:
            self._open_files.close(file)
        self._ready.forget(file)
        self._known.die(file)
        self._turns.passed(file)

    def unread(self, file):
        """It was written to, and nothing of it was read or seen before: it may have been copied and truncated since."""
        self._unread.append(file)

    def settle(self):
        """Find out what came after the files that lost their names."""
        unread, self._unread = self._unread, []
        for file in unread:
            missed = self._missed(file.home, file, file.place, until=file if file.is_lost else None)
            if missed is None:
                self._unread.append(file)
            elif missed:
                self._turns.wait_for(file, self._chain(file.home, None, missed))
                if file.is_lost:
                    self._known.last_of[file.home] = file
        unsettled, self._unsettled = self._unsettled, {}
        for home, files in sorted(unsettled.items(), key=lambda item: len(item[0])):  # app.log.1.gz was app.log rather than app.log.1
            if not self._settle(home, files):
                self._unsettled[home] = files
            elif all(file.is_lost or file.dead_at is not None for file in self._known.by_home.get(home, ())):
                last = self._known.last_of.get(home)
                self._unsettled[home] = [last] if last is not None else []  # who gets the name may lose it before the next look
        self._unsettled = {home: files for home, files in self._unsettled.items() if files}

    def _settle(self, home, files):
        """Whether it could be told who came after each of them."""
        self._look_for_truncation(home)
        files = sorted(files, key=lambda file: file.place.written_ns)  # one that was truncated has younger lines now
        last = None
        for file, following in itertools.zip_longest(files, files[1:]):
            missed = self._missed(home, file, file.place, following)
            if missed is None:
                return False
            if last is not None:
                self._turns.stand_behind(file, last)
            last = self._chain(home, file, missed)
        return True

    def _find_itself(self, file):
        """Under a name that nobody asks for."""
        sibling = self._beside(file.home).of_inode(file.place.inode)
        if sibling is None or self._known.files.get(sibling.key) not in (None, file) or not is_the_same(file, sibling):
            return False
        self._go_to(file, sibling)
        return True

    def _find_copy(self, file):
        copy = self._copy_of(file, file.place, file.held)
        if copy is None:
            return False
        log.info("What was '%s' is '%s' now: continuing there at byte %d.", file.home, copy.path, file.place.position)
        self._go_to(file, copy)
        return True

    def _go_to(self, file, sibling):
        self._copies.discard(sibling.key)
        self._known.move(file, sibling.key, sibling.path)

    def _copy_of(self, file, place, held):
        """The oldest rotated file that has what was read, or else seen, of it."""
        folder, name = os.path.split(file.home)
        names = [file.home, *(os.path.join(folder, base) for base in bases_of(name))]
        for sibling in (sibling for name in names for sibling in self._generations(name)):
            if sibling.key == file.key or sibling.key in self._known.files or sibling.written_ns < place.written_ns:
                continue
            if holds(sibling.path, place, held):
                return sibling
        return None

    def _missed(self, home, file, place, until=None):
        """Rotated files that had that name after `file` did, and before `until` did, and that nobody has read; the oldest first. None: it
        cannot be known yet."""
        generations = self._generations(home)
        if until is not None:
            end = next((at for at, sibling in enumerate(generations) if sibling.key == until.key), None)
            before = (until.place.written_ns, math.inf)
            generations = generations[:end] if end is not None else [sibling for sibling in generations if sibling.age <= before]
        at = next((at for at, sibling in enumerate(generations) if sibling.key == file.key), None)
        later = generations[at + 1 :] if at is not None else [sibling for sibling in generations if sibling.age > (place.written_ns, math.inf)]
        is_sure = at is None or is_surely_rotated(os.path.basename(generations[at].path))
        is_rotated = is_surely_rotated(os.path.basename(home))  # then anyone who is asked for comes as himself: app.log.2.gz was app.log once
        missed = []
        for sibling in later:
            if is_rotated and sibling.key in self._asked_for:
                continue
            if sibling.key in self._known.files or sibling.key in self._copies or (is_sure and not is_surely_rotated(os.path.basename(sibling.path))):
                continue
            verdict = self._judge.is_copy(sibling, [home])
            if verdict is None:
                self.is_undecided = True
                return None
            if not verdict:
                missed.append(sibling)
        return missed

    def _chain(self, home, file, missed):
        """Read those one after the other, behind `file`, and before anyone who has the name now. The last of them."""
        last = file
        for sibling in missed:
            log.info("'%s' was '%s' while nobody looked: it is read now.", sibling.path, home)
            following = LogFile(home, sibling.path, sibling.key, Place(0, sibling.key[1], sibling.written_ns))
            following.is_lost, following.is_listed = True, False
            self._turns.wait_for(following, last)
            self._follow(following)
            last = following
        if last is None:
            return None
        self._known.last_of[home] = last
        for successor in self._known.by_home[home]:
            if not successor.is_lost and successor is not last and not successor.is_passed:
                self._turns.wait_for(successor, last)
        return last

    def _follow(self, file):
        self._known.keep(file)
        self._ready.add(file)

    # --- New files ---------------------------------------------------------------------------------------------------

    def new(self, each, names, make):
        """A file found that nobody follows, or that is a copy. make() follows it from its beginning; `names`: all that were found."""
        if each.key in self._copies:
            return
        folder, name = os.path.split(each.path)
        homes = [os.path.join(folder, base) for base in bases_of(name)]
        if not each.size and any(home in names or self._known.by_home.get(home) for home in homes):
            return  # maybe a copy of which nothing is written yet
        for home in homes:
            self._look_for_truncation(home)
        if each.key in self._known.files:
            return  # it has what was truncated, or what was missed
        may_be_begun = is_surely_rotated(name) or each.size >= SURE_BYTES
        verdict = self._judge.is_copy(each, homes if may_be_begun else ()) if homes else self._is_put_back(each)
        if verdict is None:
            self.is_undecided = True
        elif verdict and homes:
            if not self._judge.is_part(each):  # what may grow is looked at again
                self._copies.add(each.key)
        elif not verdict:
            file = make()
            self._turns.wait_for(file, self._known.last_of.get(each.path))
            self._place_among(file, homes, names, time.time() - each.written_ns / 1e9 > self._rotate_wait)

    def turned_up(self, path):
        """A new file has that name: who had it in between? If it is a rotated one, it may be what had the name before."""
        folder, name = os.path.split(path)
        for home in (path, *(os.path.join(folder, base) for base in bases_of(name))):
            last = self._known.last_of.get(home)
            if last is not None and (home == path or last.home == home):
                self._unsettled.setdefault(home, [last])

    def _place_among(self, file, homes, names, is_quiet):
        """Where it is a rotated file, anyone who has the name now comes after it."""
        last_of = self._known.last_of
        for home in homes:
            if not is_quiet or not (home in names or home in last_of or is_surely_rotated(os.path.basename(file.path))):
                continue
            if last_of.get(home) is not file:
                self._turns.wait_for(file, last_of.get(home))
            last_of[home] = file
            for known in self._known.by_home.get(home, ()):
                if known is not file and not known.is_lost and known.place.position == 0:
                    self._turns.wait_for(known, file)

    def _is_put_back(self, each):
        """Whether it is the file that had the name before, put back from a copy: equal content of some length. Then that one continues in it."""
        for file in self._known.by_home.get(each.path, ()):
            if not file.is_listed and file.reader is None and file.place.position >= SURE_BYTES and holds(each.path, file.place):
                log.info("'%s' is another file now, but with the same content up to byte %d: continuing there.", each.path, file.place.position)
                self._known.by_home[each.path].remove(file)
                self._known.move(file, each.key, each.path)
                file.is_lost, file.is_listed, file.is_over, file.seen = False, True, False, None
                self._known.slots.give(file)
                self._ready.add(file)
                return True
        return False

    # --- Files that were truncated -----------------------------------------------------------------------------------

    def _look_for_truncation(self, home):
        """A rotated file turned up: what was truncated comes before it."""
        for file in self._known.by_home.get(home, ()):
            place, held = file.place, file.held
            if file.dead_at is not None or not (place.position or held.size) or _is_intact(file, place, held):
                continue
            try:
                lost = (place, held) if file.reader is not None else self._open_files.resume(file)
            except (OSError, Gone, ConfigError):
                continue  # it is found out when it is read
            if lost is not None:
                self.truncated(file, *lost)
            return

    def truncated(self, file, place, held):
        """It was truncated after that place, and is open. A copy made before, if there is one, has what we have not seen."""
        line = file.line
        log.warning("'%s' was truncated or rewritten: %d bytes were read. It is read from its beginning.", file.path, place.position)
        self._siblings = {}
        self._judge.contents_changed()
        before = None
        copy = self._copy_of(file, place, held)
        if copy is not None:
            log.info("What was not read of it yet is read from its copy '%s'.", copy.path)
            before = LogFile(file.home, copy.path, copy.key, place, line)
            before.is_lost, before.is_listed, before.copy_of = True, copy.key in self._copies, file
            self._copies.discard(copy.key)
            self._turns.wait_for(before, file.after)
            self._follow(before)
        else:
            self._remember_shorter_copy(file, place)
        missed = self._missed(file.home, before or file, place, until=file if file.is_lost else None)
        file.reader.restart()
        file.line, file.is_passed, file.seen, file.trail = 0, False, None, b""
        last = self._chain(file.home, before, missed or ())
        if file.is_lost:
            self._known.last_of[file.home] = file
        else:
            self._known.last_of.pop(file.home, None)
        self._turns.wait_for(file, last)
        self._ready.add(file)
        if missed is None:
            if before is None:
                self._unread.append(file)
            else:
                self._unsettled.setdefault(file.home, [before])

    def _remember_shorter_copy(self, file, place):
        """Where more was read after the copy was made, nothing is left to read in it: it is known by its end from now on.

        It is one if reading had stopped where it ends, or else if half of it at least is what was read."""
        for sibling in self._generations(file.home):
            if sibling.key in self._known.files or compression(sibling.path) or sibling.size >= place.position:
                continue
            mark = file.last_mark(sibling.size, place.head)
            is_sure = mark is not None and (mark.position == sibling.size or mark.position >= max(SURE_BYTES, sibling.size / 2))
            if is_sure and holds(sibling.path, mark):
                log.info("'%s' is a copy of it: its %d bytes were all read before.", sibling.path, sibling.size)
                with contextlib.suppress(OSError):  # gone by now
                    file.remember_copy(place_at_end(sibling.path))
                return

    # --- What is beside --------------------------------------------------------------------------------------------

    def _generations(self, home):
        """The rotated files of that name, the oldest first; of a link those of the file it leads to."""
        return self._beside(home).generations(os.path.basename(os.path.realpath(home)))

    def _beside(self, path):
        folder = os.path.dirname(os.path.realpath(path))
        if folder not in self._siblings:
            self._siblings[folder] = Siblings(folder, self._exclude)
        return self._siblings[folder]


def _is_intact(file, place, held):
    """Whether it still has what was read and seen of it, as far as can be known without decompressing it."""
    if compression(file.path):
        return True
    try:
        if file.reader is not None:
            return place.is_in(file.reader.descriptor) and held.is_behind(file.reader.descriptor, place.position)
        with open(file.path, "rb") as on_disk:
            return place.is_in(on_disk.fileno()) and held.is_behind(on_disk.fileno(), place.position)
    except OSError:
        return False
