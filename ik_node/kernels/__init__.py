# SPDX-License-Identifier: Apache-2.0
"""The mathematics: plain functions of arrays; arrays/layout.py describes the arrays that they share.

Call them through this package, as kernels.forward(...): they are plain Python at first, and are replaced by
their compiled versions, which give the same results, as soon as these are there (see runtime/takeover.py).
local_lm and search_lm are in methods/lm.py, and likewise for every local method.
"""

from importlib import import_module
from typing import Any

import numpy as np

from ik_node.kernels.runtime.signatures import KERNELS

# constants, templates, and what only kernels and tests use: never compiled for Python
_OTHERS = {
    'chain.ball_turns': 'turn_ball',
    'chain.balls': 'BALL_ROWS excess_of_balls',
    'chain.forward': 'angle_between clip squared_errors',
    'closed_form.candidates': 'MOST_CANDIDATES PARALLEL WRIST',
    'closest.newton': 'curved_equations',
    'arrays.distance': 'DISTINCT',
    'elimination.motion': 'move write_vector',
    'elimination.pair': 'pair_candidates',
    'redundancy.families': 'turns_freely',
    'runtime.takeover': 'KernelState Stage prepare ready state',
    'methods.driver': 'PATIENCE',
    'methods.lm': 'local_lm',
    'arrays.quartic': 'quartic_roots',
    'chain.random': 'next_random perturb',
    'search.reachability': 'ATTEMPTS',
    'methods.restarts': 'INFORMED accepted anneal next_start',
    'arrays.rotation': 'FAR_TURNED ROOT_SLACK align_about_axis best_turn clamp_turn rotate_quaternion',
    'tracking.tracking': 'BEND LARGE_MOVE',
}
_MODULES = {name: module for module, names in _OTHERS.items() for name in names.split()} | KERNELS


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    value = getattr(import_module(f'{__name__}.{_MODULES[name]}'), name)
    if name in KERNELS or _MODULES[name] == 'chain.random':  # compiled code warns of no overflow either
        value = np.errstate(all='ignore')(value)
    return globals().setdefault(name, value)
