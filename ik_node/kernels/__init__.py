# SPDX-License-Identifier: Apache-2.0
"""The mathematics: plain functions of arrays; arrays.py describes the arrays that they share.

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
    'arrays': 'DISTINCT FAR_TURNED ROOT_SLACK align_about_axis best_turn clamp_turn rotate_quaternion',
    'chain': 'BALL_ROWS angle_between clip excess_of_balls next_random perturb squared_errors',
    'closed_form': 'MOST_CANDIDATES PARALLEL WRIST',
    'closest': 'curved_equations',
    'elimination.layout': 'move write_vector',
    'elimination.pair': 'pair_candidates',
    'methods.ccd': 'turn_ball',
    'methods.driver': 'INFORMED PATIENCE accepted anneal next_start',
    'methods.lm': 'local_lm',
    'polynomials': 'quartic_roots',
    'redundancy': 'turns_freely',
    'runtime.takeover': 'KernelState Stage prepare ready state',
    'search': 'ATTEMPTS',
    'tracking': 'BEND LARGE_MOVE',
}
_OVERFLOWING = 'next_random', 'perturb'  # compiled code warns of no overflow either
_MODULES = {name: module for module, names in _OTHERS.items() for name in names.split()} | KERNELS


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    value = getattr(import_module(f'{__name__}.{_MODULES[name]}'), name)
    if name in KERNELS or name in _OVERFLOWING:
        value = np.errstate(all='ignore')(value)
    return globals().setdefault(name, value)
