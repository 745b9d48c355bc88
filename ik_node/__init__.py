"""ik_node: position-plus-direction inverse kinematics for arms with five joints."""

from ik_node.kinematics.arm import Arm
from ik_node.kinematics.errors import IkError, InputError, UrdfError
from ik_node.kinematics.goal import Goal, Solution, Status
from ik_node.kinematics.solver import IkSolver

__all__ = [
    'Arm',
    'Goal',
    'IkError',
    'IkSolver',
    'InputError',
    'Solution',
    'Status',
    'UrdfError',
]
