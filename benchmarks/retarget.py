# SPDX-License-Identifier: Apache-2.0
"""ik_retarget: a dataset of made episodes for three arms, each frame judged by an FK of its own.

For an SO-101 also LeRobot's own steps, which use placo.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.arms import ROOT, Task
from benchmarks.chain import Array, Chain, angle_between
from benchmarks.contest import MissingError, python_for
from benchmarks.tables import Table, heading

EPISODES, FRAMES, FPS = 1000, 300, 30
ARMS = ('so101', 'xarm5', 'koch_v1_1')
WITH_PLACO = 'so101'
NAMES = ('ee.x', 'ee.y', 'ee.z', 'ee.wx', 'ee.wy', 'ee.wz', 'ee.gripper_pos')
NOISE, TURN_NOISE = 5e-4, 5e-3  # [m] and [rad], of a tracker, in every third episode
STRETCH = 1.3  # of the positions in every tenth episode: most are out of reach
ROUNDING = 1e-5  # [rad]: joints are float32, in degrees
DETOUR = 0.02  # [m] of the tool from the middle of a step, beyond which a step is called a jump here
MET = 1e-4, 1e-3  # [m] and [rad]: with the rounding of poses and joints


def run(tasks: list[Task], scale: float) -> None:
    """Print how the frames of each arm are."""
    episodes = max(3, round(EPISODES * scale))
    heading(
        'Datasets of another arm',
        f"""{episodes} episodes of {FRAMES} frames in LeRobot's layout v3.0: the tool moves as joints do on
        sums of sines within their limits; every third episode has the noise of a tracker, every tenth is
        stretched beyond the reach. Judged frame by frame by an FK of its own: frames beyond a limit of the
        URDF; met: within {1e3 * MET[0]:g} mm and {1e3 * MET[1]:g} mrad; jumps: steps whose middle leads the
        tool more than {1e3 * DETOUR:g} mm off, and those of them that are told neither as a jump nor as
        too fast.
        Calm: the largest step of a joint in episodes that tell no jump and no frame too fast [deg]; step: in
        all. Off: the 99th percentile of the position error in frames that any method has met [mm].
        Time: of all, start included. placo: LeRobot's InverseKinematicsEEToJoints, frame by frame, which
        begins each episode with 100 calls for its first frame and tells nothing.""",
    )
    titles = ('beyond', 'met', 'told met', 'jumps', 'untold', 'calm', 'step', 'off', 'time [s]')
    table = Table('arm'.ljust(12) + '  ', 'by'.ljust(8), *titles)
    for task in (task for task in tasks if task.name in ARMS):
        wanted = [_poses(task.chain, _limits(task), number) for number in range(episodes)]
        runs = {'ik_node': _retargeted(task, wanted)}
        if task.name == WITH_PLACO:
            try:
                runs['placo'] = _by_placo(task, wanted)
            except MissingError as reason:
                print(f'placo: {reason}')
        judged = {name: Judged.of(task, wanted, run) for name, run in runs.items()}
        reachable = np.any([one.met for one in judged.values()], axis=0)
        for name, one in judged.items():
            table.row(task.name, name, *one.cells(reachable, runs[name]))


@dataclass
class Run:
    """Joints (episodes, FRAMES, n) [rad or m], the reports on the episodes if there are any, and seconds."""

    joints: Array
    reports: list[dict[str, Any]]
    seconds: float


@dataclass
class Judged:
    """What is true of each frame: (episodes, FRAMES), of steps one less. off [m], steps [rad or m]."""

    beyond: Array
    met: Array
    off: Array
    jumps: Array
    steps: Array

    @classmethod
    def of(cls, task: Task, wanted: list[Array], run: Run) -> Judged:
        """Judge a run by the FK of the benchmarks."""
        chain, limits = task.chain, _limits(task)
        rows = []
        for q, poses in zip(run.joints, wanted, strict=True):
            point, axis = chain.fk(q)
            place, turn = poses[:, :3].astype(float), _matrices(poses[:, 3:6].astype(float))
            off = np.linalg.norm(point - (place + turn @ chain.tool_point), axis=1)
            middle = chain.fk((q[1:] + q[:-1]) / 2.0)[0]
            rows.append(
                (
                    ((q < limits[0] - ROUNDING) | (q > limits[1] + ROUNDING)).any(axis=1),
                    (off < MET[0]) & (angle_between(axis, turn @ chain.tool_axis) < MET[1]),
                    off,
                    np.linalg.norm(middle - (point[1:] + point[:-1]) / 2.0, axis=1) > DETOUR,
                    np.abs(np.diff(q, axis=0)).max(axis=1),
                )
            )
        return cls(*map(np.array, zip(*rows, strict=True)))

    def cells(self, reachable: Array, run: Run) -> list[str]:
        """Return the cells of a row; reachable (episodes, FRAMES): which frames some method has met."""
        told, calm = np.zeros(self.met.shape, dtype=bool), None
        if run.reports:
            flagged = [report['flagged'] for report in run.reports]
            quiet = np.array([not one['jump'] + one['too_fast'] for one in flagged])
            calm = self.steps[quiet].max(initial=0.0)
            for row, report in zip(told, run.reports, strict=True):
                for first, last in report['runs']['jump'] + report['runs']['too_fast']:
                    row[first : last + 1] = True
            solved = sum(one['solved'] for one in flagged) / self.met.size
        return [
            str(int(self.beyond.sum())),
            f'{100.0 * self.met.mean():.2f} %',
            f'{100.0 * solved:.2f} %' if run.reports else '-',
            str(int(self.jumps.sum())),
            str(int((self.jumps & ~told[:, 1:]).sum())),
            '-' if calm is None else f'{np.degrees(calm):.1f}',
            f'{np.degrees(self.steps.max()):.1f}',
            f'{1e3 * np.percentile(self.off[reachable], 99):.3f}',
            f'{run.seconds:.0f}',
        ]


def _retargeted(task: Task, wanted: list[Array]) -> Run:
    """Run ik_retarget on episodes."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _write(folder / 'in', wanted)
        start = perf_counter()
        subprocess.run(
            [
                *(sys.executable, '-m', 'ik_node.start', 'ik_retarget', str(task.path)),
                *(str(folder / 'in'), str(folder / 'out'), '--report', str(folder / 'report.json')),
                *('--base-link', task.base, '--tip-link', task.tip),
                f'--tool-axis={",".join(str(float(one)) for one in task.axis)}',
                *('--tool-point', *(str(float(one)) for one in task.point)),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        seconds = perf_counter() - start
        reports = json.loads((folder / 'report.json').read_text())['episodes']
        actions = np.array(pq.read_table(folder / 'out' / 'data')['action'].to_pylist())
    joints = np.radians(actions[:, : task.chain.n]).reshape(len(wanted), FRAMES, task.chain.n)
    return Run(joints, reports, seconds)


def _by_placo(task: Task, wanted: list[Array]) -> Run:
    """Run LeRobot's steps on episodes. Raises MissingError where they cannot be installed."""
    site = next(Path(python_for('lerobot')).parents[1].glob('lib/python*/site-packages'))
    with tempfile.TemporaryDirectory() as temporary:
        poses, joints = Path(temporary, 'poses.npy'), Path(temporary, 'joints.npy')
        np.save(poses, np.array(wanted))
        command = [sys.executable, '-m', 'benchmarks.retarget_steps', str(site), task.tip, str(poses)]
        threads = {'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'}
        start = perf_counter()
        subprocess.run(
            [*command, str(joints)],
            input=task.xml,
            text=True,
            cwd=ROOT,
            env={**os.environ, **threads},
            check=True,
        )
        return Run(np.load(joints), [], perf_counter() - start)


def _limits(task: Task) -> Array:
    """Return the limits (2, n) in the URDF [rad or m]."""
    joints = {joint.get('name'): joint for joint in ET.fromstring(task.xml).findall('joint')}
    rows = [joints[name].find('limit') for name in task.chain.names]
    return np.array([[float(row.get(side)) for row in rows] for side in ('lower', 'upper')])


def _poses(chain: Chain, limits: Array, number: int) -> Array:
    """Return poses of the tip and a gripper position (FRAMES, 7), as LeRobot has them; see NAMES."""
    rng = np.random.default_rng(number)
    lower, upper = limits.clip(-3.0, 3.0)
    t = np.arange(FRAMES)[:, None] / FPS
    waves = sum(
        rng.normal(size=chain.n)
        * np.sin(2.0 * np.pi * rng.uniform(0.02, 0.3, chain.n) * t + rng.uniform(0, 7))
        for _ in range(3)
    )
    middle, half = (lower + upper) / 2.0, (upper - lower) / 2.0
    q = middle + half * np.tanh(0.4 * rng.normal(size=chain.n) + 0.3 * waves)
    turn, place, _, _ = chain.frames(q)
    turns = _vectors(turn)
    if number % 3 == 0:
        place = place + NOISE * rng.normal(size=place.shape)
        turns = turns + TURN_NOISE * rng.normal(size=turns.shape)
    if number % 10 == 9:
        place = chain.first + STRETCH * (place - chain.first)
    return np.column_stack([place, turns, np.sin(t)]).astype(np.float32)


def _vectors(R: Array) -> Array:
    """Return the rotation vectors (N, 3) of R (N, 3, 3), through quaternions, exact near a half turn too."""
    K = np.zeros((len(R), 4, 4))  # Bar-Itzhack: its eigenvector of the largest eigenvalue is (x, y, z, w)
    K[:, :3, :3] = R + R.transpose(0, 2, 1) - np.trace(R, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    skew = np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], axis=1)
    K[:, 3, :3] = K[:, :3, 3] = skew
    K[:, 3, 3] = np.trace(R, axis1=1, axis2=2)
    quaternion = np.linalg.eigh(K)[1][:, :, -1]
    quaternion *= np.where(quaternion[:, 3:] < 0.0, -1.0, 1.0)
    sine = np.linalg.norm(quaternion[:, :3], axis=1)
    angle = 2.0 * np.arctan2(sine, quaternion[:, 3])
    return quaternion[:, :3] * (angle / np.maximum(sine, 1e-12))[:, None]


def _matrices(vectors: Array) -> Array:
    """Return the rotations (N, 3, 3) of rotation vectors (N, 3). Rodrigues' formula."""
    angle = np.linalg.norm(vectors, axis=1)
    x, y, z = (vectors / np.maximum(angle, 1e-12)[:, None]).T
    o = np.zeros_like(x)
    K = np.array([[o, -z, y], [z, o, -x], [-y, x, o]]).transpose(2, 0, 1)
    return np.eye(3) + np.sin(angle)[:, None, None] * K + (1.0 - np.cos(angle))[:, None, None] * (K @ K)


def _write(root: Path, episodes: list[Array]) -> None:
    """Write episodes as the feature action of a dataset of LeRobot v3.0."""
    data = root / 'data' / 'chunk-000'
    data.mkdir(parents=True)
    (root / 'meta').mkdir()
    info = {
        'codebase_version': 'v3.0',
        'total_episodes': len(episodes),
        'total_frames': len(episodes) * FRAMES,
        'fps': FPS,
        'features': {'action': {'dtype': 'float32', 'shape': [len(NAMES)], 'names': list(NAMES)}},
    }
    (root / 'meta' / 'info.json').write_text(json.dumps(info))
    values = np.concatenate(episodes).ravel()
    columns = {
        'action': pa.FixedSizeListArray.from_arrays(pa.array(values), len(NAMES)),
        'frame_index': np.tile(np.arange(FRAMES), len(episodes)),
        'episode_index': np.repeat(np.arange(len(episodes)), FRAMES),
    }
    pq.write_table(pa.table(columns), data / 'file-000.parquet')
