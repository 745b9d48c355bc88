"""Run the conformance suite: every check for every method on every arm."""

from __future__ import annotations

import pytest
from cases import shared_cases, shipped_cases
from conformance import CHECKS, EFFORTS, Subject

from ik_node.kinematics.solver import METHODS

SUBJECTS = [
    pytest.param(Subject(method, case), id=f'{method}-{case.label}')
    for method, effort in EFFORTS.items()
    for case in [*shipped_cases(), *shared_cases()]
    if not effort.arms or case.label in effort.arms
]


def test_every_method_is_in_the_suite():
    assert {'pipeline', *METHODS} == set(EFFORTS)


@pytest.mark.parametrize('check', CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize('subject', SUBJECTS)
def test_conformance(subject, check):
    check(subject)
