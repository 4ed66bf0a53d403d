"""The order of files that had one name: renamed, copied, truncated, compressed or replaced, even while the worker was stopped.

A file is identified by device, inode and creation time, a copy by the marks of the content read from its original or, if nothing was
read yet, by the known part of its first line. Any other file has content that was not read: a rotated file of that kind is read if it was
written after the last read of the previous file with its name. copies.py finds the copies.
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
        self._copies = set()  # keys of files with the content of another file
        self._unsettled = {}  # name -> files that had it, in order, whose successors are not known yet
        self._unread = []  # files whose unread content may have been copied and truncated
        self._asked_for = set()  # keys of found files that are not followed
        self._siblings = {}
        self.is_undecided = False  # not everything is decided yet: scan again soon

    def begin_look(self, unknown, coming):
        """`unknown`: found files that are not followed; `coming`: the names of files that will be, unless they are copies."""
        self._siblings = {}
        self._judge.begin_look(coming)
        self._asked_for = {each.key for each in unknown}
        self._copies &= self._asked_for
        self.is_undecided = False

    # --- Files that lost their name ----------------------------------------------------------------------------------

    def lost(self, files):
        """These files were renamed or deleted: each is read to its end, then the files that had its name since, then the current one."""
        closed = [file for file in files if file.reader is None and not file.is_listed]
        missing = [file for file in closed if not self._find_itself(file)]
        there = set(files).difference(missing)
        for file in sorted(missing, key=lambda file: -file.place.position):  # if a copy matches two files, it belongs to the longer one
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
                    log.info("'%s' was deleted; read up to byte %d.", file.home, file.place.position)
            self._known.last_of[file.home] = file
            self._unsettled.setdefault(file.home, []).append(file)

    def written_behind(self):
        """A file was written to after it counted as complete: its writer had the rotated file open for longer than rotate.wait.ms."""
        for file in list(self._known.last_of.values()):
            if not file.is_over or file.is_listed or file.dead_at is not None or compression(file.path):
                continue
            sibling = self._beside(file.home).of_inode(file.key[1])
            if sibling is not None and sibling.key == file.key and sibling.size > file.place.position:
                self._go_to(file, sibling)
                file.is_over = False
                self._ready.add(file)

    def gone(self, file):
        """The file is no longer on disk."""
        self._known.leave(file)
        if file.reader is not None:
            self._open_files.close(file)
        self._ready.forget(file)
        self._known.die(file)
        self._turns.passed(file)

    def unread(self, file):
        """It was written to before anything of it was read: it may have been copied and truncated since."""
        self._unread.append(file)

    def settle(self):
        """Find the successors of the files that lost their names."""
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
        for home, files in sorted(unsettled.items(), key=lambda item: len(item[0])):  # app.log.1.gz more likely was app.log than app.log.1
            if not self._settle(home, files):
                self._unsettled[home] = files
            elif all(file.is_lost or file.dead_at is not None for file in self._known.by_home.get(home, ())):
                last = self._known.last_of.get(home)
                self._unsettled[home] = [last] if last is not None else []  # the next file with the name may lose it before the next scan
        self._unsettled = {home: files for home, files in self._unsettled.items() if files}

    def _settle(self, home, files):
        """Whether all of their successors could be determined."""
        self._look_for_truncation(home)
        files = sorted(files, key=lambda file: file.place.written_ns)  # a truncated file has younger lines now
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
        """Find the file under a name that does not match the globs."""
        sibling = self._beside(file.home).of_inode(file.place.inode)
        if sibling is None or self._known.files.get(sibling.key) not in (None, file) or not is_the_same(file, sibling):
            return False
        self._go_to(file, sibling)
        return True

    def _find_copy(self, file):
        copy = self._copy_of(file, file.place, file.held)
        if copy is None:
            return False
        log.info("'%s' was copied to '%s'; continuing there at byte %d.", file.home, copy.path, file.place.position)
        self._go_to(file, copy)
        return True

    def _go_to(self, file, sibling):
        self._copies.discard(sibling.key)
        self._known.move(file, sibling.key, sibling.path)

    def _copy_of(self, file, place, held):
        """The oldest rotated file that has its content that was read, or else seen."""
        folder, name = os.path.split(file.home)
        names = [file.home, *(os.path.join(folder, base) for base in bases_of(name))]
        for sibling in (sibling for name in names for sibling in self._generations(name)):
            if sibling.key == file.key or sibling.key in self._known.files or sibling.written_ns < place.written_ns:
                continue
            if holds(sibling.path, place, held):
                return sibling
        return None

    def _missed(self, home, file, place, until=None):
        """Unread rotated files that had that name after `file` and before `until`, oldest first. None: not known yet."""
        generations = self._generations(home)
        if until is not None:
            end = next((at for at, sibling in enumerate(generations) if sibling.key == until.key), None)
            before = (until.place.written_ns, math.inf)
            generations = generations[:end] if end is not None else [sibling for sibling in generations if sibling.age <= before]
        at = next((at for at, sibling in enumerate(generations) if sibling.key == file.key), None)
        later = generations[at + 1 :] if at is not None else [sibling for sibling in generations if sibling.age > (place.written_ns, math.inf)]
        is_sure = at is None or is_surely_rotated(os.path.basename(generations[at].path))
        is_rotated = is_surely_rotated(os.path.basename(home))  # then a followed file comes under its own name: app.log.2.gz was app.log once
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
        """Read those one after another, after `file` and before the current file with the name. Return the last of them."""
        last = file
        for sibling in missed:
            log.info("'%s' was '%s' while the connector was not running; reading it now.", sibling.path, home)
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
        """Handle a found file that is not followed: a new one or a copy. make() follows it from its beginning; `names`: all names found."""
        if each.key in self._copies:
            return
        folder, name = os.path.split(each.path)
        homes = [os.path.join(folder, base) for base in bases_of(name)]
        if not each.size and any(home in names or self._known.by_home.get(home) for home in homes):
            return  # maybe a copy that is still empty
        for home in homes:
            self._look_for_truncation(home)
        if each.key in self._known.files:
            return  # it has the truncated or missed content
        may_be_begun = is_surely_rotated(name) or each.size >= SURE_BYTES
        verdict = self._judge.is_copy(each, homes if may_be_begun else ()) if homes else self._is_put_back(each)
        if verdict is None:
            self.is_undecided = True
        elif verdict and homes:
            if not self._judge.is_part(each):  # a file that may grow is checked again
                self._copies.add(each.key)
        elif not verdict:
            file = make()
            self._turns.wait_for(file, self._known.last_of.get(each.path))
            self._place_among(file, homes, names, time.time() - each.written_ns / 1e9 > self._rotate_wait)

    def turned_up(self, path):
        """A new file has that name: find its predecessors. A rotated file may itself be the predecessor."""
        folder, name = os.path.split(path)
        for home in (path, *(os.path.join(folder, base) for base in bases_of(name))):
            last = self._known.last_of.get(home)
            if last is not None and (home == path or last.home == home):
                self._unsettled.setdefault(home, [last])

    def _place_among(self, file, homes, names, is_quiet):
        """Put a rotated file before the current file with its original name."""
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
        """Whether it is the previous file with the name, restored from a copy: equal content of some length. Then reading continues in it."""
        for file in self._known.by_home.get(each.path, ()):
            if not file.is_listed and file.reader is None and file.place.position >= SURE_BYTES and holds(each.path, file.place):
                log.info("'%s' is a new file with the same content up to byte %d; continuing there.", each.path, file.place.position)
                self._known.by_home[each.path].remove(file)
                self._known.move(file, each.key, each.path)
                file.is_lost, file.is_listed, file.is_over, file.seen = False, True, False, None
                self._known.slots.give(file)
                self._ready.add(file)
                return True
        return False

    # --- Files that were truncated -----------------------------------------------------------------------------------

    def _look_for_truncation(self, home):
        """A rotated file appeared: a truncated file's content comes before its new lines."""
        for file in self._known.by_home.get(home, ()):
            place, held = file.place, file.held
            if file.dead_at is not None or not (place.position or held.size) or _is_intact(file, place, held):
                continue
            try:
                lost = (place, held) if file.reader is not None else self._open_files.resume(file)
            except (OSError, Gone, ConfigError):
                continue  # detected when it is read
            if lost is not None:
                self.truncated(file, *lost)
            return

    def truncated(self, file, place, held):
        """It was truncated below that place, and is open. A copy made before that, if any, has the unread content."""
        line = file.line
        log.warning("'%s' was truncated or rewritten after %d bytes were read; reading it from its beginning.", file.path, place.position)
        self._siblings = {}
        self._judge.contents_changed()
        before = None
        copy = self._copy_of(file, place, held)
        if copy is not None:
            log.info("Reading the rest of its old content from its copy '%s'.", copy.path)
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
        """If more was read after the copy was made, nothing in the copy is left to read: remember it by its end.

        It is a copy if reading once stopped where it ends, or else if at least half of the content read is in it."""
        for sibling in self._generations(file.home):
            if sibling.key in self._known.files or compression(sibling.path) or sibling.size >= place.position:
                continue
            mark = file.last_mark(sibling.size, place.head)
            is_sure = mark is not None and (mark.position == sibling.size or mark.position >= max(SURE_BYTES, sibling.size / 2))
            if is_sure and holds(sibling.path, mark):
                log.info("'%s' is a copy of it; its %d bytes were already read.", sibling.path, sibling.size)
                with contextlib.suppress(OSError):  # deleted meanwhile
                    file.remember_copy(place_at_end(sibling.path))
                return

    # --- Files in the same folder --------------------------------------------------------------------------------------------

    def _generations(self, home):
        """The rotated files of that name, oldest first; for a symbolic link, those of its target."""
        return self._beside(home).generations(os.path.basename(os.path.realpath(home)))

    def _beside(self, path):
        folder = os.path.dirname(os.path.realpath(path))
        if folder not in self._siblings:
            self._siblings[folder] = Siblings(folder, self._exclude)
        return self._siblings[folder]


def _is_intact(file, place, held):
    """Whether it still has the content that was read and seen, as far as can be known without decompressing it."""
    if compression(file.path):
        return True
    try:
        if file.reader is not None:
            return place.is_in(file.reader.descriptor) and held.is_behind(file.reader.descriptor, place.position)
        with open(file.path, "rb") as on_disk:
            return place.is_in(on_disk.fileno()) and held.is_behind(on_disk.fileno(), place.position)
    except OSError:
        return False
