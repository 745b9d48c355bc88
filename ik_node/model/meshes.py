# SPDX-License-Identifier: Apache-2.0
"""Find the mesh files of a URDF, within the folders that a description may access.

A description from a topic is untrusted: a file that it names is read only if it is in the share folder of an
installed ROS package or in one folder chosen by the user.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from ik_node.errors import IkError

PARENTS = 3  # folders above a description in which its meshes are looked for: ROBOT/urdf/make/arm.urdf
PACKAGE = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]*')
INDEX = Path('share', 'ament_index', 'resource_index', 'packages')
_FILENAME = re.compile(r'<mesh\b[^<>]*?\bfilename\s*=\s*(["\'])([^"\'<>]*)\1')


class MeshError(IkError, FileNotFoundError):
    """A mesh that does not exist, or that a description may not access."""


def find_mesh(name: str, mesh_path: str | os.PathLike[str] = '') -> Path:
    """Return the file of a mesh filename in a URDF.

    package://NAME/REST is looked up in the installed ROS package NAME, then as NAME/REST and as REST in
    mesh_path; file:// and absolute names are taken as they are, relative ones in mesh_path. The file must lie
    in mesh_path, symbolic links resolved, or in the share folder of an installed package. Raises MeshError.
    """
    folder = Path(mesh_path).resolve() if os.fspath(mesh_path) else None
    outside = False
    for candidate in _candidates(name, folder):
        # Remove .. before any lookup: after a symbolic link it would lead elsewhere.
        path = Path(os.path.normpath(candidate))
        try:
            if not path.is_file():
                continue
            if _installed(path):
                return path
            real = path.resolve()
        except (OSError, ValueError):  # such as a name that is too long
            continue
        if folder is not None and real.is_relative_to(folder):
            return real
        outside = True
    if outside:
        raise MeshError(f'mesh "{name}" is neither in mesh_path nor in an installed ROS package')
    raise MeshError(f'mesh "{name}" not found')


def mesh_folder(description: str | os.PathLike[str], text: str) -> Path | None:
    """Return the mesh_path for a description chosen by the user, None if no mesh is found.

    text: the URDF text of the file. Of the file's own folder and the PARENTS above it, this is the
    nearest from which most of its meshes are found; the home folder and those above it are left out.
    """
    own = Path(description).resolve().parent
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
