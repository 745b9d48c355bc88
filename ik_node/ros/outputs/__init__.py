"""Outputs: how commands are published. One file each, and one row here."""

from importlib import import_module
from typing import Any

from ik_node.control.outputs import Output
from ik_node.errors import InputError
from ik_node.ros.node_time import NodeTime

# By the name that users choose: module and class, loaded when chosen.
OUTPUTS = {'joint_states': ('joint_states', 'JointStates')}


def make_output(name: str, node: Any, time: NodeTime) -> Output:
    """Return the output of that name, publishing through node on its time. Raises InputError if unknown."""
    if name not in OUTPUTS:
        raise InputError(f'parameter output must be one of {", ".join(OUTPUTS)}, got {name!r}')
    module, kind = OUTPUTS[name]
    output: Output = getattr(import_module(f'{__name__}.{module}'), kind)(node, time)
    return output
