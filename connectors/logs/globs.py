"""Paths with wildcards: matching files, the folders to watch for them, and the text that each wildcard stands for.

    /var/log/*.log     *, ? and [a-z] within one name        /srv/**/app.log     ** for any number of folders, including none
"""

import fnmatch
import os
import re

_WILD = re.compile(r"[*?\[]")


class Glob:
    """One pattern, as an absolute path."""

    def __init__(self, pattern):
        self.pattern = os.path.normpath(os.path.abspath(pattern))
        self._parts = self.pattern.split("/")[1:]
        self.is_literal = not _WILD.search(self.pattern)
        self._names = re.compile(_regex(self._parts), re.DOTALL)

    @property
    def base(self):
        """The folder, or the file, up to the first wildcard."""
        fixed = []
        for part in self._parts:
            if _WILD.search(part):
                break
            fixed.append(part)
        return "/" + "/".join(fixed)

    def captures(self, path):
        """The text that each wildcard stands for in that path, in order; None if the path does not match."""
        match = self._names.fullmatch(path)
        return None if match is None else [text.strip("/") for text in match.groups()]

    def matches(self, path):
        return self._names.fullmatch(path) is not None

    def walk(self, folders, trouble):
        """(path, os.DirEntry or None) of matching names. Adds each visited folder to `folders`; calls trouble(path, OSError) for those that cannot
        be read."""
        yield from _walk("/", self._parts, folders, trouble)


class Exclude:
    """Patterns of paths to exclude. A pattern without a slash matches file names in any folder."""

    def __init__(self, patterns):
        self._names = [re.compile(fnmatch.translate(each)) for each in patterns if "/" not in each]
        self._globs = [Glob(each) for each in patterns if "/" in each]

    def __contains__(self, path):
        name = os.path.basename(path)
        return any(each.match(name) for each in self._names) or any(each.matches(path) for each in self._globs)


def _walk(folder, parts, folders, trouble):
    while len(parts) > 1 and not _WILD.search(parts[0]):
        folder, parts = os.path.join(folder, parts[0]), parts[1:]
    first, rest = parts[0], parts[1:]
    folders.add(folder)
    if not _WILD.search(first):
        path = os.path.join(folder, first)
        if os.path.lexists(path):
            yield path, None
        return
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except FileNotFoundError:
        return
    except OSError as error:
        trouble(folder, error)
        return
    if first == "**":
        yield from _walk(folder, rest or ["*"], folders, trouble)
        for entry in listed:
            if _is_folder(entry, follow=False):  # a link may lead to a parent folder
                yield from _walk(entry.path, parts, folders, trouble)
        return
    wanted = re.compile(fnmatch.translate(first)).match
    hidden = first.startswith(".")
    for entry in listed:
        if wanted(entry.name) and (hidden or not entry.name.startswith(".")):
            if not rest:
                yield entry.path, entry
            elif _is_folder(entry, follow=True):
                yield from _walk(entry.path, rest, folders, trouble)


def _is_folder(entry, follow):
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:
        return False


def _regex(parts):
    """As a regular expression with a group for each wildcard."""
    pieces = []
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**":
            pieces.append("/((?:[^/]+/)*[^/]+)" if last else "((?:/[^/]+)*)")
            continue
        text, index = "", 0
        while index < len(part):
            char = part[index]
            closing = part.find("]", index + 2) if char == "[" else -1
            if char == "*":
                text += "([^/]*)"
            elif char == "?":
                text += "([^/])"
            elif closing > 0:
                inside = part[index + 1 : closing].replace("\\", r"\\")
                text += "([" + ("^" + inside[1:] if inside[0] == "!" else inside) + "])"
                index = closing
            else:
                text += re.escape(char)
            index += 1
        pieces.append("/" + text)
    return "".join(pieces)
