# SPDX-License-Identifier: Apache-2.0
"""Run the conformance suite: every check for every method on every arm."""

from __future__ import annotations

import numpy as np
import pytest
from cases import FEW, shared_cases, shipped_cases
from conformance import CHECKS, PROMISES, Subject

from ik_node import IkSolver
from ik_node.solver.methods import METHODS

pytestmark = pytest.mark.slow

ARMS = {'pipeline': None, 'lm': FEW}  # None: all; methods for comparison have two arms in the gate
SLOW = ('autodiff', 'scipy')


def marks(method: str, arm: str) -> pytest.MarkDecorator:
    """Which gate a subject belongs to."""
    arms = ARMS.get(method, () if method in SLOW else ('seed_arm', 'prismatic_arm'))
    return pytest.mark.slow if arms is None or arm in arms else pytest.mark.nightly


SUBJECTS = [
    pytest.param(Subject(method, case), id=f'{method}-{case.label}', marks=marks(method, case.label))
    for method, promise in PROMISES.items()
    for case in [*shipped_cases(), *shared_cases()]
    if not promise.arms or case.label in promise.arms
]


def test_every_method_is_in_the_suite():
    assert {'pipeline', *METHODS} == {subject.values[0].method for subject in SUBJECTS}


@pytest.mark.parametrize('subject', SUBJECTS)
def test_conformance(subject, subtests):
    for check in CHECKS:
        with subtests.test(check.__name__):
            check(subject)


def test_known_poses_are_no_sample_that_a_caller_would_draw():
    """Else goals drawn with the solver's own seed are solved by looking them up."""
    arm = shipped_cases()[0].arm()
    for seed in range(3):
        known = IkSolver(arm, random_seed=seed)._search.table[: arm.n].T
        for other in range(10):
            assert not np.isin(arm.sample(np.random.default_rng(other), len(known)), known).any()
