"""Outputs: how commands are published. One file each, and one row here."""

import re
from importlib import import_module

from ik_node.control.outputs import Output
from ik_node.errors import InputError, quoted
from ik_node.ros.outputs.context import OutputContext

# By the name that users choose: module and class, loaded when chosen.
OUTPUTS = {
    'joint_states': ('joint_states', 'JointStates'),
    'joint_trajectory': ('joint_trajectory', 'JointTrajectoryTopic'),
    'position_commands': ('position_commands', 'PositionCommands'),
    'follow_joint_trajectory': ('follow_joint_trajectory', 'FollowJointTrajectoryAction'),
}
PICTURE = 'joint_states'  # may be added to another output


def output_names(text: str) -> tuple[str, ...]:
    """Return the outputs that text names, separated by commas or blanks. Raises InputError.

    There is one at least, and besides PICTURE one at most: two controllers must not move the same arm.
    """
    names = tuple(dict.fromkeys(re.split(r'[\s,]+', text.strip(' ,\t\n'))))
    for name in names:
        if name not in OUTPUTS:
            raise InputError(f'parameter output must be one of {", ".join(OUTPUTS)}, got {quoted(name)}')
    if len(set(names) - {PICTURE}) > 1:
        raise InputError(f'parameter output may name only one output besides {PICTURE}, got {quoted(text)}')
    return names


def make_outputs(names: tuple[str, ...], context: OutputContext) -> list[Output]:
    """Return the outputs of these names. Raises MissingError if one needs a package that is not installed."""
    outputs = []
    for name in names:
        module, kind = OUTPUTS[name]
        outputs.append(getattr(import_module(f'{__name__}.{module}'), kind)(context))
    return outputs
