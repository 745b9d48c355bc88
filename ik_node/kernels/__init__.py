"""The mathematics: plain functions of arrays; layout.py describes the arrays that they share.

Call them through this package, as kernels.forward(...): they are plain Python at first, and are replaced by
their compiled versions, which give the same results, as soon as these are available (see loading.py).
local_lm and search_lm are in methods/lm.py, and likewise for every local method.
"""

from importlib import import_module
from typing import Any

import numpy as np

from ik_node.kernels.signatures import KERNELS

# constants, templates, and what only kernels and tests use: never compiled for Python
_OTHERS = {
    'ball_turns': 'turn_ball',
    'balls': 'BALL_ROWS excess_of_balls',
    'chain': 'angle_between clip squared_errors',
    'closed_form.candidates': 'MOST_CANDIDATES PARALLEL WRIST',
    'closest.newton': 'curved_equations',
    'distance': 'DISTINCT',
    'elimination.motion': 'move write_vector',
    'elimination.pair': 'pair_candidates',
    'families': 'turns_freely',
    'loading': 'KernelState Stage prepare state',
    'methods.driver': 'PATIENCE',
    'methods.lm': 'local_lm',
    'quartic': 'quartic_roots',
    'random': 'next_random perturb',
    'reachability': 'ATTEMPTS',
    'restarts': 'INFORMED accepted anneal next_start',
    'rotation': 'FAR_TURNED ROOT_SLACK align_about_axis best_turn clamp_turn rotate_quaternion',
    'tracking': 'BEND LARGE_MOVE',
}
_MODULES = {name: module for module, names in _OTHERS.items() for name in names.split()} | KERNELS


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    value = getattr(import_module(f'{__name__}.{_MODULES[name]}'), name)
    if name in KERNELS or _MODULES[name] == 'random':  # compiled code warns of no overflow either
        value = np.errstate(all='ignore')(value)
    return globals().setdefault(name, value)
