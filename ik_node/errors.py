# SPDX-License-Identifier: Apache-2.0
"""The exceptions of ik_node, and formatting for messages."""

from __future__ import annotations

import difflib
import errno
import os
import stat
from collections.abc import Iterable
from itertools import islice

LARGEST = 1e9  # [m or rad] larger values are assumed to be mistakes, and would overflow further on
LISTED_NAMES = 50  # names that a message lists at most
SHOWN_CHARACTERS = 80  # characters that a message quotes at most
SHOWN_PATH = 500  # characters of a path that a message quotes
ALIKE = 0.75  # similarity from which a message suggests a name (1: equal)
COMPARED = 1000  # names compared for that, each of at most SHOWN_CHARACTERS: it takes quadratic time

# The cause where a node is found and never answers: Fast DDS finds it by network, and passes data by memory.
OTHER_USER = 'Does it run as another user, such as root, or in a container? Start both as the same user'


class IkError(Exception):
    """Base of all errors of ik_node."""


class InputError(IkError, ValueError):
    """Invalid arguments; the message states what was given and what is allowed."""


class MissingError(IkError):
    """A package is not installed; the message states the command that installs it."""


class KernelError(IkError):
    """compile='wait' was given and the kernels cannot be compiled."""


class UrdfError(IkError):
    """A robot description cannot be read as an arm; the message states element, attribute and line."""


class FileError(UrdfError):
    """A description file cannot be opened or is not text."""


class XmlError(UrdfError):
    """The text is not well-formed XML, has a document type, or is too long."""


class XacroError(UrdfError):
    """Xacro was not expanded or cannot be expanded."""


class ElementError(UrdfError):
    """An element or attribute is missing, duplicated or wrong."""


class TreeError(UrdfError):
    """Links and joints do not form a single tree."""


class ChainError(UrdfError):
    """Base and tip link have no arm between them, or a joint there is not supported."""


def only_files(path: str, flags: int) -> int:
    """Open a regular file, as the opener of open(): a pipe would block, a device may never end."""
    handle = os.open(path, flags | os.O_NONBLOCK)
    kind = os.fstat(handle).st_mode
    if stat.S_ISREG(kind):
        return handle
    os.close(handle)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, 'it is a pipe or device, not a file', path)


def safe_repr(value: object) -> str:
    """Return the repr of any value for a message, that of object if its own fails."""
    try:
        return repr(value)
    except Exception:
        return object.__repr__(value)


def titled(name: object) -> str:
    """Return what a caller calls an argument, for a message: text as it is, of anything else its repr."""
    return name if isinstance(name, str) else safe_repr(name)


def escaped(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """Return text for a message: on one line, control characters escaped, at most `limit` characters."""
    cut = text if len(text) <= limit else f'{text[:limit]}... ({len(text)} characters)'
    if cut.isprintable():
        return cut
    return ''.join(part if part.isprintable() else part.encode('unicode_escape').decode() for part in cut)


def quoted(text: str) -> str:
    """Return text escaped, in double quotes."""
    return f'"{escaped(text)}"'


def closest_name(names: Iterable[str], given: str) -> str | None:
    """Return the name most similar to a given one, None if none is similar."""
    short = [name for name in islice(names, COMPARED) if len(name) <= SHOWN_CHARACTERS]
    if len(given) > SHOWN_CHARACTERS:
        return None
    return next(iter(difflib.get_close_matches(given, short, 1, ALIKE)), None)


def join_names(names: Iterable[str], given: str | None = None) -> str:
    """Return the names quoted and separated by commas; a suggestion follows if one is similar to given."""
    every = list(names)
    text = ', '.join(map(quoted, every[:LISTED_NAMES]))
    if len(every) > LISTED_NAMES:
        text += f' and {len(every) - LISTED_NAMES} more'
    meant = closest_name(every, given) if given else None
    return f'{text} (did you mean {quoted(meant)}?)' if meant else text or 'none'


def path_text(path: str | os.PathLike[str]) -> str:
    """Return a path for a message: on one line."""
    return escaped(os.fspath(path), SHOWN_PATH)
