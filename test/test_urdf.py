"""Reading URDF: real arms against other forward kinematics, and what a Robot answers."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transforms3d
import yourdfpy
from conftest import shared_names
from lxml import etree

from ik_node.kinematics.robot import Robot
from ik_node.kinematics.urdf import load_description, read_urdf

ARMS = shared_names('arms')


def random_values(robot: Robot, rng: np.random.Generator) -> dict[str, float]:
    """Values for all joints that follow no other, within the limits."""
    free = [joint for joint in robot.movable if joint.mimic is None]
    return {j.name: rng.uniform(max(j.lower, -math.pi), min(j.upper, math.pi)) for j in free}


def plain_fk(text: str, link: str, values: dict[str, float]) -> np.ndarray:
    """Forward kinematics from the text alone, by lxml and transforms3d; mimics of driving joints only."""
    joints = {j.find('child').get('link'): j for j in etree.fromstring(text.encode()).iterchildren('joint')}
    pose = np.eye(4)
    while link in joints:
        joint = joints[link]

        def three(tag: str, attribute: str, default: str, joint: Any = joint) -> np.ndarray:
            element = joint.find(tag)
            given = default if element is None else element.get(attribute, default)
            return np.array([float(word) for word in given.split()])

        step = np.eye(4)
        step[:3, :3] = transforms3d.euler.euler2mat(*three('origin', 'rpy', '0 0 0'), 'sxyz')
        step[:3, 3] = three('origin', 'xyz', '0 0 0')
        mimic, name, scale, offset = joint.find('mimic'), joint.get('name'), 1.0, 0.0
        if mimic is not None:
            name = mimic.get('joint')
            scale, offset = float(mimic.get('multiplier', 1)), float(mimic.get('offset', 0))
        axis, kind = three('axis', 'xyz', '1 0 0'), joint.get('type')
        motion = np.eye(4)
        if kind in ('revolute', 'continuous'):
            motion[:3, :3] = transforms3d.axangles.axangle2mat(axis, scale * values[name] + offset)
        elif kind == 'prismatic':
            motion[:3, 3] = axis / np.linalg.norm(axis) * (scale * values[name] + offset)
        pose = step @ motion @ pose
        link = joint.find('parent').get('link')
    return pose


@pytest.mark.parametrize('name', ARMS)
def test_real_arms_agree_with_yourdfpy(name: str, shared: Path, arms_index: dict[str, Any]) -> None:
    file = shared / 'arms' / name
    robot = read_urdf(load_description(file))
    logging.disable(logging.ERROR)
    other = yourdfpy.URDF.load(str(file), load_meshes=False, load_collision_meshes=False)
    logging.disable(logging.NOTSET)
    entry = arms_index[file.stem]
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = random_values(robot, rng)
        other.update_cfg(values)
        for tip in entry['tips']:
            for base in (entry['base_link'], robot.root):
                expected = other.get_transform(tip['tip_link'], base)
                ours = np.linalg.solve(
                    robot.link_pose(base, values), robot.link_pose(tip['tip_link'], values)
                )
                np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)
    for tip in entry['tips']:
        chain = robot.chain(tip['tip_link'], entry['base_link'])
        drivers = dict.fromkeys(robot.driver(joint.name).joint for joint in chain if joint.movable)
        assert list(drivers) == tip['joints']


@pytest.mark.parametrize('name', ARMS)
def test_every_link_of_real_arms_agrees_with_fk_from_the_text(name: str, shared: Path) -> None:
    text = load_description(shared / 'arms' / name)
    robot = read_urdf(text)
    rng = np.random.default_rng(2)
    for _ in range(3):
        values = random_values(robot, rng)
        poses = robot.link_poses(values)
        assert poses.keys() == set(robot.links)
        for link, pose in poses.items():
            np.testing.assert_allclose(pose, plain_fk(text, link, values), rtol=0, atol=1e-9)
            np.testing.assert_allclose(pose, robot.link_pose(link, values), rtol=0, atol=1e-12)
