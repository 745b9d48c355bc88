# SPDX-License-Identifier: Apache-2.0
"""What launch and launch_ros make of the launch files, for tests without them: PyPI has neither.

Written from their documentation: a description is visited entity by entity; an argument that is not given
gets its default, and one with another value than its choices is an error; functions and included files give
more entities. Nothing is started: nodes and event handlers are kept as they were given.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class LaunchContext:
    """The values of the arguments."""

    def __init__(self) -> None:
        self.launch_configurations: dict[str, str] = {}
        self.is_shutdown = False


class Entity:
    """An action with the options that it was given, and no further entities."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.given, self.options = given, options

    def visit(self, _context: LaunchContext) -> Sequence[Any] | None:
        """Return the entities that follow from it."""
        return None


class Node(Entity):
    """A node that would be started."""

    @property
    def node_executable(self) -> str:
        """Its program."""
        return self.options['executable']


class LaunchDescription(Entity):
    """A list of entities."""

    def __init__(self, entities: Iterable[Any] = ()) -> None:
        super().__init__()
        self.entities = list(entities)

    def visit(self, _context: LaunchContext) -> Sequence[Any]:
        return self.entities

    def get_launch_arguments(self) -> list[DeclareLaunchArgument]:
        """Return the arguments that it declares."""
        return [entity for entity in self.entities if isinstance(entity, DeclareLaunchArgument)]


class DeclareLaunchArgument(Entity):
    """An argument."""

    def __init__(
        self,
        name: str,
        *,
        default_value: str | None = None,
        description: str = '',
        choices: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        self.name, self.description, self.choices = name, description, choices
        self.default_value = default_value

    def visit(self, context: LaunchContext) -> None:
        values = context.launch_configurations
        if self.name not in values:
            if self.default_value is None:
                raise RuntimeError(f'launch argument "{self.name}" was not provided')
            values[self.name] = self.default_value
        if self.choices is not None and values[self.name] not in self.choices:
            raise RuntimeError(f'"{values[self.name]}" is none of the choices of "{self.name}"')


class LaunchConfiguration:
    """The value that an argument will have."""

    def __init__(self, name: str) -> None:
        self.name = name

    def perform(self, context: LaunchContext) -> str:
        """Return the value."""
        return context.launch_configurations[self.name]


class OpaqueFunction(Entity):
    """A function that gives entities."""

    def __init__(self, *, function: Callable[[LaunchContext], Any]) -> None:
        super().__init__()
        self.visit = function


class GroupAction(LaunchDescription):
    """Entities in a scope of their own."""


class IncludeLaunchDescription(Entity):
    """Another launch file, whose entities follow, and arguments for it."""

    def __init__(self, source: str, *, launch_arguments: Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__()
        self._source, self.launch_arguments = source, list(launch_arguments)

    def visit(self, context: LaunchContext) -> Sequence[Any]:
        for name, value in self.launch_arguments:
            given = value.perform(context) if isinstance(value, LaunchConfiguration) else value
            context.launch_configurations[name] = given
        spec = importlib.util.spec_from_file_location(Path(self._source).name.replace('.', '_'), self._source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return [module.generate_launch_description()]


MODULES = {
    'launch': {'LaunchContext': LaunchContext, 'LaunchDescription': LaunchDescription},
    'launch.actions': {
        'DeclareLaunchArgument': DeclareLaunchArgument,
        'GroupAction': GroupAction,
        'IncludeLaunchDescription': IncludeLaunchDescription,
        'OpaqueFunction': OpaqueFunction,
        **dict.fromkeys(('SetEnvironmentVariable', 'RegisterEventHandler', 'Shutdown'), Entity),
    },
    'launch.event_handlers': {'OnShutdown': SimpleNamespace},
    'launch.events': {},
    'launch.events.process': {'ProcessExited': SimpleNamespace},
    'launch.launch_description_sources': {'PythonLaunchDescriptionSource': str},
    'launch.substitutions': {'LaunchConfiguration': LaunchConfiguration},
    'launch_ros': {},
    'launch_ros.actions': {'Node': Node},
    'launch_ros.parameter_descriptions': {'ParameterValue': lambda value, value_type: value_type(value)},
}


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the launch packages be imported, from here unless they are installed."""
    if importlib.util.find_spec('launch_ros') is not None:
        return
    for name, content in MODULES.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
