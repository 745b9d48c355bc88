# SPDX-License-Identifier: Apache-2.0
"""Errors of xacro in one line, with the file and a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import xacro

from ik_node.errors import (
    escaped,
    path_text,
)

SHOWN_MESSAGE = 500  # characters of the message of xacro
FIND = (
    'source the ROS workspace that has the package of $(find PACKAGE), or write a path relative to the file'
)
# remedy by the message of xacro
REMEDIES = {
    r"name '(\w+)' is not defined": (
        'define it above with <xacro:property name="{}" value="..."/>, or correct the name'
    ),
    r'Undefined substitution argument (\w+)': (
        'give it a value: {0}:=VALUE after the file, or in xacro_args, or a default: '
        '<xacro:arg name="{0}" default="..."/> above'
    ),
    r'unknown macro name: xacro:(\S+)': 'define or include <xacro:macro name="{}"> above',
    r'No module named .ament|AMENT_PREFIX_PATH|package .* not found': FIND,
}


def explain(file: Path, error: BaseException) -> str:
    """Return in one sentence what xacro could not expand, in which file, and a remedy.

    file: the one that was given. error: what xacro.process_file raised.
    """
    files = [str(name) for name in getattr(xacro, 'filestack', None) or () if name] or [str(file)]
    path = path_text(files[-1])
    if any(isinstance(cause, RecursionError) for cause in _causes(error)):
        message = 'its includes or macros recurse without end, or are nested too deeply'
        return f'{path}: xacro cannot expand it: {message}'
    message = ' '.join(re.sub(r"<class '[^']*'>:", '', str(error)).split()) or type(error).__name__
    remedy = _old_definition(message, files) or _remedy(message)
    return f'{path}: xacro cannot expand it: {escaped(message, SHOWN_MESSAGE)}' + (
        f'; {remedy}' if remedy else ''
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and what it was raised from, the first one last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _remedy(message: str) -> str:
    for pattern, remedy in REMEDIES.items():
        if match := re.search(pattern, message):
            return remedy.format(*match.groups())
    return ''


def _old_definition(message: str, files: list[str]) -> str:
    """Describe the missing definition if it only lacks the prefix, as in xacro before ROS Jade."""
    match = re.search(r"name '(\w+)' is not defined|unknown macro name: xacro:(\S+)", message)
    if not match:
        return ''
    tag, name = ('property', match[1]) if match[1] else ('macro', match[2])
    definition = re.compile(rf'<{tag}\s[^<>]*?\bname\s*=\s*["\']{re.escape(name)}["\']')
    for file in dict.fromkeys(reversed(files)):
        try:
            text = Path(file).read_text(errors='replace')
        except OSError:
            continue
        if found := definition.search(text):
            line = text.count('\n', 0, found.start()) + 1
            return (
                f'<{tag} name="{name}"> of {path_text(file)}, line {line}, lacks the prefix: '
                f'write <xacro:{tag} ...>, and the same for every other xacro element'
            )
    return ''
