# SPDX-License-Identifier: Apache-2.0
"""Files -> URDF text: .urdf unchanged, .xacro expanded, relative mesh names made absolute."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ik_node.errors import (
    FileError,
    InputError,
    UrdfError,
    XacroError,
    escaped,
    join_names,
    path_text,
    quoted,
    safe_repr,
)

from .elements import MAX_CHARACTERS, check_size, reject_doctype

_MESH = re.compile(r'(<mesh\b[^<>]*?\bfilename\s*=\s*)(["\'])([^"\'<>]*)\2')
_ENCODING = re.compile(rb'\s*<\?xml\s[^>]*?encoding\s*=\s*["\']([A-Za-z0-9._-]+)["\']')


def load_description(path: str | os.PathLike[str], arguments: Mapping[str, object] | str | None = None) -> str:
    """Return the URDF text of a .urdf or .xacro file, xacro expanded with arguments for its xacro:arg.

    A xacro file is a program: its expressions can run commands as the user. Load only those that you trust.
    arguments: as for xacro_args.

    Existing meshes named relative to the file get absolute names, as file://. Errors of read_urdf then count
    the lines of the expanded text.
    Raises FileError for a file that cannot be read, XmlError and XacroError for xacro that cannot be
    expanded, for arguments that it does not have and files of more than MAX_CHARACTERS, InputError for a
    path of the wrong type and for arguments without xacro.
    """
    mappings = xacro_args({} if arguments is None else arguments)
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f'the path of a description must be a str or os.PathLike, got {safe_repr(path)}')
    file = Path(path)
    try:
        with file.open('rb') as stream:
            data = stream.read(4 * MAX_CHARACTERS + 1)  # no character takes more than four bytes
    except (OSError, ValueError) as error:
        reason = getattr(error, 'strerror', None) or error
        raise FileError(f'{path_text(file)}: {reason}{_beside(file)}') from None
    text = _decoded(file, data)
    with read_from(file):
        check_size(len(text), 'the file')
    if file.suffix.lower() == '.xacro':
        reject_doctype(text)
        return _with_mesh_folders(_expanded(file, mappings), file)
    if mappings:
        raise InputError(
            f'{path_text(file)} is not a .xacro file, so it takes no xacro arguments, got {join_names(mappings)}'
        )
    return _with_mesh_folders(text, file)


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


def xacro_args(given: Mapping[str, object] | str) -> dict[str, str]:
    """Return xacro arguments by name, given so or as text 'name:=value name:=value'. Raises InputError."""
    if isinstance(given, Mapping):
        with suppress(Exception):  # a mapping, or a value in it, may raise anything
            return {str(name): str(value) for name, value in given.items()}
    if not isinstance(given, str):
        raise InputError(f"xacro_args must be like {{'dof': 5}} or 'dof:=5', got {safe_repr(given)}")
    try:
        pairs = [item.split(':=', 1) for item in shlex.split(given)]
    except ValueError:  # an unbalanced quotation mark
        pairs = [[]]
    if any(len(pair) != 2 or not pair[0] for pair in pairs):
        raise InputError(f"xacro_args must be like 'prefix:=left_ gripper:=true', got '{given}'")
    return dict(pairs)


def _with_mesh_folders(text: str, file: Path) -> str:
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
        raise FileError(f'{path_text(file)}: cannot be decoded as {encoding} ({error}); save it as UTF-8') from None


def _expanded(file: Path, mappings: Mapping[str, str]) -> str:
    import xacro  # takes a tenth of a second with yaml, and most descriptions are not xacro

    arguments = _Arguments(mappings)
    try:
        document = xacro.process_file(str(file), mappings=arguments)
        text = str(document.toprettyxml(indent='  '))
    except Exception as error:  # xacro evaluates the expressions of the file: they may raise anything
        raise XacroError(explain(file, error)) from None
    if unknown := [name for name in mappings if name not in arguments.used]:
        raise XacroError(
            f'{path_text(file)} has no xacro argument {quoted(unknown[0])}; it has '
            f'{join_names(sorted(arguments.used), unknown[0])}'
        )
    return text


class _Arguments(dict[str, str]):
    """Arguments for xacro, which itself ignores those that a file does not have. used: those that it has."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.used = set[str]()

    def __contains__(self, name: object) -> bool:  # <xacro:arg name="..." default="..."/>
        self.used.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:  # $(arg ...)
        self.used.add(name)
        return super().__getitem__(name)


SHOWN_XACRO_MESSAGE = 500  # characters of the message of xacro
FIND = 'source the ROS workspace that has the package of $(find PACKAGE), or write a path relative to the file'
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
    import xacro

    files = [str(name) for name in getattr(xacro, 'filestack', None) or () if name] or [str(file)]
    path = path_text(files[-1])
    if any(isinstance(cause, RecursionError) for cause in _causes(error)):
        message = 'its includes or macros recurse without end, or are nested too deeply'
        return f'{path}: xacro cannot expand it: {message}'
    message = ' '.join(re.sub(r"<class '[^']*'>:", '', str(error)).split()) or type(error).__name__
    remedy = _old_definition(message, files) or _remedy(message)
    return f'{path}: xacro cannot expand it: {escaped(message, SHOWN_XACRO_MESSAGE)}' + (
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
