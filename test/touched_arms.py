# SPDX-License-Identifier: Apache-2.0
"""Arms whose zeros, frames and tool point are off, and touches of a sheet by them."""

from __future__ import annotations

import math

import numpy as np

from ik_node import Arm
from ik_node.calibration.estimator import Touches
from ik_node.calibration.sheet import Sheet
from ik_node.model.urdf.description import load_description
from ik_node.startup.arguments import URDF

FILE = URDF / 'so101_like.urdf.xacro'
TEXT = load_description(FILE)
ARM = Arm.from_urdf(TEXT, 'tool0', tool_axis='z')
SHEET = Sheet.of(ARM, TEXT)
MODEL = SHEET.model(ARM)


def errors(seed: int, frames: float = 1.0, zeros: float = 3.0) -> np.ndarray:
    """Parameters of an arm with random errors: frames times 1 mm and 0.5 degrees, zeros [degrees], tool 3 mm."""
    rng, parameters = np.random.default_rng(seed), np.zeros(MODEL.pose.stop)
    joints = parameters[: MODEL.tool.start].reshape(-1, 7)
    joints[:, :3] = rng.normal(0.0, frames * 1e-3, (ARM.n, 3))
    joints[:, 3:6] = rng.normal(0.0, frames * math.radians(0.5), (ARM.n, 3))
    joints[:-1, 6] = rng.normal(0.0, math.radians(zeros), ARM.n - 1)
    parameters[MODEL.tool] = rng.normal(0.0, 3e-3, 3)
    return parameters


def at(parameters: np.ndarray, q: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Joints (k, n) near q (k, n) with the tool point at places (k, 3) of the sheet."""
    for _ in range(12):
        points, slopes = MODEL.points(q, parameters)
        columns = slopes[:, :, MODEL.zeros]
        squares = columns @ columns.transpose(0, 2, 1) + 1e-9 * np.eye(3)
        steps = columns.transpose(0, 2, 1) @ np.linalg.solve(squares, (places - points)[:, :, None])
        q = q + np.clip(steps[:, :, 0], -0.3, 0.3)
    return q


def touched(
    parameters: np.ndarray, q: np.ndarray, crosses: np.ndarray, noise: float = 0.5e-3, seed: int = 0
) -> Touches:
    """What is measured when the tool is put on crosses (k,), the arm about as in q (k, n)."""
    places = SHEET.places[crosses] + np.random.default_rng(seed).normal(0.0, noise, (len(q), 3))
    return Touches(at(parameters, q, places), crosses)
