"""Paths with wildcards: which files they name, which folders must be watched for them, and what each wildcard stood for.

    /var/log/*.log     *, ? and [a-z] within one name        /srv/**/app.log     ** for any number of folders, also none
"""

import fnmatch
import os
import re

_WILD = re.compile(r"[*?\[]")


class Glob:
    """One pattern, made absolute."""

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
        """What the wildcards stood for in that path, in their order; None if it is not one of the pattern's."""
        match = self._names.fullmatch(path)
        return None if match is None else [text.strip("/") for text in match.groups()]

    def matches(self, path):
        return self._names.fullmatch(path) is not None

    def walk(self, folders, trouble):
        """(path, os.DirEntry or None) of what has such a name. Adds each folder looked into to `folders`; trouble(path, OSError) of those that
        cannot be read."""
        yield from _walk("/", self._parts, folders, trouble)


class Exclude:
    """Patterns of paths that are left out. One without a slash is about names, wherever they are."""

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
            if _is_folder(entry, follow=False):  # a link may lead back up
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
    """As a regular expression that captures what each wildcard stands for."""
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
