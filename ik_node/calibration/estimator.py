# SPDX-License-Identifier: Apache-2.0
"""What an arm is really like, from touches of crosses on a sheet: zeros, tool point, frames of the joints.

Maximum a posteriori estimate by Gauss-Newton: the tool point at each touch must be at its cross, and no parameter far
from what the description says. What the touches do not tell, such as a motion of all frames that moves no touched
point, stays where it was. Each touch counts less the farther it misses (Cauchy's weight), so that one at the wrong
cross does not bend the others. The noise is estimated from the residuals and the degrees of freedom that the
parameters take (Hastie and Tibshirani's effective number: the trace of the hat matrix).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import InputError, quoted
from ik_node.kernels.arrays import AXIS, OFFSET, PRISMATIC
from ik_node.model.arm import Arm
from ik_node.model.rotations import rotations, turned_by

# Standard deviations of what is known before: of a low-cost arm that its owner has assembled.
ZERO = math.radians(3.0)  # of the zero of a joint that turns
SLIDE = 3e-3  # [m] likewise, of one that slides
SHIFT, TILT = 1e-3, math.radians(0.5)  # of the frame of a joint
TOOL = 20e-3  # [m] of the tool point: also that of a pencil in the jaws
ON_OUTLINE = (1e-3, 1e-3, 2e-3, math.radians(0.7), math.radians(0.7), math.radians(0.4))  # of the sheet's pose
ANYWHERE = (0.3, 0.3, 2e-3, math.radians(0.7), math.radians(0.7), math.pi)  # likewise, on the table of the base

ROBUST = 2.5  # noises: a touch that misses by more counts less
START_NOISE, LEAST_NOISE = 1.2e-3, 0.3e-3  # [m]
MEDIAN = 1.538  # of the length of three numbers with standard normal distributions
WRONG = 3.5  # noises of the prediction by all others: the touch was not at this cross
WORST_LEFT_OUT = 20e-3  # [m] of a left-out touch in the figure for all
BETTER = 0.9  # times the left-out miss of zeros and tool point: then frames are worth a new description
STEPS, NOISES = 20, 4  # of Gauss-Newton, and estimates of the noise
LARGEST_STEP, CONVERGED = 3.0, 1e-4  # standard deviations
FEWEST_TOUCHES, FEWEST_CROSSES = 8, 4
LEAST_SPAN = math.radians(5.0)  # of each joint over all touches
FARTHEST_ZERO = math.radians(15.0)
MODELS = ZEROS, FRAMES = 'zeros', 'frames'


@dataclass(frozen=True)
class Touches:
    """Where the joints were while the tool point touched crosses: q (k, n) [rad or m], crosses (k,) their numbers."""

    q: Array
    crosses: NDArray[np.int64]

    def without(self, left_out: NDArray[np.bool_]) -> Touches:
        """Return the touches but those of a mask (k,)."""
        return Touches(self.q[~left_out], self.crosses[~left_out])


@dataclass(frozen=True)
class Fit:
    """One estimate: parameters (p,), see TouchModel, their covariance (p, p), and the noise [m] of a touch."""

    parameters: Array
    covariance: Array
    noise: float


@dataclass(frozen=True)
class Calibration:
    """An estimate, and what can be said about it.

    model: one of MODELS. before [m]: the median miss of the touches by the description. left_out [m]: of crosses by the
    estimate without them, the honest figure. scatter [m]: between touches of one cross, which no estimate removes.
    wrong: touches that were ignored, and how far [m] each was from its cross.
    """

    model: str
    fit: Fit
    before: float
    left_out: float
    scatter: float
    wrong: dict[int, float]


class TouchModel:
    """Where an arm with errors has its tool point on a sheet.

    places (c, 3) [m]: the crosses in the sheet's frame. sheet (4, 4): the frame in that of the base, as printed. known
    (6,): standard deviations of its position [m] and of its rotation [rad].

    Parameters, for each joint: translation (3) [m] and rotation vector (3) [rad] of its frame, with the axes of the
    base at the zero pose, and its zero [rad or m], which is added to its position; then the displacement (3) [m] of the
    tool point in the last of these frames, and translation and rotation vector of the sheet. Raises InputError for arms
    with mimic joints.
    """

    def __init__(self, arm: Arm, places: Array, sheet: Array, known: Sequence[float] = ON_OUTLINE) -> None:
        if not arm.is_plain:
            raise InputError(f'{arm.name}: arms with mimic joints in the chain cannot be calibrated')
        self.arm, self.places, self.sheet = arm, places, sheet
        self.tool = slice(7 * arm.n, 7 * arm.n + 3)
        self.pose = slice(7 * arm.n + 3, 7 * arm.n + 9)
        self.zeros = np.arange(6, 7 * arm.n, 7)
        self.slides = arm.joints[:, PRISMATIC] == 1.0
        self.known = np.asarray(known)

    def deviations(self, model: str) -> Array:
        """Return the standard deviation (p,) of each parameter before any touch, 0 for those that stay.

        The zero of the last joint stays: to turn it is to turn the tool point about its axis, which is estimated.
        """
        sigma = np.zeros(self.pose.stop)
        joints = sigma[: self.tool.start].reshape(-1, 7)
        if model == FRAMES:
            joints[:, :3], joints[:, 3:6] = SHIFT, TILT
        joints[:-1, 6] = np.where(self.slides, SLIDE, ZERO)[:-1]
        sigma[self.tool], sigma[self.pose] = TOOL, self.known
        return sigma

    def points(self, q: Array, parameters: Array) -> tuple[Array, Array]:
        """Return tool points (k, 3) [m] in the sheet's frame at q (k, n), and their derivatives (k, 3, p)."""
        arm, count = self.arm, len(q)
        turn, point = np.broadcast_to(np.eye(3), (count, 3, 3)), np.zeros((count, 3))
        befores, turneds, pivots = [], [], []
        errors = parameters[: self.tool.start].reshape(-1, 7)
        for j, (row, error) in enumerate(zip(arm.joints, errors, strict=True)):
            befores.append(turn)
            point = point + turn @ (row[OFFSET] + error[:3])
            turn = turn @ turned_by(error[3:6])
            turneds.append(turn)
            pivots.append(point)
            value = q[:, j] + error[6]
            if self.slides[j]:
                point = point + value[:, None] * (turn @ row[AXIS])
            else:
                turn = turn @ rotations(row[AXIS], value)
        point = point + turn @ (arm.tool[:3] + parameters[self.tool])
        slopes = np.zeros((count, 3, len(parameters)))
        for j, (before, turned, pivot) in enumerate(zip(befores, turneds, pivots, strict=True)):
            columns, axis = slopes[:, :, 7 * j : 7 * j + 7], turned @ arm.joints[j, AXIS]
            columns[:, :, :3] = before
            # A rotation vector of half a degree turns as that of its derivative does, to a hundredth.
            columns[:, :, 3:6] = np.cross(turned, (point - pivot)[:, :, None], axis=1)
            columns[:, :, 6] = axis if self.slides[j] else np.cross(axis, point - pivot)
        slopes[:, :, self.tool] = turn
        shift, rotation = parameters[self.pose][:3], parameters[self.pose][3:]
        frame = turned_by(rotation) @ self.sheet[:3, :3]
        lever = point - self.sheet[:3, 3] - shift
        slopes[:, :, self.pose.start : self.pose.start + 3] = -np.eye(3)
        slopes[:, :, self.pose.start + 3 :] = -np.cross(np.eye(3), lever[:, :, None], axis=1)
        return lever @ frame, frame.T @ slopes

    def misses(self, touches: Touches, parameters: Array) -> Array:
        """Return how far (k, 3) [m] each tool point is from its cross, in the sheet's frame."""
        return self.points(touches.q, parameters)[0] - self.places[touches.crosses]

    def start(self, touches: Touches) -> Array:
        """Return the parameters (p,) of the description, and the pose of a sheet that may lie anywhere.

        That is the rigid motion with the least sum of squares (Kabsch 1976), turned about the vertical only.
        """
        parameters = np.zeros(self.pose.stop)
        if self.known[5] > 1.0:
            points = self.points(touches.q, parameters)[0]
            places = self.places[touches.crosses]
            a, b = (each[:, :2] - each[:, :2].mean(axis=0) for each in (places, points))
            turn = math.atan2((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum(), (a * b).sum())
            frame = self.sheet[:3, :3]
            up = frame[:, 2]
            parameters[self.pose][3:] = turn * up
            turned = turned_by(turn * up)
            shift = frame @ points.mean(axis=0) - turned @ frame @ places.mean(axis=0)
            parameters[self.pose][:3] = shift - up * (up @ shift)
        return parameters

    def fit(self, touches: Touches, model: str, near: Fit | None = None) -> Fit:
        """Return the estimate by model, one of MODELS, with its noise. near: of nearly the same touches, its start."""
        sigma = self.deviations(model)
        free = sigma > 0.0
        scale, start = sigma[free], self.start(touches)
        parameters, noise = (start.copy(), START_NOISE) if near is None else (near.parameters.copy(), near.noise)
        for _ in range(NOISES):
            for _ in range(STEPS):
                points, slopes = self.points(touches.q, parameters)
                misses = (points - self.places[touches.crosses]) / noise
                rows = slopes[:, :, free] * scale / noise
                weights = 1.0 / (1.0 + (misses**2).sum(axis=1) / (3.0 * ROBUST**2))
                # Normal equations in units of the standard deviations: the prior is the unit matrix.
                normal = np.eye(len(scale)) + np.einsum('k,kia,kib->ab', weights, rows, rows)
                gradient = np.einsum('k,kia,ki->a', weights, rows, misses)
                gradient += (parameters - start)[free] / scale
                step = np.linalg.solve(normal, gradient)
                largest = np.abs(step).max()
                parameters[free] -= min(1.0, LARGEST_STEP / max(largest, 1e-12)) * step * scale
                if largest < CONVERGED:
                    break
            used = len(scale) - np.trace(np.linalg.inv(normal))
            left = max(misses.size - used, 0.25 * misses.size)
            lengths = noise * np.linalg.norm(misses, axis=1)
            new = max(float(np.median(lengths)) / MEDIAN * math.sqrt(misses.size / left), LEAST_NOISE)
            converged, noise = abs(new / noise - 1.0) < 0.05, new
            if converged:
                break
        covariance = np.zeros((len(sigma), len(sigma)))
        covariance[np.ix_(free, free)] = np.linalg.inv(normal) * np.outer(scale, scale)
        return Fit(parameters, covariance, noise)

    def wrong_touches(self, touches: Touches, model: str) -> dict[int, float]:
        """Return touches that are not where all others put their crosses, and how far away [m] each is."""
        found: dict[int, float] = {}
        everyone = np.arange(len(touches.q))
        while len(found) < len(everyone) // 4:
            worst, least = -1, WRONG
            base = self.fit(touches.without(np.isin(everyone, list(found))), model)
            kept = [k for k in range(len(everyone)) if k not in found]
            for k in kept:
                fit = self.fit(touches.without(np.isin(everyone, np.array([k, *found]))), model, base)
                point, slopes = self.points(touches.q[[k]], fit.parameters)
                miss = point[0] - self.places[touches.crosses[k]]
                spread = slopes[0] @ fit.covariance @ slopes[0].T + fit.noise**2 * np.eye(3)
                doubt = math.sqrt(miss @ np.linalg.solve(spread, miss) / 3.0)
                if doubt > least:
                    worst, least, far = k, doubt, float(np.linalg.norm(miss))
            if worst < 0:
                break
            found[worst] = far
        return found

    def left_out(self, touches: Touches, model: str) -> float:
        """Return the root of the mean square miss [m] of each cross by the fit to all others."""
        squares, base = list[float](), self.fit(touches, model)
        for cross in np.unique(touches.crosses):
            mask = touches.crosses == cross
            fit = self.fit(touches.without(mask), model, base)
            misses = np.linalg.norm(self.misses(touches.without(~mask), fit.parameters), axis=1)
            squares += np.minimum(misses, WORST_LEFT_OUT).tolist()
        return float(np.sqrt(np.mean(np.square(squares))))

    def scatter(self, touches: Touches, fit: Fit) -> float:
        """Return the root of the mean square distance [m] of touches from the middle of those at the same cross."""
        squares = []
        for cross in np.unique(touches.crosses):
            misses = self.misses(touches.without(touches.crosses != cross), fit.parameters)
            squares += ((misses - misses.mean(axis=0)) ** 2).sum(axis=1).tolist()
        return float(np.sqrt(np.mean(squares)))

    def calibrate(self, touches: Touches, model: str = '') -> Calibration:
        """Return the estimate by the model that predicts left-out crosses best, without wrong touches.

        model: one of MODELS, '' to choose: all frames only if that misses a tenth less than zeros and tool point do.
        Raises InputError if the touches are too few or too alike, or a zero would move too far to be believed.
        """
        self._check(touches)
        wrong = self.wrong_touches(touches, model or FRAMES)
        good = touches.without(np.isin(np.arange(len(touches.q)), list(wrong)))
        self._check(good)
        misses = {name: self.left_out(good, name) for name in ([model] if model else MODELS)}
        chosen = model or (FRAMES if misses[FRAMES] < BETTER * misses[ZEROS] else ZEROS)
        fit = self.fit(good, chosen)
        before = np.linalg.norm(self.misses(good, self.start(good)), axis=1)
        found = Calibration(chosen, fit, float(np.median(before)), misses[chosen], self.scatter(good, fit), wrong)
        zeros = np.where(self.slides, 0.0, fit.parameters[self.zeros])
        if np.abs(zeros).max() > FARTHEST_ZERO:
            j = int(np.abs(zeros).argmax())
            raise InputError(
                f'the zero of {quoted(self.arm.joint_names[j])} would move by {math.degrees(zeros[j]):.0f} degrees: is '
                'its horn mounted some teeth off, or is this the description of another arm?'
            )
        return found

    def check_limits(self, q: Array) -> None:
        """Raise InputError for joints (k, n) that are farther beyond their limits than a zero may be off."""
        arm = self.arm
        beyond = np.where(self.slides, -math.inf, np.maximum(arm.lower - q, q - arm.upper)).max(axis=0, initial=0.0)
        if beyond.max() > FARTHEST_ZERO:
            j = int(beyond.argmax())
            raise InputError(
                f'joint {quoted(arm.joint_names[j])} is {beyond[j]:.3g} rad beyond its limits, {arm.lower[j]:.3g} to '
                f'{arm.upper[j]:.3g} rad: are the positions in degrees, or is this the description of another arm?'
            )

    def _check(self, touches: Touches) -> None:
        """Raise InputError for touches that are too few, too alike, or far beyond the limits of a joint."""
        crosses = len(np.unique(touches.crosses))
        if len(touches.q) < FEWEST_TOUCHES or crosses < FEWEST_CROSSES:
            raise InputError(
                f'at least {FEWEST_TOUCHES} touches of {FEWEST_CROSSES} crosses are needed, got {len(touches.q)} of '
                f'{crosses}'
            )
        self.check_limits(touches.q)
        spans = np.where(self.slides, math.inf, np.ptp(touches.q, axis=0))[:-1]
        if spans.min() < LEAST_SPAN:
            name = quoted(self.arm.joint_names[int(spans.argmin())])
            raise InputError(
                f'the touches are too alike: {name} moved by {math.degrees(spans.min()):.1f} degrees only; '
                'touch crosses far apart, from different sides'
            )
