# SPDX-License-Identifier: Apache-2.0
"""Touches of real arms, by others: how far a ball in two sockets scatters before and after calibration elsewhere.

python -m benchmarks.real_touches FOLDER, a clone of https://github.com/platonics-delft/kinematics_calibration (MUKCa,
arXiv 2503.12584): joints of Panda, KUKA iiwa and Kinova Gen3 lite arms while a ball at their tip was in two sockets
50 mm apart, at several places.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.tables import Table
from ik_node import Arm
from ik_node.calibration.estimator import MODELS, Touches, TouchModel
from ik_node.checks import Array

SETS = {
    'dinova_1': 'gen3lite',
    'dinova_2': 'gen3lite',
    'kuka_14': 'iiwa14',
    'panda_1': 'panda',
    'panda_2': 'panda',
    'panda_1_with_sensor': 'panda_plus_bota',
}
SOCKETS = np.array([[-0.025, 0.0, 0.0], [0.025, 0.0, 0.0]])  # [m]
ANYWHERE = (0.05, 0.05, 0.05, 0.5, 0.5, 0.5)  # [m, rad] from where the description has the sockets


def model_at(arm: Arm, sockets: list[Array]) -> TouchModel:
    """Return the model of two sockets that are where the description has the ball in the mean."""
    a, b = (np.array([arm.fk(q)[0] for q in rows]).mean(axis=0) for rows in sockets)
    along = (b - a) / np.linalg.norm(b - a)
    across = np.linalg.svd(along[None])[2][1]
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = np.column_stack([along, across, np.cross(along, across)]), 0.5 * (a + b)
    return TouchModel(arm, SOCKETS, pose, ANYWHERE)


def scatter(model: TouchModel, parameters: Array, places: list[list[Array]]) -> float:
    """Return the median distance [mm] of the ball from its mean in each socket."""
    points = [model.points(rows, parameters)[0] for sockets in places for rows in sockets]
    return float(1e3 * np.median(np.concatenate([np.linalg.norm(one - one.mean(axis=0), axis=1) for one in points])))


def main() -> None:
    """Print the scatter at all other places, in the mean over the places where the arm is calibrated."""
    folder = Path(sys.argv[1])
    table = Table('data'.ljust(20), 'places', 'touches', 'description', *MODELS)
    for name, urdf in SETS.items():
        arm = Arm.from_file(folder / 'urdf' / f'{urdf}.urdf', 'ball_link', tool_axis='z')
        places = [
            [np.loadtxt(place / f'hole_{k}.csv', delimiter=',')[:, : arm.n] for k in (0, 1)]
            for place in sorted((folder / 'data' / name).iterdir())
            if place.is_dir()
        ]
        figures = []
        for k, sockets in enumerate(places):
            model, others = model_at(arm, sockets), places[:k] + places[k + 1 :]
            touches = Touches(np.vstack(sockets), np.repeat([0, 1], [len(rows) for rows in sockets]))
            fits = [model.fit(touches, kind).parameters for kind in MODELS]
            figures.append([scatter(model, one, others) for one in (np.zeros(model.pose.stop), *fits)])
        counts = [sum(map(len, sockets)) for sockets in places]
        means = (f'{value:.2f}' for value in np.mean(figures, axis=0))
        table.row(name, len(places), f'{min(counts)} to {max(counts)}', *means)


if __name__ == '__main__':
    main()
