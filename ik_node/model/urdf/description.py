# SPDX-License-Identifier: Apache-2.0
"""Files -> URDF text: .urdf unchanged, .xacro expanded, relative mesh names made absolute."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ik_node.errors import FileError, InputError, UrdfError, XacroError, join_names, path_text, safe_repr
from ik_node.model.urdf.elements import MOST_CHARACTERS, check_size, reject_doctype

_MESH = re.compile(r'(<mesh\b[^<>]*?\bfilename\s*=\s*)(["\'])([^"\'<>]*)\2')
_ENCODING = re.compile(rb'\s*<\?xml\s[^>]*?encoding\s*=\s*["\']([A-Za-z0-9._-]+)["\']')


def load_description(path: str | os.PathLike[str], mappings: Mapping[str, str] | None = None) -> str:
    """Return the URDF text of a .urdf or .xacro file, xacro expanded with mappings for its xacro:arg.

    Existing meshes named relative to the file get absolute names, as file://. Errors of read_urdf then count
    the lines of the expanded text.
    Raises FileError for a file that cannot be read, XmlError and XacroError for xacro that cannot be
    expanded and files of more than MOST_CHARACTERS, InputError for a path of the wrong type and for
    mappings without xacro.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f'the path of a description must be a str or os.PathLike, got {safe_repr(path)}')
    file = Path(path)
    try:
        with file.open('rb') as stream:
            data = stream.read(4 * MOST_CHARACTERS + 1)  # no character takes more than four bytes
    except (OSError, ValueError) as error:
        reason = getattr(error, 'strerror', None) or error
        raise FileError(f'{path_text(file)}: {reason}{_beside(file)}') from None
    text = _decoded(file, data)
    with read_from(file):
        check_size(len(text), 'the file')
    if file.suffix.lower() == '.xacro':
        reject_doctype(text)
        return _with_mesh_places(_expanded(file, mappings or {}), file)
    if mappings:
        raise InputError(
            f'{path_text(file)} is not a .xacro file, so it takes no xacro arguments, got '
            f'{join_names(mappings)}'
        )
    return _with_mesh_places(text, file)


@contextmanager
def read_from(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the file name before the message of a UrdfError; an empty path means no file."""
    try:
        yield
    except UrdfError as error:
        if not os.fspath(path):
            raise
        expanded = ', expanded' if Path(path).suffix.lower() == '.xacro' else ''
        raise type(error)(f'{path_text(path)}{expanded}: {error}') from None


def xacro_args(given: str) -> dict[str, str]:
    """Return the mappings of 'name:=value name:=value'. Raises InputError."""
    try:
        pairs = [item.split(':=', 1) for item in shlex.split(given)]
    except ValueError:  # an unbalanced quotation mark
        pairs = [[]]
    if any(len(pair) != 2 or not pair[0] for pair in pairs):
        raise InputError(f"xacro_args must be like 'prefix:=left_ gripper:=true', got '{given}'")
    return dict(pairs)


def _with_mesh_places(text: str, file: Path) -> str:
    """Make mesh names absolute: the text is passed on to others, such as RViz, that do not know the file."""

    def placed(match: re.Match[str]) -> str:
        before, quote, name = match.groups()
        mesh = file.absolute().parent / name
        try:
            known = '://' not in name and not name.startswith('/') and mesh.is_file()
        except OSError:  # such as a name that is too long
            known = False
        return f'{before}{quote}{mesh.as_uri()}{quote}' if known else match[0]

    return _MESH.sub(placed, text)


def _beside(file: Path) -> str:
    try:
        folder = file if file.is_dir() else file.parent
        names = sorted(p.name for p in folder.iterdir() if p.suffix.lower() in ('.urdf', '.xacro'))
    except (OSError, ValueError):
        return ''
    return f'; descriptions in this folder: {join_names(names, file.name)}'


def _decoded(file: Path, data: bytes) -> str:
    if data.startswith((b'\xff\xfe', b'\xfe\xff')):
        encoding = 'utf-16'
    else:
        match = _ENCODING.match(data.removeprefix(b'\xef\xbb\xbf'))
        encoding = match.group(1).decode() if match else 'utf-8'
    try:
        return data.decode(encoding).removeprefix('\ufeff')
    except (LookupError, UnicodeError) as error:
        raise FileError(
            f'{path_text(file)}: cannot be decoded as {encoding} ({error}); save it as UTF-8'
        ) from None


def _expanded(file: Path, mappings: Mapping[str, str]) -> str:
    import xacro  # takes a tenth of a second with yaml, and most descriptions are not xacro

    from ik_node.model.urdf.xacro_errors import explain

    try:
        document = xacro.process_file(str(file), mappings=dict(mappings))
        return str(document.toprettyxml(indent='  '))
    except Exception as error:  # xacro evaluates the expressions of the file: they may raise anything
        raise XacroError(explain(file, error)) from None
