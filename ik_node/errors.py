"""Every exception that ik_node raises on purpose."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LARGEST = 1e9  # [m or rad] a number beyond it is a slip, and would overflow further on
LISTED_NAMES = 50  # a message names at most this many of what exists
ALIKE = 0.75  # and asks whether one was meant that is at least so like what was given (1: the same)


class IkError(Exception):
    """Base of all errors of ik_node."""


class InputError(IkError, ValueError):
    """A call with arguments that no arm could serve: says what was given and what is allowed."""


class MissingError(IkError):
    """A package that is not installed: names the command that installs it."""


class UrdfError(IkError):
    """A robot description that cannot be read as an arm: names element, attribute and line."""


class FileError(UrdfError):
    """A description file that cannot be opened or is no text."""


class XmlError(UrdfError):
    """Text that is no well-formed XML, or XML with a document type."""


class XacroError(UrdfError):
    """Xacro that was not expanded or cannot be."""


class ElementError(UrdfError):
    """An element or attribute that is missing, doubled or wrong."""


class TreeError(UrdfError):
    """Links and joints that make no single tree, or mimics that go in a circle."""


class ChainError(UrdfError):
    """A base and tip link that no arm lies between, or a joint there that no arm can have."""


def listed(names: Iterable[str], wanted: str | None = None) -> str:
    """Return the names quoted and separated by commas; what looks like wanted comes as a question first."""
    every = list(names)
    text = ', '.join(f'"{name}"' for name in every[:LISTED_NAMES])
    if len(every) > LISTED_NAMES:
        text += f' and {len(every) - LISTED_NAMES} more'
    alike = difflib.get_close_matches(wanted, every, 1, ALIKE) if wanted else []
    return f'{text} (did you mean "{alike[0]}"?)' if alike else text or 'none'
