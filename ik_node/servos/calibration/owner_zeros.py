# SPDX-License-Identifier: Apache-2.0
"""Zeros that the owner of an arm has set, in a file of the user."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from ik_node.checks import yaml_number
from ik_node.errors import InputError

HEADER = '# Ticks at which the joints of this arm are at zero, as stored by set_zero of ik_servos.\n'


def zeros_path(profile: str, arm: str = '') -> Path:
    """Return the file for an arm; arm: what tells it from others of the profile, such as a serial number."""
    home = Path(os.environ.get('XDG_CONFIG_HOME') or '~/.config').expanduser()
    name = re.sub(r'[^\w.-]+', '_', f'{profile}-{arm}' if arm else profile)
    return home / 'ik_node' / 'servos' / f'{name}.yaml'


def load_zeros(path: Path) -> dict[str, float]:
    """Return the ticks by joint in the file; none if there is no such file. Raises InputError."""
    try:
        values = yaml.safe_load(path.read_text(encoding='utf-8'))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f'cannot read the zeros in {path}: {" ".join(str(error).split())}') from None
    ticks = {name: yaml_number(tick) for name, tick in values.items()} if isinstance(values, dict) else {}
    if not ticks or not all(isinstance(name, str) and tick is not None for name, tick in ticks.items()):
        raise InputError(f'{path} must map joints to ticks; set the zeros again, or remove the file')
    return {name: tick for name, tick in ticks.items() if tick is not None}


def store_zeros(path: Path, ticks: Mapping[str, float]) -> None:
    """Write the ticks by joint, whole or not at all; those of other joints stay. Raises InputError."""
    known = {**load_zeros(path), **{name: float(tick) for name, tick in ticks.items()}}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile('w', dir=path.parent, delete=False, encoding='utf-8') as file:
            file.write(HEADER + yaml.safe_dump(known, sort_keys=False))
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(path)
    except OSError as error:
        raise InputError(f'cannot store the zeros in {path}: {error}') from None
