"""Every exception that ik_node raises on purpose."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

LARGEST = 1e9  # [m or rad] larger values are assumed to be mistakes, and would overflow further on
LISTED_NAMES = 50  # a message names at most this many of what exists
SHOWN_CHARACTERS = 80  # and quotes at most this much of a text that was given
ALIKE = 0.75  # and asks whether one was meant that is at least so like what was given (1: the same)
COMPARED = 1000  # names that are compared for that, each of at most SHOWN_CHARACTERS: it takes quadratic time


class IkError(Exception):
    """Base of all errors of ik_node."""


class InputError(IkError, ValueError):
    """A call with invalid arguments: says what was given and what is allowed."""


class MissingError(IkError):
    """A package that is not installed: names the command that installs it."""


class KernelError(IkError):
    """Compiled kernels were waited for and cannot be had."""


class UrdfError(IkError):
    """A robot description that cannot be read as an arm: names element, attribute and line."""


class FileError(UrdfError):
    """A description file that cannot be opened or is not text."""


class XmlError(UrdfError):
    """Text that is not well-formed XML, XML with a document type, or too much of it."""


class XacroError(UrdfError):
    """Xacro that was not expanded or cannot be."""


class ElementError(UrdfError):
    """An element or attribute that is missing, doubled or wrong."""


class TreeError(UrdfError):
    """Links and joints that do not form a single tree."""


class ChainError(UrdfError):
    """A base and tip link without an arm between them, or a joint there that an arm cannot have."""


def shown(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """Return text for a message: on one line, control characters escaped, at most so many of them."""
    cut = text if len(text) <= most else f'{text[:most]}... ({len(text)} characters)'
    if cut.isprintable():
        return cut
    return ''.join(part if part.isprintable() else part.encode('unicode_escape').decode() for part in cut)


def quoted(text: str) -> str:
    """Return text as shown, in double quotes."""
    return f'"{shown(text)}"'


def alike(names: Iterable[str], wanted: str) -> str | None:
    """Return the one of names that was probably meant by wanted, if any is similar."""
    short = [name for name in islice(names, COMPARED) if len(name) <= SHOWN_CHARACTERS]
    if len(wanted) > SHOWN_CHARACTERS:
        return None
    return next(iter(difflib.get_close_matches(wanted, short, 1, ALIKE)), None)


def listed(names: Iterable[str], wanted: str | None = None) -> str:
    """Return the names quoted and separated by commas; one similar to wanted follows as a question."""
    every = list(names)
    text = ', '.join(map(quoted, every[:LISTED_NAMES]))
    if len(every) > LISTED_NAMES:
        text += f' and {len(every) - LISTED_NAMES} more'
    meant = alike(every, wanted) if wanted else None
    return f'{text} (did you mean {quoted(meant)}?)' if meant else text or 'none'
