# SPDX-License-Identifier: Apache-2.0
"""Numbers by joint, as text of parameters and command lines: 'wrist_roll=0, elbow_flex=0.1'.

Not with the colon of YAML: `ros2 param set` and rcl take 'wrist_roll: 0' for a mapping, and reject it. A
colon is read as well, where it gets here.
"""

from __future__ import annotations

import re

from ik_node.checks import yaml_number

PART = re.compile(r'(.*)[=:](.*)', re.DOTALL)


def read_by_joint(text: str) -> list[tuple[str, float | None]]:
    """Return name and number of each part of text, in its order; None for what is not a number."""
    found: list[tuple[str, float | None]] = []
    for part in filter(None, (part.strip() for part in text.split(','))):
        match = PART.fullmatch(part)
        name, value = match.groups() if match else (part, '')
        found.append((name.strip(), yaml_number(value.strip())))
    return found
