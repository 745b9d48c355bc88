# SPDX-License-Identifier: Apache-2.0
"""The kernels that Python calls, and the types of their arguments.

Each is compiled for these types and no others, before it is called: numba takes read-only arrays and other
layouts for other types, for which it would compile everything once more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

# name and module, in the order in which they are compiled: what the next goal needs comes first
SERVING = {
    'forward': 'chain',
    'jacobian': 'chain',
    'goal_errors': 'chain',
    'tabulate_poses': 'chain',
    'out_of_reach': 'search',
    'nearest_by_formula': 'closed_form',
    'search_lm': 'methods.lm',
    'serve_lateral': 'chain',
    'advance': 'tracking',
    'formula_solutions': 'closed_form',
    'best_row': 'closest',
    'keep_unused_joints': 'closest',
    'closest_parallel': 'closest',
    'least_possible': 'closest',
    'rank_starts': 'closest',
    'nearest_positions': 'closest',
    'closest_out_of_reach': 'closest',
    'multistart': 'closest',
    'meet_tolerances': 'closest',
    'wrap_rows_into_limits': 'closest',
    'follow': 'tracking',
    'explore': 'search',
    'start_within': 'search',
    'list_solutions': 'chain',
    'solve_many': 'search',
    'largest_move': 'arrays',
    'is_smooth': 'tracking',
    'formula_path': 'tracking',
    'best_branch': 'tracking',
    'fit_parabola': 'tracking',
    'note_demand': 'tracking',
    'drift': 'tracking',
    'blend_limits': 'tracking',
    'chase': 'tracking',
}
# compiled when they are asked for by name; a local method is a file of its own
SHARED = ('__init__', 'driver')
METHODS = sorted({path.stem for path in Path(__file__).parents[1].glob('methods/*.py')} - set(SHARED))
ON_DEMAND = {
    'eliminated': 'elimination.solutions',
    'find_families': 'redundancy',
    'reached_directions': 'search',
    'limit_distances': 'search',
    'estimate_misses': 'search',
    'search_tree': 'trees',
    'search_tree_transpose': 'trees',
    'settle_tree': 'trees',
    'solve_outwards': 'trees',
    'advance_limbs': 'trees',
    **{f'{kind}_{method}': f'methods.{method}' for method in METHODS for kind in ('local', 'search')},
}
# A part of many others; alone it serves the few steps of IkSolver.steps, for which plain Python will do.
del ON_DEMAND['local_lm']
KERNELS = SERVING | ON_DEMAND

# What an argument of this name is. f: float64, r: float64 and read-only (a writable array will do),
# a: float64 in any layout (all others are C-contiguous), i: int64, u: uint64, b: bool; then the number of
# dimensions, 0 for a scalar.
ARGUMENTS = {
    'f0': 'angle bound cosine dt least pole share temperature tolerance weight',
    'f1': 'a arrived b before blend deficit distances goal grid ladder misses model narrow near now options '
    'q seed size smooth span start times values weights wide',
    'f2': 'calm costs errors found frames given goals known marks parabola peaks places samples seeds table '
    'target turns work',
    'a2': 'out',
    'r1': 'l1 l2 period place source tool u w',
    'r2': 'directions form joints limits opened mounts shells tools trunk',
    'r3': 'forms',
    'i0': 'count descents first joint last most random_seed roll starts',
    'i1': 'choice counts ends leaves parents progress ranked rows',
    'i2': 'came_from columns',
    'u1': 'state',
    'b0': 'redundant trusted',
    'b1': 'reached solved',
}
# where an argument is not what its name stands for elsewhere
EXCEPTIONS = {
    ('best_branch', 'found'): 'f3',
    ('chase', 'now'): 'f2',
    ('closest_parallel', 'found'): 'f1',
    ('find_families', 'first'): 'i1',
    ('formula_path', 'found'): 'f3',
    ('solve_many', 'q'): 'f2',
    ('solve_outwards', 'joints'): 'r3',
    ('solve_outwards', 'limits'): 'r3',
    ('advance_limbs', 'joints'): 'r3',
    ('advance_limbs', 'limits'): 'r3',
}
_KINDS = {name: kind for kind, names in ARGUMENTS.items() for name in names.split()}


def kind_of(name: str) -> str:
    """Return the type of an argument of this name as in ARGUMENTS, '' where it has none."""
    return _KINDS.get(name, '')


def kinds(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the types of the arguments of a kernel as in ARGUMENTS. Raises KeyError for an unknown name."""
    kernel = function.__name__
    return tuple(
        EXCEPTIONS.get((kernel, name)) or _KINDS[name] for name in inspect.signature(function).parameters
    )
