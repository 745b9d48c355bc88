# SPDX-License-Identifier: Apache-2.0
"""Outputs: how commands are published. One file each, and one row here."""

import re
from importlib import import_module

from ik_node.control.outputs import Output
from ik_node.errors import InputError, quoted

from .context import OutputContext

DISPLAY_ONLY = 'joint_states'  # of all arms together, may be added to an output of each arm; see context.py
# By the name that users choose: module and class, loaded when chosen.
OUTPUTS = {
    'joint_trajectory': ('joint_trajectory', 'JointTrajectoryTopic'),
    'position_commands': ('position_commands', 'PositionCommands'),
    'follow_joint_trajectory': ('follow_joint_trajectory', 'FollowJointTrajectoryAction'),
}
NAMES = (DISPLAY_ONLY, *OUTPUTS)


def output_names(text: str) -> tuple[str, ...]:
    """Return the outputs that text names, separated by commas or blanks. Raises InputError.

    At least one, and besides DISPLAY_ONLY at most one: two controllers must not move the same arm.
    """
    names = tuple(dict.fromkeys(re.split(r'[\s,]+', text.strip(' ,\t\n'))))
    for name in names:
        if name not in NAMES:
            raise InputError(f'parameter output must be one of {", ".join(NAMES)}, got {quoted(name)}')
    if len(set(names) - {DISPLAY_ONLY}) > 1:
        raise InputError(
            f'parameter output may name only one output besides {DISPLAY_ONLY}, got {quoted(text)}'
        )
    return names


def make_outputs(names: tuple[str, ...], context: OutputContext) -> list[Output]:
    """Return the outputs of one arm among names, so without DISPLAY_ONLY. Raises MissingError."""
    outputs = []
    for name in names:
        if name != DISPLAY_ONLY:
            module, kind = OUTPUTS[name]
            outputs.append(getattr(import_module(f'{__name__}.{module}'), kind)(context))
    return outputs
