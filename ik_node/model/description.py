"""Files -> URDF text: .urdf as it is, .xacro expanded; and the files that a URDF points to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import xacro

from ik_node.errors import FileError, InputError, UrdfError, XacroError, listed
from ik_node.model.urdf_xml import refuse_doctype
from ik_node.model.xacro_errors import told

_MESH = re.compile(r'(<mesh\b[^<>]*?\bfilename\s*=\s*)(["\'])([^"\'<>]*)\2')
_ENCODING = re.compile(rb'\s*<\?xml\s[^>]*?encoding\s*=\s*["\']([A-Za-z0-9._-]+)["\']')


def load_description(path: str | os.PathLike[str], mappings: Mapping[str, str] | None = None) -> str:
    """Return the URDF text of a .urdf or .xacro file, xacro expanded with mappings for its xacro:arg.

    Meshes that it names relative to its own place get their whole name there, as file://.
    Errors of read_urdf then count the lines of the expanded text.
    Raises FileError for a file that cannot be read, XmlError and XacroError for xacro that cannot be
    expanded, InputError for mappings where nothing is expanded.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except (OSError, ValueError) as error:
        raise FileError(f'{file}: {getattr(error, "strerror", None) or error}{_beside(file)}') from None
    text = _decoded(file, data)
    if file.suffix.lower() == '.xacro':
        refuse_doctype(text)
        return _with_mesh_places(_expanded(file, mappings or {}), file)
    if mappings:
        raise InputError(f'{file} is no .xacro file, so it takes no arguments; got {listed(mappings)}')
    return _with_mesh_places(text, file)


@contextmanager
def read_from(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the file's name before what a UrdfError says of its text; an empty path stands for no file."""
    try:
        yield
    except UrdfError as error:
        if not os.fspath(path):
            raise
        expanded = ', expanded' if Path(path).suffix.lower() == '.xacro' else ''
        raise type(error)(f'{os.fspath(path)}{expanded}: {error}') from None


def _with_mesh_places(text: str, file: Path) -> str:
    """Name meshes by where they are: the text goes to others, such as RViz, that know nothing of the file."""

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
        names = sorted(p.name for p in file.parent.iterdir() if p.suffix.lower() in ('.urdf', '.xacro'))
    except (OSError, ValueError):
        return ''
    return f'; descriptions there: {listed(names, file.name)}'


def _decoded(file: Path, data: bytes) -> str:
    if data.startswith((b'\xff\xfe', b'\xfe\xff')):
        encoding = 'utf-16'
    else:
        match = _ENCODING.match(data.removeprefix(b'\xef\xbb\xbf'))
        encoding = match.group(1).decode() if match else 'utf-8'
    try:
        return data.decode(encoding).removeprefix('\ufeff')
    except (LookupError, UnicodeError) as error:
        raise FileError(f'{file}: not readable as {encoding} text ({error}); save it as UTF-8') from None


def _expanded(file: Path, mappings: Mapping[str, str]) -> str:
    xacro.all_includes.clear()  # of the file before: errors are looked for in them
    try:
        document = xacro.process_file(str(file), mappings=dict(mappings))
        return str(document.toprettyxml(indent='  '))
    except Exception as error:  # xacro runs the file's own expressions: they may raise anything
        raise XacroError(told(file, error)) from None


def missing_meshes(links: Mapping[str, Any]) -> Iterator[str]:
    """Yield where meshes are missing on this machine, once for each package and once for all other files.

    links: <link> elements by name. Relative names mean nothing without the file's own place and are
    passed over.
    """
    missing: dict[str, list[str]] = {}
    for name, link in links.items():
        for mesh in link.iter('mesh'):
            filename = mesh.get('filename', '')
            package = filename.partition('://')[2].partition('/')[0] if '://' in filename else ''
            if _is_missing(filename):
                missing.setdefault(package, []).append(f'{filename} of link "{name}"')
    for places in missing.values():
        yield places[0] + (f' and {len(places) - 1} more' if len(places) > 1 else '')


def _is_missing(filename: str) -> bool:
    scheme, separator, rest = filename.partition('://')
    if separator and scheme == 'package':
        package, _, inside = rest.partition('/')
        return not any(os.access(share / inside, os.F_OK) for share in _shares(package))
    name = unquote(rest) if separator and scheme == 'file' else filename
    return name.startswith('/') and not os.access(name, os.F_OK)


def _shares(package: str) -> list[Path]:
    """Return where the environment (ament and catkin) would have a package's files."""
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    roots = os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep)
    return [Path(prefix, 'share', package) for prefix in prefixes if prefix] + [
        Path(root, package) for root in roots if root
    ]
