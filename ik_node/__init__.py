# SPDX-License-Identifier: Apache-2.0
"""ik_node: position-plus-direction inverse kinematics for arms with five joints."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ik_node.control.paths import Bounds, LineMotion, ToolPath, plan_lines
    from ik_node.control.trajectory import Trajectory
    from ik_node.errors import IkError, InputError, KernelError, MissingError, UrdfError
    from ik_node.model.arm import Arm
    from ik_node.model.tree import Tool, Tree
    from ik_node.model.urdf.reader import read_urdf
    from ik_node.solver.goal import (
        BatchSolution,
        Cause,
        Goal,
        PathSolution,
        Reason,
        Solution,
        Solutions,
        Status,
    )
    from ik_node.solver.proof import Proof
    from ik_node.solver.solver import IkSolver
    from ik_node.solver.trees import TreeBatchSolution, TreeSolution, TreeSolver

__all__ = [
    'Arm',
    'BatchSolution',
    'Bounds',
    'Cause',
    'Goal',
    'IkError',
    'IkSolver',
    'InputError',
    'KernelError',
    'LineMotion',
    'MissingError',
    'PathSolution',
    'Proof',
    'Reason',
    'Solution',
    'Solutions',
    'Status',
    'Tool',
    'ToolPath',
    'Trajectory',
    'Tree',
    'TreeBatchSolution',
    'TreeSolution',
    'TreeSolver',
    'UrdfError',
    'plan_lines',
    'read_urdf',
]

_NAMES = {
    'control.paths': 'Bounds LineMotion ToolPath plan_lines',
    'control.trajectory': 'Trajectory',
    'errors': 'IkError InputError KernelError MissingError UrdfError',
    'model.arm': 'Arm',
    'model.tree': 'Tool Tree',
    'model.urdf.reader': 'read_urdf',
    'solver.goal': 'BatchSolution Cause Goal PathSolution Reason Solution Solutions Status',
    'solver.proof': 'Proof',
    'solver.solver': 'IkSolver',
    'solver.trees': 'TreeBatchSolution TreeSolution TreeSolver',
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a name on first use: the solver takes a moment to load, see start.py for why that matters."""
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    value = getattr(import_module(f'ik_node.{_MODULES[name]}'), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
