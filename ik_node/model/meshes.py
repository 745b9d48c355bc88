# SPDX-License-Identifier: Apache-2.0
"""Find the mesh files of a URDF, within the folders that a description may access.

A description from a topic is untrusted: a file that it names is read only if it is in the share folder of an
installed ROS package or in one folder chosen by the user.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from lxml import etree

from ik_node.errors import IkError
from ik_node.extras import load
from ik_node.files import real_path

PARENTS = 3  # folders above a description in which its meshes are looked for: ROBOT/urdf/make/arm.urdf
# Kinds that are read. Archives such as .3mf and .zip are not: they may hold a thousand times their size.
KINDS = ('.stl', '.dae', '.obj', '.ply', '.off', '.glb', '.gltf')
MAX_BYTES = 400_000_000  # of a mesh file, and of what it makes of them
MAX_COPIES = 10_000  # of parts within a file that can repeat them
PACKAGE = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]*')
INDEX = Path('share', 'ament_index', 'resource_index', 'packages')
_FILENAME = re.compile(r'<mesh\b[^<>]*?\bfilename\s*=\s*(["\'])([^"\'<>]*)\1')


class MeshError(IkError, FileNotFoundError):
    """A mesh that does not exist, or that a description may not access."""


class BadMeshError(MeshError):
    """A mesh file that is not read because of what is in it."""


def find_mesh(name: str, mesh_path: str | os.PathLike[str] = '') -> Path:
    """Return the file of a mesh filename in a URDF.

    package://NAME/REST is looked up in the installed ROS package NAME, then as NAME/REST and as REST in
    mesh_path; file:// and absolute names are taken as they are, relative ones in mesh_path. The file must lie
    in mesh_path, symbolic links resolved, or in the share folder of an installed package. Raises MeshError.
    """
    folder = real_path(mesh_path) if os.fspath(mesh_path) else None
    outside = False
    for candidate in _candidates(name, folder):
        # Remove .. before any lookup: after a symbolic link it would lead elsewhere.
        path = Path(os.path.normpath(candidate))
        try:
            if not path.is_file():
                continue
            if _installed(path):
                return path
            real = real_path(path)
        except (OSError, ValueError):  # such as a name that is too long
            continue
        if folder is not None and real.is_relative_to(folder):
            return real
        outside = True
    if outside:
        allowed = 'installed ROS packages' if folder is None else f'installed ROS packages and {folder}'
        raise MeshError(f'mesh "{name}" is outside of the folders from which meshes are read: {allowed}')
    raise MeshError(f'mesh "{name}" not found')


def load_mesh(name: str, mesh_path: str | os.PathLike[str] = '') -> Any:
    """Return the mesh file of a URDF as a scene of trimesh, in metres if the file has a unit.

    name, mesh_path: as for find_mesh. Raises MeshError, or whatever trimesh raises; MissingError without it.
    """
    trimesh = load('trimesh', 'reading meshes')
    path = find_mesh(name, mesh_path)
    check_mesh(path)
    scene = trimesh.load_scene(path)
    if path.suffix.lower() == '.dae' and scene.units is not None:  # RViz applies it, too; other kinds have none
        scene = scene.convert_units('meters')
    return scene


def is_missing(name: str) -> bool:
    """Whether a mesh filename in a URDF leads to no file here; http:// and others are left to others."""
    scheme, mark, rest = name.partition('://')
    if not name or (mark and scheme not in ('package', 'file')):
        return False
    climbs = scheme == 'package' and '..' in PurePosixPath(rest).parts
    return climbs or not any(map(_exists, _candidates(name, None)))


def _exists(path: Path) -> bool:
    try:
        return os.access(path, os.F_OK)
    except ValueError:  # a zero byte, as %00
        return False


def check_mesh(path: Path) -> None:
    """Raise BadMeshError for a file that is no mesh of KINDS, or would take much more memory than it has."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise BadMeshError(f'mesh "{path.name}" must be one of {", ".join(KINDS)}')
    if path.stat().st_size > MAX_BYTES:
        raise BadMeshError(f'mesh "{path.name}" has more than {MAX_BYTES:,} bytes')
    try:
        if kind in ('.glb', '.gltf'):
            _check_gltf(path)
        elif kind == '.dae':
            _check_collada(path)
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        IndexError,
        RecursionError,
        etree.LxmlError,
    ) as error:
        raise BadMeshError(f'mesh "{path.name}" is damaged: {type(error).__name__}: {error}') from None


def _check_gltf(path: Path) -> None:
    """Raise BadMeshError for arrays larger than their data, and nodes that repeat others without bounds."""
    with path.open('rb') as file:
        head = file.read(20)
        binary = head[:4] == b'glTF'
        text = file.read(int.from_bytes(head[12:16], 'little')) if binary else head + file.read()
    content: dict[str, Any] = json.loads(text)
    views = content.get('bufferViews', [])
    for accessor in content.get('accessors', []):
        # The least size of an element is a byte; without a view there are zeros that no file holds.
        data = views[accessor['bufferView']]['byteLength'] if 'bufferView' in accessor else 0
        if accessor['count'] > max(data, 1_000_000):
            count = accessor['count']
            raise BadMeshError(f'mesh "{path.name}" has an array of {count:,} elements without data')
    nodes = {str(name): node.get('children', []) for name, node in enumerate(content.get('nodes', []))}
    _check_copies(path, {name: [str(child) for child in below] for name, below in nodes.items()})


def _check_collada(path: Path) -> None:
    """Raise BadMeshError for nodes that repeat others without bounds."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    root = etree.parse(str(path), parser).getroot()
    below: dict[str, list[str]] = {}
    for node in root.iter('{*}node'):
        inner = [*node.iterfind('.//{*}instance_node')]
        below.setdefault(node.get('id', ''), []).extend(one.get('url', '').lstrip('#') for one in inner)
    _check_copies(path, below)


def _check_copies(path: Path, below: dict[str, list[str]]) -> None:
    """Raise BadMeshError for parts, by name with those below, that would become more than MAX_COPIES."""
    counts: dict[str, int] = {}

    def count(name: str, above: frozenset[str]) -> int:
        if name in above:
            raise BadMeshError(f'mesh "{path.name}" has a part that contains itself')
        if name not in counts:
            counts[name] = 1 + sum(count(one, above | {name}) for one in below.get(name, ()))
        return counts[name]

    if sum(count(name, frozenset()) for name in below) > max(MAX_COPIES, 10 * len(below)):
        raise BadMeshError(f'mesh "{path.name}" repeats its parts more than {MAX_COPIES:,} times')


def mesh_folder(description: str | os.PathLike[str], text: str) -> Path | None:
    """Return the mesh_path for a description chosen by the user, None if no mesh is found.

    text: the URDF text of the file. Of the file's own folder and the PARENTS above it, this is the
    nearest from which most of its meshes are found; the home folder and those above it are left out.
    """
    own = real_path(description).parent
    names = {match[2] for match in _FILENAME.finditer(text)}
    home = Path.home()
    folders = [own, *(folder for folder in own.parents[:PARENTS] if not home.is_relative_to(folder))]
    found = [sum(_is_in(name, folder) for name in names) for folder in folders]
    return folders[found.index(max(found))] if max(found) else None


def _is_in(name: str, folder: Path) -> bool:
    try:
        find_mesh(name, folder)
    except MeshError:
        return False
    return True


def _candidates(name: str, folder: Path | None) -> Iterator[Path]:
    scheme, mark, rest = name.partition('://')
    if not mark:
        yield from [Path(name)] if name.startswith('/') else [folder / name] if folder else []
    elif scheme == 'file':
        yield Path('/', unquote(rest))
    elif scheme == 'package':
        package, _, inside = rest.partition('/')
        inside = inside.lstrip('/')
        yield from (share / inside for share in _shares(package))
        if folder is not None:
            yield from (folder / rest, folder / inside)


def _shares(package: str) -> Iterator[Path]:
    """Yield the share folders of an installed package."""
    if PACKAGE.fullmatch(package):
        for prefix in filter(None, os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)):
            if Path(prefix, INDEX, package).exists():
                yield Path(os.path.normpath(prefix), 'share', package)


def _installed(path: Path) -> bool:
    """Whether a path without .. lies in the share folder of a package; colcon may have put links there."""
    for prefix in filter(None, os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)):
        share = Path(os.path.normpath(prefix), 'share')
        if path.is_relative_to(share):
            package = path.relative_to(share).parts[0]
            return any(path.is_relative_to(folder) for folder in _shares(package))
    return False
