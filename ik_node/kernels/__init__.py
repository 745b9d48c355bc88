"""Compiled functions and nothing else; layout.py describes the arrays that they share.

The names below are those that callers use: kernels.forward is chain.forward, loaded when it is asked for.
kernels.local_lm and kernels.search_lm are those of methods/lm.py, and so on for every local method.
"""

from importlib import import_module
from typing import Any

_NAMES = {
    'all_solutions': 'explore',
    'batch': 'solve_many',
    'chain': 'angle_between clip forward goal_errors jacobian squared_errors',
    'closed_form.candidates': 'MOST_CANDIDATES PARALLEL WRIST formula_solutions nearest_solution',
    'closest.general': 'best_row keep_unused_joints multistart wrap_rows_into_limits',
    'closest.newton': 'curved_equations',
    'closest.parallel': 'closest_parallel',
    'closest.position': 'closest_out_of_reach least_possible nearest_places',
    'distance': 'DISTINCT largest_move',
    'known_poses': 'tabulate_poses',
    'methods.driver': 'PATIENCE',
    'path': 'best_branch formula_path',
    'quartic': 'quartic_roots',
    'random': 'next_random perturb',
    'reachability': 'ATTEMPTS out_of_reach reached_directions',
    'restarts': 'INFORMED accepted anneal',
    'roll': 'serve_lateral',
    'rotation': 'FAR_TURNED ROOT_SLACK align_about_axis best_turn clamp_turn rotate_quaternion',
    'tracking': 'BEND LARGE_MOVE advance advance_path follow is_smooth',
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    kind, _, method = name.partition('_')
    module = f'methods.{method}' if kind in ('local', 'search') else _MODULES.get(name)
    if module is None:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    value = getattr(import_module(f'{__name__}.{module}'), name)
    globals()[name] = value
    return value
