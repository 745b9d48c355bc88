# SPDX-License-Identifier: Apache-2.0
"""A mimic that cannot be followed: ignored off the arm, an error on it."""

from __future__ import annotations

import pytest
from hostile import broken

from ik_node.errors import ChainError
from ik_node.model.urdf.reader import read_urdf

# mimics that cannot be followed: the joint that has one moves by itself, and is an error on an arm
MIMICS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    'unknown': (
        [('<mimic joint="wrist"', '<mimic joint="wirst"')],
        [
            '<mimic joint="wirst"> of joint "jaw" (line 25)',
            '"shoulder", "wrist", "jaw"',
            'did you mean "wrist"?',
        ],
    ),
    'itself': (
        [('<mimic joint="wrist"', '<mimic joint="jaw"')],
        ['<mimic joint="jaw"> of joint "jaw" (line 25)', 'cannot mimic itself', 'name another joint'],
    ),
    'planar': (
        [('"wrist" type="revolute"', '"wrist" type="planar"')],
        ['<mimic joint="wrist"> of joint "jaw" (line 25)', 'a planar joint has no single position'],
    ),
    'overflow': (
        [
            ('<mimic joint="wrist" multiplier="0.01"/>', '<mimic joint="wheel33" multiplier="1e9"/>'),
            (
                '</robot>',
                ''.join(
                    f'<link name="w{i}"/><joint name="wheel{i}" type="continuous"><parent link="base"/>'
                    f'<child link="w{i}"/><limit velocity="1"/>'
                    f'<mimic joint="{f"wheel{i - 1}" if i else "wrist"}" multiplier="1e9"/></joint>'
                    for i in range(34)
                )
                + '</robot>',
            ),
        ],
        ['of joint "jaw" (line 25)', 'overflow; give multipliers near 1'],
    ),
}


@pytest.mark.parametrize('case', MIMICS)
def test_a_mimic_that_cannot_be_followed_counts_on_the_arm_only(case: str) -> None:
    changes, words = MIMICS[case]
    robot = read_urdf(broken(*changes))
    ignored = [
        each for each in robot.warnings if each.startswith('a mimic that cannot be followed is ignored')
    ]
    assert len(ignored) == 1
    if case != 'planar':
        assert [joint.name for joint in robot.chain('tool')] == ['shoulder', 'wrist']
    with pytest.raises(ChainError) as caught:
        robot.chain('finger', 'tool')
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)
    assert robot.joints['jaw'].mimic is None
    assert robot.driver('jaw') == ('jaw', 1.0, 0.0)


def test_mimics_in_a_circle_are_ignored_off_the_arm() -> None:
    """Another joint follows the circle: it stays a follower."""
    robot = read_urdf(
        broken(
            (
                '</robot>',
                ''.join(
                    f'\n<link name="w{i}"/><joint name="wheel{i}" type="continuous"><parent link="base"/>'
                    f'<child link="w{i}"/><limit velocity="1"/><mimic joint="wheel{master}"/></joint>'
                    for i, master in enumerate((1, 2, 0, 0))
                )
                + '</robot>',
            )
        )
    )
    assert [joint.name for joint in robot.chain('tool')] == ['shoulder', 'wrist']
    assert len(robot.warnings) == 1
    assert [robot.driver(f'wheel{i}').joint for i in range(4)] == ['wheel0', 'wheel1', 'wheel2', 'wheel0']
    for link in ('w1', 'w3'):
        with pytest.raises(ChainError) as caught:
            robot.chain(link)
        for word in ('loop', '"wheel0" (line 28)', '"wheel2" (line 30)', 'must not mimic another'):
            assert word in str(caught.value)
