# SPDX-License-Identifier: Apache-2.0
"""The launch files as modules, with whatever launch packages there are, and what their arguments start."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from ik_node.startup.arguments import ARGUMENTS
from ik_node.startup.launch_plan import LaunchPlan, NodeSpec, launch_plan

ROOT = Path(__file__).resolve().parents[1]
LAUNCH_FILE = ROOT / 'launch' / 'arm.launch.py'


def module_of_launch_file(name: str = 'arm') -> ModuleType:
    spec = importlib.util.spec_from_file_location(f'{name}_launch', LAUNCH_FILE.with_name(f'{name}.launch.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def planned(**given: str) -> LaunchPlan:
    """What arguments start; others have their defaults."""
    values = {name: one.default for name, one in ARGUMENTS.items()}
    assert given.keys() <= values.keys() | {'port'}  # of earlier versions
    return launch_plan(values | given)


def starts(**given: str) -> dict[str, NodeSpec]:
    """The programs that arguments start, by executable."""
    return {start.executable: start for start in planned(**given).programs}
