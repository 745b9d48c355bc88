# SPDX-License-Identifier: Apache-2.0
"""The mathematics: plain functions of arrays; arrays.py describes the arrays that they share.

Call them through this package, as kernels.forward(...): they are plain Python at first, and are replaced by
the same kernels in C, which give the same bits, as soon as these are there (see native.py). local_lm and
search_lm are in methods/lm.py, and likewise for every local method.
"""

from importlib import import_module
from typing import Any

import numpy as np

# By module, the kernels that Python calls: they are compiled, with all that they call.
_COMPILED = {
    'arrays': 'largest_move pack_direction pack_position pack_rows read_finite',
    'chain': 'forward goal_errors jacobian list_solutions serve_lateral tabulate_poses',
    'closed_form': 'formula_solutions nearest_by_formula',
    'closest': 'best_row closest_out_of_reach closest_parallel keep_unused_joints least_possible '
    'meet_tolerances multistart nearest_positions rank_starts wrap_rows_into_limits',
    'cones': 'nearest_in_cone search_cone',
    'elimination.solutions': 'eliminated',
    'lanes': 'nearest_in_lanes',
    'methods.ccd': 'local_ccd search_ccd',
    'methods.dls': 'local_dls search_dls',
    'methods.fabrik': 'local_fabrik search_fabrik',
    'methods.lm': 'local_lm search_lm',
    'methods.transpose': 'local_transpose search_transpose',
    'redundancy': 'find_families',
    'search': 'estimate_misses explore limit_distances out_of_reach reached_directions solve_many start_within',
    'tracking': 'advance best_branch blend_limits chase drift fit_parabola follow formula_path is_smooth note_demand',
    'trees': 'advance_limbs search_tree search_tree_transpose settle_tree solve_outwards',
}
# Constants, templates, and what only kernels and tests use: Python's own.
_OTHERS = {
    'arrays': 'DISTINCT FAR_TURNED ROOT_SLACK align_about_axis best_turn clamp_turn rotate_quaternion',
    'chain': 'BALL_ROWS angle_between clip excess_of_balls next_random perturb squared_errors',
    'closed_form': 'MOST_CANDIDATES PARALLEL WRIST',
    'closest': 'curved_equations',
    'cones': 'CONE',
    'elimination.layout': 'move write_vector',
    'elimination.pair': 'pair_candidates',
    'methods.ccd': 'turn_ball',
    'methods.driver': 'INFORMED PATIENCE accepted anneal next_start',
    'native': 'KernelState Stage prepare ready state',
    'polynomials': 'quartic_roots',
    'redundancy': 'turns_freely',
    'search': 'ATTEMPTS',
    'tracking': 'BEND LARGE_MOVE',
}
KERNELS = {name: module for module, names in _COMPILED.items() for name in names.split()}
_OVERFLOWING = 'next_random', 'perturb'  # C warns of no overflow either
_MODULES = {name: module for module, names in _OTHERS.items() for name in names.split()} | KERNELS


def _reading_arrays(kernel: Any) -> Any:
    """Return a plain kernel whose first argument is V1: of what that may be it reads arrays alone."""

    def read(values: Any, *given: Any) -> Any:
        is_read = type(values) is np.ndarray and values.dtype == np.float64 and values.ndim == 1
        return kernel(values, *given) if is_read else None

    return read


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    value = getattr(import_module(f'{__name__}.{_MODULES[name]}'), name)
    if name in KERNELS or name in _OVERFLOWING:
        reads = 'V1' in value.__annotations__.values()
        value = np.errstate(all='ignore')(value)
        value = _reading_arrays(value) if reads else value
    return globals().setdefault(name, value)
