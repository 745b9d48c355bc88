# SPDX-License-Identifier: Apache-2.0
"""Run the conformance suite: every check for every method on every arm."""

from __future__ import annotations

import numpy as np
import pytest
from cases import shared_cases, shipped_cases
from conformance import CHECKS, PROMISES, Subject

from ik_node import IkSolver
from ik_node.solver.methods.registry import METHODS

SERVING = ('pipeline', 'lm')  # the others are for comparison: three arms do for the gate
ARMS = ('seed_arm', 'so101_like', 'prismatic_arm')


def marks(method: str, arm: str) -> pytest.MarkDecorator:
    """Which gate a subject belongs to."""
    if method in SERVING or (arm in ARMS and method not in ('autodiff', 'scipy')):
        return pytest.mark.slow
    return pytest.mark.nightly


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
        known = IkSolver(arm, random_seed=seed)._parts.search.table[: arm.n].T
        for other in range(10):
            assert not np.isin(arm.sample(np.random.default_rng(other), len(known)), known).any()
