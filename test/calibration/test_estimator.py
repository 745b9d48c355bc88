# SPDX-License-Identifier: Apache-2.0
"""The estimate of an arm from touches: derivatives, accuracy, choice of the model, wrong touches, what is rejected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from touched_arms import ARM, MODEL, SHEET, at, errors, touched

from ik_node import InputError
from ik_node.calibration.estimator import ANYWHERE, FRAMES, ZEROS, Touches, TouchModel
from ik_node.calibration.poses import Poses

COUNT = 15


@pytest.fixture(scope='module')
def poses() -> Poses:
    return Poses(MODEL)


@pytest.fixture(scope='module')
def chosen(poses: Poses) -> Touches:
    """Joints and crosses as the product chooses them."""
    touches = Touches(np.empty((0, ARM.n)), np.empty(0, dtype=np.int64))
    for _ in range(COUNT):
        row = poses.next(touches)
        touches = Touches(np.vstack([touches.q, poses.q[row]]), np.append(touches.crosses, poses.crosses[row]))
    return touches


def misses(parameters: np.ndarray, found: np.ndarray) -> np.ndarray:
    """How far [m] the true arm is from goals near the sheet when it is sent there by an estimate."""
    rng = np.random.default_rng(5)
    places = np.column_stack([rng.uniform(-0.1, 0.1, (40, 2)), rng.uniform(0.0, 0.1, 40)])
    q = at(found, np.tile(ARM.middle, (40, 1)), places)
    reached = np.linalg.norm(MODEL.points(q, found)[0] - places, axis=1) < 1e-4
    assert reached.sum() > 10
    return np.linalg.norm(MODEL.points(q, parameters)[0] - places, axis=1)[reached]


def test_points_are_those_of_forward_kinematics_and_slopes_are_their_derivatives():
    rng = np.random.default_rng(0)
    q, zero = ARM.sample(rng, 8), np.zeros(MODEL.pose.stop)
    points, slopes = MODEL.points(q, zero)
    expected = np.array([ARM.fk(row)[0] for row in q])
    np.testing.assert_allclose(points @ SHEET.pose[:3, :3].T + SHEET.pose[:3, 3], expected, atol=1e-12)
    for k in range(len(zero)):
        step = 1e-6 * np.eye(len(zero))[k]
        numeric = (MODEL.points(q, step)[0] - MODEL.points(q, -step)[0]) / 2e-6
        np.testing.assert_allclose(slopes[:, :, k], numeric, atol=1e-8)


def test_every_cross_is_chosen_from_different_sides(chosen: Touches):
    counts = np.bincount(chosen.crosses, minlength=len(SHEET.places))
    assert counts.min() >= COUNT // len(SHEET.places)
    assert (np.ptp(chosen.q, axis=0) > math.radians(20.0)).all()


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(2))
def test_goals_near_the_sheet_are_met_to_two_millimetres(chosen: Touches, seed: int):
    true = errors(seed)
    found = MODEL.calibrate(touched(true, chosen.q, chosen.crosses, seed=seed))
    before, after = misses(true, np.zeros_like(true)), misses(true, found.fit.parameters)
    assert np.median(before) > 5e-3
    assert np.median(after) < 2e-3
    assert found.wrong == {}
    assert 0.3 < found.left_out / np.median(after) < 3.0  # what the user reads is true


@pytest.mark.slow
def test_frames_are_estimated_only_where_they_are_off(chosen: Touches):
    exact = errors(1, frames=0.0)
    assert MODEL.calibrate(touched(exact, chosen.q, chosen.crosses)).model == ZEROS
    off = errors(1, frames=2.0)
    assert MODEL.calibrate(touched(off, chosen.q, chosen.crosses)).model == FRAMES


@pytest.mark.slow
def test_a_touch_at_another_cross_is_named_and_ignored(chosen: Touches):
    true = errors(2)
    touches = touched(true, chosen.q, chosen.crosses)
    crosses = touches.crosses.copy()
    crosses[4] = (crosses[4] + 1) % len(SHEET.places)
    found = MODEL.calibrate(Touches(touches.q, crosses))
    assert list(found.wrong) == [4]
    expected = np.linalg.norm(SHEET.places[crosses[4]] - SHEET.places[touches.crosses[4]])
    assert found.wrong[4] == pytest.approx(expected, abs=8e-3)
    assert np.median(misses(true, found.fit.parameters)) < 2e-3


@pytest.mark.slow
def test_a_sheet_that_lies_anywhere_is_found(chosen: Touches):
    model = TouchModel(ARM, SHEET.places, SHEET.pose, ANYWHERE)
    true = errors(3)
    true[model.pose] = [0.05, -0.03, 0.0, 0.0, 0.0, 0.4]
    q = at(
        true,
        np.tile(ARM.middle, (len(chosen.q), 1)) + 0.3 * (chosen.q - chosen.q.mean(axis=0)),
        SHEET.places[chosen.crosses],
    )
    near = np.linalg.norm(model.points(q, true)[0] - SHEET.places[chosen.crosses], axis=1) < 1e-6
    found = model.fit(Touches(q[near], chosen.crosses[near]), ZEROS)
    found_misses = np.linalg.norm(model.misses(Touches(q[near], chosen.crosses[near]), found.parameters), axis=1)
    assert near.sum() > 8
    assert np.median(found_misses) < 4e-3


def test_too_few_touches_and_touches_that_are_too_alike_are_rejected(chosen: Touches):
    with pytest.raises(InputError, match='at least 8 touches of 4 crosses are needed, got 5'):
        MODEL.calibrate(Touches(chosen.q[:5], chosen.crosses[:5]))
    with pytest.raises(InputError, match='at least 8 touches of 4 crosses are needed, got 10 of 1'):
        MODEL.calibrate(Touches(chosen.q[:10], np.zeros(10, dtype=np.int64)))
    alike = chosen.q.copy()
    alike[:, 0] = 0.1
    with pytest.raises(InputError, match=r'"shoulder_pan" moved by 0\.0 degrees only'):
        MODEL.calibrate(Touches(alike, chosen.crosses))


@pytest.mark.slow
def test_a_horn_on_another_tooth_is_told(chosen: Touches):
    true = errors(4)
    true[MODEL.zeros[2]] = math.radians(20.0)
    with pytest.raises(InputError, match=r'the zero of "elbow_flex" would move by .* teeth'):
        MODEL.calibrate(touched(true, chosen.q, chosen.crosses))


def test_a_sheet_out_of_reach_is_rejected():
    far = SHEET.pose.copy()
    far[0, 3] += 3.0
    with pytest.raises(InputError, match='can touch 0 of 6 crosses'):
        Poses(TouchModel(ARM, SHEET.places, far))
