"""ik_node: position-plus-direction inverse kinematics for arms with five joints."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ik_node.errors import IkError, InputError, UrdfError
    from ik_node.model.arm import Arm
    from ik_node.model.tree import Tool, Tree
    from ik_node.solver.goal import Goal, Solution, Status
    from ik_node.solver.solver import IkSolver
    from ik_node.solver.trees.tree_solver import TreeBatchSolution, TreeSolution, TreeSolver

__all__ = [
    'Arm',
    'Goal',
    'IkError',
    'IkSolver',
    'InputError',
    'Solution',
    'Status',
    'Tool',
    'Tree',
    'TreeBatchSolution',
    'TreeSolution',
    'TreeSolver',
    'UrdfError',
]

_MODULES = {
    'Arm': 'model.arm',
    'Goal': 'solver.goal',
    'IkSolver': 'solver.solver',
    'Solution': 'solver.goal',
    'Status': 'solver.goal',
    'Tool': 'model.tree',
    'Tree': 'model.tree',
    'TreeBatchSolution': 'solver.trees.tree_solver',
    'TreeSolution': 'solver.trees.tree_solver',
    'TreeSolver': 'solver.trees.tree_solver',
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: numba takes a second to load, see start.py for why that matters."""
    if name not in __all__:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    value = getattr(import_module(f'ik_node.{_MODULES.get(name, "errors")}'), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
