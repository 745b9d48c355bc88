# SPDX-License-Identifier: Apache-2.0
"""The launch files as modules, with whatever launch packages there are."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
LAUNCH_FILE = ROOT / 'launch' / 'arm.launch.py'


def module_of_launch_file(name: str = 'arm') -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f'{name}_launch', LAUNCH_FILE.with_name(f'{name}.launch.py')
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
