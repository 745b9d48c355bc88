"""What xacro says of an error, with file, line and remedy: its own words name neither."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

import xacro

from ik_node.errors import ALIKE

LISTED_LINES = 5  # where the same words stand more often than this, the rest is counted
EVALUATORS = {'handle_expr': '${%s}', 'handle_extension': '$(%s)'}  # xacro's functions and what they read


def told(file: Path, error: BaseException) -> str:
    """Return in one sentence what xacro could not expand, where it stands, and what would be right.

    file: the one that was given. error: what xacro.process_file raised.
    """
    causes = list(_causes(error))
    files = [str(name) for name in xacro.filestack or () if name] or [str(file)]
    if any(isinstance(cause, RecursionError) for cause in causes):
        return _endless(files)
    if isinstance(causes[-1], ExpatError):  # it names a line of the file that was being read
        return f'{files[-1]}: xacro cannot expand it: {_said(causes, "")}'
    words = _words(causes)
    nodes = _nodes(causes)
    defined = [str(name) for macro in xacro.macrostack or () for stack in macro.history for name in stack]
    # Macros are expanded where they are called, and stand where they were included from.
    included = [str(name) for name in xacro.all_includes]
    for name in dict.fromkeys((*reversed(files), *defined, *included)):
        if where := _place(name, words, nodes):
            return f'{where}: xacro cannot expand it: {_said(causes, words)}'
    return f'{files[-1]}: xacro cannot expand it: {_said(causes, words)}'


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and what it was raised from, the first one last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _frames(cause: BaseException) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and variables of xacro's functions on the way to where cause was raised."""
    step = cause.__traceback__
    while step is not None:
        if step.tb_frame.f_globals.get('__name__') == 'xacro':
            yield step.tb_frame.f_code.co_name, step.tb_frame.f_locals
        step = step.tb_next


def _words(causes: list[BaseException]) -> str:
    """Return the expression that was evaluated, as written, or nothing."""
    for cause in reversed(causes):
        for name, variables in reversed(list(_frames(cause))):
            if name in EVALUATORS:
                return EVALUATORS[name] % variables['s']
    return ''


def _nodes(causes: list[BaseException]) -> list[str]:
    """Return patterns of the start tags that were at work, the innermost first."""
    found = []
    for cause in reversed(causes):
        for _, variables in reversed(list(_frames(cause))):
            node = variables.get('elt') or variables.get('node')
            tag = getattr(node, 'tagName', None)
            if tag:
                name = node.getAttribute('name')
                found.append(
                    rf'<{re.escape(tag)}\b[^<>]*?\bname\s*=\s*["\']{re.escape(name)}["\']' if name else ''
                )
                found.append(rf'<{re.escape(tag)}[\s/>]')
    return [pattern for pattern in dict.fromkeys(found) if pattern]


def _place(name: str, words: str, nodes: list[str]) -> str:
    """Return 'file: line 3, "its text"' where words stand, else the first of nodes; or nothing."""
    try:
        text = unescape(Path(name).read_text(errors='replace'))
    except OSError:
        return ''
    patterns = [r'\s+'.join(map(re.escape, words.split()))] if words else nodes
    for pattern in patterns:
        lines = sorted({text.count('\n', 0, match.start()) + 1 for match in re.finditer(pattern, text)})
        if lines:
            shown = ', '.join(map(str, lines[:LISTED_LINES]))
            more = f' and {len(lines) - LISTED_LINES} more' if len(lines) > LISTED_LINES else ''
            source = text.split('\n')[lines[0] - 1].strip()[:80]
            return f'{name}: line{"s" * (len(lines) > 1)} {shown}{more}, "{source}"'
    return ''


def _said(causes: list[BaseException], words: str) -> str:
    """Return what was wrong and what would be right, in one line."""
    first = causes[-1]
    for cause in causes:
        missing = type(cause).__name__ in ('PackageNotFoundError', 'ModuleNotFoundError')
        if missing or (isinstance(cause, OSError) and 'AMENT_PREFIX_PATH' in str(cause)):
            return (
                f'{words or "$(find PACKAGE)"} found nothing; source the ROS workspace that has the '
                'package, or write a path relative to the file'
            )
    said = ' '.join(re.sub(r"^<class '.*?'>:", '', str(causes[0])).split()) or type(first).__name__
    if match := re.search(r"name '(\w+)' is not defined", said):
        return (
            f'{said}; define it above with <xacro:property name="{match[1]}" value="..."/>, '
            'or correct the name'
        )
    if isinstance(first, ZeroDivisionError):
        return f'{said}; give it a divisor other than zero'
    if match := re.search(r'Undefined substitution argument (\w+)', said):
        return f'{said}; give it a value, or a default: <xacro:arg name="{match[1]}" default="..."/> above'
    if said == "xacro:arg: missing attribute 'default'":
        return f'{said}; give it a value, or a default="..."'
    if match := re.search(r'unknown macro name: xacro:(\S+)', said):
        return f'{said}; define or include <xacro:macro name="{match[1]}"> above{_alike(match[1], causes)}'
    if 'amplification' in said or 'ntit' in said:
        return f'{said}; remove <!DOCTYPE> from this file and write out what its entities stand for'
    return said


def _alike(name: str, causes: list[BaseException]) -> str:
    """Return a question if a macro of a similar name is known."""
    macros = [m for cause in causes for _, variables in _frames(cause) for m in variables.get('macros') or ()]
    names = [str(macro).removeprefix('xacro:') for macro in macros]
    alike = difflib.get_close_matches(name, names, 1, ALIKE)
    return f' (did you mean "{alike[0]}"?)' if alike else ''


def _endless(files: list[str]) -> str:
    """Say what goes round without end: a file that includes itself, or macros that call each other."""
    if len(set(files)) < len(files):
        again = next(name for k, name in enumerate(files) if name in files[:k])
        place = _place(again, '', [r'<xacro:include\b'])
        return f'{place or again}: the file includes itself without end; take one of its <xacro:include> out'
    names = list(dict.fromkeys(macro.body.getAttribute('name') for macro in xacro.macrostack or ()))
    for name in dict.fromkeys((*reversed(files), *map(str, xacro.all_includes))):
        for macro in reversed(names):
            if place := _place(
                name, '', [rf'<xacro:macro\b[^<>]*?\bname\s*=\s*["\'](xacro:)?{re.escape(macro)}["\']']
            ):
                return (
                    f'{place}: macro "{macro}" calls itself without end; put the call into '
                    '<xacro:if value="..."> with a condition that ends it'
                )
    return f'{files[-1]}: the nesting has no end, or is too deep for xacro; write fewer levels'
