# SPDX-License-Identifier: Apache-2.0
"""Robots with several tools, put together from copies of shipped arms, for benchmarks and tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from lxml import etree

from ik_node import Goal
from ik_node.model.tree import Tool, Tree
from ik_node.model.urdf.reader import load_description

URDF = Path(__file__).resolve().parents[2] / 'urdf'
RENAMED = {'link': 'name', 'joint': 'name', 'parent': 'link', 'child': 'link', 'mimic': 'joint'}


@cache
def _shipped(arm: str) -> bytes:
    return load_description(URDF / f'{arm}.urdf.xacro').encode()


def limb(arm: str, prefix: str) -> list[etree._Element]:
    """The links and joints of a shipped arm, their names with a prefix."""
    root = etree.fromstring(_shipped(arm))
    for element in root.iter(*RENAMED):
        attribute = RENAMED[element.tag]
        element.set(attribute, prefix + element.get(attribute))
    return [element for element in root if element.tag in ('link', 'joint')]


def joint(name: str, kind: str, parent: str, child: str, origin: str, axis: str, limits: str) -> str:
    """A joint as text; limits: of a movable one."""
    return f"""<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
        <origin {origin}/><axis xyz="{axis}"/>{limits}</joint>"""


def robot(trunk: str, limbs: dict[str, tuple[str, str, str]]) -> str:
    """A robot of a trunk, and of limbs: (arm, link of the trunk, origin) by prefix."""
    root = etree.fromstring(f'<robot name="torso">{trunk}</robot>')
    for prefix, (arm, parent, origin) in limbs.items():
        root.append(
            etree.fromstring(joint(f'{prefix}mount', 'fixed', parent, f'{prefix}base_link', origin, '0 0 1', ''))
        )
        root.extend(limb(arm, prefix))
    return etree.tostring(root).decode()


YAW = joint(
    'yaw',
    'revolute',
    'base_link',
    'chest',
    'xyz="0 0 0.3"',
    '0 0 1',
    '<limit lower="-1.4" upper="1.4" velocity="1" effort="10"/>',
)
LEFT, RIGHT = 'xyz="0 0.25 0"', 'xyz="0 -0.25 0"'
TOOLS = {'left': Tool('left_tool0'), 'right': Tool('right_tool0')}


CHEST = f'<link name="base_link"/><link name="chest"/>{YAW}'


def torso_text(arm: str = 'seed_arm', trunk: str = CHEST) -> str:
    """Two arms on the link chest of a trunk."""
    return robot(trunk, {'left_': (arm, 'chest', LEFT), 'right_': (arm, 'chest', RIGHT)})


def torso(arm: str = 'seed_arm', trunk: str = CHEST) -> Tree:
    """The same as a tree."""
    return Tree.from_urdf(torso_text(arm, trunk), TOOLS)


def pair(arm: str = 'seed_arm') -> Tree:
    """Two arms that share no joint."""
    limbs = {'left_': (arm, 'base_link', LEFT), 'right_': (arm, 'base_link', RIGHT)}
    return Tree.from_urdf(robot('<link name="base_link"/>', limbs), TOOLS)


def goals_at(tree: Tree, q: np.ndarray) -> dict[str, Goal]:
    """Goals that the tools meet at q."""
    return {name: Goal(*place) for name, place in tree.fk(q).items()}


def random_goals(rng: np.random.Generator, tree: Tree) -> dict[str, Goal]:
    """Goals at random places and directions, many of them out of reach."""
    goals = {}
    for name, arm in tree.arms.items():
        direction = rng.normal(size=3)
        place = rng.uniform(-1.0, 1.0, 3) * arm.reach
        goals[name] = Goal(place, direction / np.linalg.norm(direction))
    return goals
