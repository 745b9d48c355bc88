# SPDX-License-Identifier: Apache-2.0
"""Run LeRobot's processor steps along hand paths, in a process of their own: see lerobot.py."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import site
import sys
import tempfile
import types
from abc import ABCMeta
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from lxml import etree

from benchmarks.chain import Array
from benchmarks.hand_paths import PERIOD, HandPath
from benchmarks.tables import Table
from ik_node import Goal, IkSolver, kernels
from ik_node.lerobot import RobotKinematics

# LeRobot imports these for policies, cameras and data sets; the steps of its kinematics do not use them.
UNUSED = ('torch', 'torchvision', 'transformers', 'datasets', 'pyarrow', 'pandas')
UNUSED += ('PIL', 'cv2', 'av', 'accelerate', 'gymnasium', 'pynput')
MOTORS = ['shoulder_pan', 'shoulder_lift', 'elbow_flex', 'wrist_flex', 'wrist_roll', 'gripper']
START = np.array([5.0, -20.0, 30.0, 40.0, 10.0, 33.0])  # [deg], and the gripper
SECONDS = 20.0
SCALES = (0.5, 1.0, 2.0)
TURN = 0.5  # [deg] per frame
REACHED = 1e-4  # [m]


class _Meta(ABCMeta):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return _Unused


class _Unused(metaclass=_Meta):
    """Stands for whatever of an unused library is named, called, derived from or used to decorate."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *given: Any, **_: Any) -> Any:
        return given[0] if given and callable(given[0]) else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return _Unused()

    def __class_getitem__(cls, _: Any) -> Any:
        return cls


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the unused libraries where they are not installed."""

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        if name.partition('.')[0] not in UNUSED:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return type(name, (_Unused,), {})


def add_lerobot(where: str) -> None:
    """Have LeRobot found in a folder of packages, and what it does not use here replaced."""
    site.addsitedir(where)
    sys.path[:0] = map(str, Path(where).glob('cmeel.prefix/lib/python*/site-packages'))  # placo, its own coal
    sys.meta_path.append(_Finder())


@contextmanager
def bare_file(urdf: str) -> Iterator[Path]:
    """A file with a URDF, without the meshes, which placo would want."""
    root = etree.fromstring(urdf.encode())
    for shape in root.xpath('//visual | //collision'):
        shape.getparent().remove(shape)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'arm.urdf'
        file.write_bytes(etree.tostring(root))
        yield file


class Timed:
    """Kinematics whose inverse_kinematics is timed; for the rest the steps see the original."""

    def __init__(self, kinematics: Any) -> None:
        self._kinematics = kinematics
        self.times: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kinematics, name)

    def inverse_kinematics(self, *arguments: Any, **options: Any) -> Array:
        """Return what the original returns."""
        start = perf_counter()
        found: Array = self._kinematics.inverse_kinematics(*arguments, **options)
        self.times.append(perf_counter() - start)
        return found


def follow(kinematics: Timed, poses: Sequence[Array]) -> tuple[Array, Array]:
    """Return joints (k, 6) [deg] and positions (k, 3) [m] of LeRobot's steps for poses of the tool."""
    from lerobot.processor.converters import create_transition
    from lerobot.processor.core import TransitionKey
    from lerobot.robots.so_follower.robot_kinematic_processor import (
        ForwardKinematicsJointsToEEAction,
        InverseKinematicsEEToJoints,
    )
    from lerobot.utils.rotation import Rotation

    inverse = InverseKinematicsEEToJoints(kinematics=kinematics, motor_names=MOTORS)
    forward = ForwardKinematicsJointsToEEAction(kinematics=kinematics, motor_names=MOTORS)
    names = [f'{name}.pos' for name in MOTORS]
    joints, places, now = [], [], dict(zip(names, START.tolist(), strict=True))
    for T in poses:
        turn = Rotation.from_matrix(T[:3, :3]).as_rotvec()
        action = dict(zip(('ee.x', 'ee.y', 'ee.z'), T[:3, 3].tolist(), strict=True))
        action |= dict(zip(('ee.wx', 'ee.wy', 'ee.wz'), turn.tolist(), strict=True))
        asked = create_transition(action={**action, 'ee.gripper_pos': START[-1]}, observation=dict(now))
        now = dict(inverse(asked)[TransitionKey.ACTION])
        seen = forward(create_transition(action=dict(now), observation=dict(now)))[TransitionKey.ACTION]
        joints.append([now[name] for name in names])
        places.append([seen['ee.x'], seen['ee.y'], seen['ee.z']])
    return np.array(joints), np.array(places)


def wanted(path: HandPath, scale: float, start: Array) -> list[Array]:
    """Return the poses of the tool for those of the hand, which begins where the tool is."""
    first = path.poses[0].T
    poses = []
    for pose in path.poses:
        T = np.eye(4)
        T[:3, :3] = pose.T[:3, :3] @ first[:3, :3].T @ start[:3, :3]
        T[:3, 3] = start[:3, 3] + scale * (pose.T[:3, 3] - first[:3, 3])
        poses.append(T)
    return poses


def main() -> None:
    """Print the table. Arguments: the packages of LeRobot, how many paths; standard input: the URDF."""
    where, count = sys.argv[1], int(sys.argv[2])
    add_lerobot(where)
    from lerobot.model.kinematics import RobotKinematics as Placo

    kernels.prepare(wait=True)
    with bare_file(sys.stdin.read()) as file:
        ours = RobotKinematics(file, joint_names=MOTORS)
        peers = {'ik_node': ours, 'placo': Placo(str(file), joint_names=MOTORS)}
    start = ours.forward_kinematics(START)
    solver = IkSolver(ours.arm, position_tolerance=REACHED)
    lower, upper = (np.degrees(limit) for limit in ours.arm.limits)
    titles = ('out', 'step', 'no gap', 'turns', 'error', 'p99', 'largest', 'beyond', 'time')
    table = Table('hand', 'by'.ljust(8) + '  ', *titles)
    for scale in SCALES:
        paths = [HandPath(number, scale, SECONDS) for number in range(count)]
        asked = [wanted(path, scale, start) for path in paths]
        reached = [
            np.array([solver.solve(Goal(T[:3, 3])).position_error < REACHED for T in poses])
            for poses in asked
        ]
        out = 1.0 - np.mean(np.concatenate(reached))
        for name, kinematics in peers.items():
            timed = Timed(kinematics)
            moves, calm, errors, beyond, turns = [], [], [], 0.0, []
            for path, poses, reachable in zip(paths, asked, reached, strict=True):
                joints, places = follow(timed, poses)
                steps = np.diff(np.vstack([START, joints])[:, :5], axis=0)
                moves.append(np.abs(steps).max(axis=1))
                gaps = np.diff([pose.taken for pose in path.poses], prepend=-PERIOD) > 1.5 * PERIOD
                gaps[0] = True
                calm.append(moves[-1][~gaps])
                errors.append(1e3 * np.linalg.norm(places - [T[:3, 3] for T in poses], axis=1)[reachable])
                beyond = max(beyond, float(np.maximum(lower - joints[:, :5], joints[:, :5] - upper).max()))
                turns.append(_turns(steps))
            every = np.concatenate(errors)
            table.row(
                f'{scale:g}',
                name,
                f'{100.0 * out:.0f} %',
                f'{np.concatenate(moves).max():.2f}',
                f'{np.concatenate(calm).max():.2f}',
                f'{np.mean(turns) * 60.0 / SECONDS:.1f}',
                f'{np.median(every):.2f}',
                f'{np.percentile(every, 99):.1f}',
                f'{every.max():.1f}',
                f'{max(beyond, 0.0):.2f}',
                f'{1e6 * np.median(timed.times):.0f}',
            )


def _turns(steps: Array) -> float:
    """Return the mean number of changes of sign of steps (k, n) beyond TURN, per column."""
    signs = (np.sign(column[np.abs(column) > TURN]) for column in steps.T)
    return float(np.mean([np.count_nonzero(np.diff(sign)) for sign in signs]))


if __name__ == '__main__':
    main()
