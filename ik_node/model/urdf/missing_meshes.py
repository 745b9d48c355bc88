# SPDX-License-Identifier: Apache-2.0
"""Which mesh files of a URDF are missing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from ik_node.errors import escaped, quoted
from ik_node.model.urdf.elements import Element


def missing_meshes(links: Mapping[str, Element]) -> Iterator[str]:
    """Yield where meshes are missing on this machine, once for each package and once for all other files.

    links: <link> elements by name. A relative name counts as missing: load_description has made names
    absolute if it found the file, and others cannot resolve them. Files are never opened.
    """
    missing: dict[str, list[str]] = {}
    for name, link in links.items():
        for mesh in link.iter('mesh'):
            filename = mesh.get('filename', '')
            package = filename.partition('://')[2].partition('/')[0] if '://' in filename else ''
            if _is_missing(filename):
                missing.setdefault(package, []).append(f'{escaped(filename)} of link {quoted(name)}')
    for places in missing.values():
        yield places[0] + (f' and {len(places) - 1} more' if len(places) > 1 else '')


def _is_missing(filename: str) -> bool:
    scheme, separator, rest = filename.partition('://')
    if separator and scheme == 'package':
        package, _, inside = rest.partition('/')
        climbs = '..' in PurePosixPath(rest).parts
        return climbs or not any(_exists(share / inside.lstrip('/')) for share in _shares(package))
    if separator and scheme != 'file':
        return False  # http://, model://: resolved by others
    name = unquote(rest) if separator else filename
    return bool(name) and not (name.startswith('/') and _exists(Path(name)))


def _exists(path: Path) -> bool:
    try:
        return os.access(path, os.F_OK)
    except ValueError:  # a zero byte, as %00
        return False


def _shares(package: str) -> list[Path]:
    """Return the possible share folders of a package in the environment (ament and catkin)."""
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    roots = os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep)
    return [Path(prefix, 'share', package) for prefix in prefixes if prefix] + [
        Path(root, package) for root in roots if root
    ]
