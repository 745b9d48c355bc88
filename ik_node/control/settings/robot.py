# SPDX-License-Identifier: Apache-2.0
"""RobotSettings: the parameters of ik_node, and those that each of several tools has."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from ik_node.control.settings.arm import ArmSettings
from ik_node.errors import InputError

# Parameters that every tool has of its own, such as left.tip_link.
OF_TOOL = (
    'base_link',
    'tip_link',
    'tool_axis',
    'tool_point',
    'home',
    'controller',
    'controller_joints',
    'workspace',
)
ONE = ('',)  # the names of tools without the parameter tools
NAME = re.compile(r'[A-Za-z]\w*', re.ASCII)  # so that topics can begin with it


@dataclasses.dataclass(frozen=True)
class RobotSettings:
    """general: the parameters without a tool. own: by tool, the values of OF_TOOL; empty with one tool.

    arms: by tool, the parameters of its arm; one tool has no name.
    """

    general: ArmSettings
    own: Mapping[str, Mapping[str, Any]]
    arms: Mapping[str, ArmSettings] = dataclasses.field(init=False, compare=False)

    def __post_init__(self) -> None:
        arms = {'': self.general}
        if self.own:
            arms = {tool: self._of(tool, values) for tool, values in self.own.items()}
        object.__setattr__(self, 'arms', arms)

    def _of(self, tool: str, values: Mapping[str, Any]) -> ArmSettings:
        try:
            return dataclasses.replace(self.general, **values)
        except InputError as error:
            raise InputError(f'tool {tool}: {error}') from None

    def changed(self, values: Mapping[str, Any]) -> RobotSettings:
        """Return the settings with other values by parameter; unknown ones are ignored. Raises InputError."""
        known = {field.name for field in dataclasses.fields(self.general)}
        general = {name: value for name, value in values.items() if name in known}
        own = {
            tool: {name: values.get(f'{tool}.{name}', value) for name, value in mine.items()}
            for tool, mine in self.own.items()
        }
        return RobotSettings(dataclasses.replace(self.general, **general), own)

    def same_models(self, other: RobotSettings) -> bool:
        """Whether both settings build the same models of the same tools."""
        return all(arm.same_model(other.arms[tool]) for tool, arm in self.arms.items())


def tool_names(tools: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in the parameter tools, none with one tool. Raises InputError for unusable names."""
    names = () if tools == ONE else tools
    for name in names:
        if not NAME.fullmatch(name) or names.count(name) > 1:
            raise InputError(
                'parameter tools must be different names of letters, digits and _, beginning with a letter, '
                f'got {list(names)}'
            )
    return names
