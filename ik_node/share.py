# SPDX-License-Identifier: Apache-2.0
"""share_path: the location of the urdf/, config/ and launch/ files of the package."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from ik_node.errors import InputError

PACKAGE = 'ik_node'


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
