# SPDX-License-Identifier: Apache-2.0
"""Goal: what is accepted, what is rejected, and with which words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ik_node import Goal, IkError, InputError
from ik_node.solver.goal import pack_goals

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (((1, 2),), ['position', '(3,)', '(2,)']),
        (((1, 2, 3, 4),), ['position', '(3,)', '(4,)']),
        ((1.0,), ['position', '(3,)', '()']),
        (([[1, 2, 3]],), ['position', '(3,)', '(1, 3)']),
        (('abc',), ['position', 'three numbers', 'abc']),
        ((None,), ['position']),
        (((1, 'x', 3),), ['position', 'three numbers']),
        (([1, [2], 3],), ['position', 'three numbers']),
        (((1j, 0, 0),), ['position', 'three numbers']),
        (((10**400, 0, 0),), ['position', 'finite', 'beyond']),
        (((10**400, 0),), ['position']),
        (((0, 0, 0), (0, 0, -(10**400))), ['direction', 'finite', 'beyond']),
        (((NAN, 0, 0),), ['position', 'finite', 'nan']),
        (((0, -INF, 0),), ['position', 'finite', 'inf']),
        (((0, -1e300, 0),), ['position', 'within 1e+09 m', '[0.0, -1e+300, 0.0]']),
        (((0, 0, 0), (0, 0)), ['direction', '(3,)', '(2,)']),
        (((0, 0, 0), (0, NAN, 1)), ['direction', 'finite', 'nan']),
        (((0, 0, 0), (INF, 0, 0)), ['direction', 'finite', 'inf']),
        (((0, 0, 0), (0, 0, 0)), ['direction', 'unit', 'length 0']),
        (((0, 0, 0), (0, 0, 1.002)), ['direction', 'unit', '1.002']),
        (((0, 0, 0), (0, 0, 0.998)), ['direction', 'unit', '0.998']),
        (((0, 0, 0), (0, 0, -2)), ['direction', 'unit', 'length 2']),
        (((0, 0, 0), (1e200, 1e200, 0)), ['direction', 'unit']),
        (((0, 0, 0), (0, 0, 1), (0, 0, 0)), ['lateral', 'unit']),
        (((0, 0, 0), (0, 0, 1), (1, 0)), ['lateral', '(3,)']),
        (((0, 0, 0), None, (1, 0, 0)), ['lateral', 'direction']),
    ],
)
def test_bad_input_is_one_error_that_names_what_was_given(arguments, words):
    with pytest.raises(InputError) as caught:
        Goal(*arguments)
    for word in words:
        assert word in str(caught.value)
    assert isinstance(caught.value, IkError)
    assert isinstance(caught.value, ValueError)


@given(
    st.floats(0.9991, 1.0009),
    st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1),
)
def test_nearly_unit_directions_are_normalised(length, vector):
    unit = np.array(vector) / np.linalg.norm(vector)
    goal = Goal((0, 0, 0), unit * length)
    assert abs(np.linalg.norm(goal.direction) - 1) < 4e-16
    np.testing.assert_allclose(goal.direction, unit, rtol=0, atol=1e-15)


def test_whole_numbers_lists_and_float32_are_welcome():
    assert Goal([1, 2, 3]).position.tolist() == [1.0, 2.0, 3.0]
    goal = Goal(np.array([1, 2, 3], dtype=np.float32), np.array([0, 0, 1], dtype=np.float32))
    assert goal.position.dtype == goal.direction.dtype == np.float64


def test_a_goal_is_a_copy_and_cannot_be_changed():
    position = np.array([1.0, 2.0, 3.0])
    goal = Goal(position, (0, 0, 1))
    position[:] = 0
    assert goal.position.tolist() == [1, 2, 3]
    for array in (goal.position, goal.direction):
        with pytest.raises(ValueError, match='read-only'):
            array[0] = 5.0
    with pytest.raises(AttributeError):
        goal.position = position


def test_packed_holds_nan_for_what_is_not_asked():
    np.testing.assert_array_equal(Goal((1, 2, 3)).packed, [1, 2, 3, *[NAN] * 6])
    np.testing.assert_array_equal(Goal((1, 2, 3), (0, 1, 0)).packed, [1, 2, 3, 0, 1, 0, *[NAN] * 3])
    np.testing.assert_array_equal(Goal((1, 2, 3), (0, 1, 0), (1, 0, 0)).packed, [1, 2, 3, 0, 1, 0, 1, 0, 0])


def test_positions_beyond_all_measure_are_rejected_in_a_batch_too():
    with pytest.raises(InputError, match=r'within 1e\+09 m .* row 1 is \[0.0, 0.0, 1e\+300\]'):
        pack_goals([[1e9, 0, -1e9], [0, 0, 1e300]], None)
    assert Goal((1e9, 0, -1e9)).position[0] == 1e9
