# SPDX-License-Identifier: Apache-2.0
"""The urdf/, config/ and launch/ files of the package, and the robots among them."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from ik_node.errors import InputError

PACKAGE = 'ik_node'
SUFFIX = '.urdf.xacro'  # of a shipped robot


def share_path(*parts: str) -> Path:
    """Return the path of a file of the package: in the installed share/ik_node or in the checkout.

    Raises InputError, with the searched folders, if there is no such file.
    """
    roots = [Path(__file__).resolve().parents[1], Path(sys.prefix) / 'share' / PACKAGE]
    with suppress(ImportError, LookupError, OSError):  # no ROS, not in its index, no index
        from ament_index_python.packages import get_package_share_directory

        roots.insert(0, Path(get_package_share_directory(PACKAGE)))
    for root in roots:
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise InputError(f'{"/".join(parts)} was not found in {", ".join(map(str, roots))}')


def shipped_robots() -> tuple[str, ...]:
    """Return the names of the robots that are shipped with ik_node."""
    return tuple(sorted(path.name.removesuffix(SUFFIX) for path in share_path('urdf').glob(f'*{SUFFIX}')))


def robot_file(given: str) -> str:
    """Return the path of the description of a shipped robot for its name, and any other text as it is."""
    return str(share_path('urdf', f'{given}{SUFFIX}')) if given in shipped_robots() else given
