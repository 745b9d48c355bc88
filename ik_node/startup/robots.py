# SPDX-License-Identifier: Apache-2.0
"""The robots in urdf/ by name, and the tools that parameter files define."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from ik_node.errors import InputError, join_names
from ik_node.model.tree import Tool
from ik_node.share import share_path

SUFFIX = '.urdf.xacro'
URDF, CONFIG = share_path('urdf'), share_path('config')
ROBOTS = tuple(sorted(path.name.removesuffix(SUFFIX) for path in URDF.glob(f'*{SUFFIX}')))
SECTIONS = ('/**', '/**/ik_node', '/ik_node', 'ik_node')  # of a parameter file that ik_node reads
TOOL_PARAMETERS = ('tip_link', 'tool_axis', 'tool_point')


def tools_file(name: str) -> Path | None:
    """Return the parameter file with the tools of a shipped robot, None if it has one tool."""
    path = CONFIG / f'{name}.yaml'
    return path if name in ROBOTS and path.exists() else None


ARMS = tuple(name for name in ROBOTS if tools_file(name) is None)  # with one tool


def description_path(given: str) -> Path:
    """Return the absolute path of a description: given is that or a robot in urdf/.

    Raises InputError.
    """
    if given in ROBOTS:
        return URDF / f'{given}{SUFFIX}'
    path = Path(given).expanduser().absolute()
    if not path.is_file():
        raise InputError(
            f'description_file {given}: the file {path} does not exist. Robots shipped with ik_node: '
            f'{join_names(ROBOTS)}'
        )
    return path


def tools_in(files: Iterable[Path]) -> dict[str, Tool]:
    """Return the tools by name that parameter files define for ik_node, none if they define no `tools`.

    The last definition counts, as for ROS; a parameter without a tool is the default of all tools. Raises
    InputError.
    """
    values: dict[str, Any] = {}
    for file in files:
        values |= _parameters(file)
    tools: dict[str, Tool] = {}
    for name in filter(None, values.get('tools') or ()):
        tip, axis, point = (
            values.get(f'{name}.{parameter}', values.get(parameter)) for parameter in TOOL_PARAMETERS
        )
        if not tip:
            raise InputError(f'{name}.tip_link is missing: every one of the tools needs its tip link')
        tools[name] = Tool(tip, axis or Tool.axis, point or Tool.point)
    return tools


def _parameters(file: Path) -> dict[str, Any]:
    """Return the parameters of ik_node in a parameter file, nested names joined by dots."""
    try:
        sections = yaml.safe_load(file.read_text(encoding='utf-8')) or {}
        found: dict[str, Any] = {}
        for section in SECTIONS:
            found |= _joined('', (sections.get(section) or {}).get('ros__parameters') or {})
        return found
    except (AttributeError, OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            f'cannot read {file} as a ROS parameter file: {" ".join(str(error).split())}'
        ) from None


def _joined(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= _joined(f'{prefix}{name}.', value)
        else:
            found[f'{prefix}{name}'] = value
    return found
