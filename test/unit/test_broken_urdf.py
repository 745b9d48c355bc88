# SPDX-License-Identifier: Apache-2.0
"""Every file of ../shared/broken_urdf: loads as stated, or gets the error that helps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from plain import PlainArm, random_values
from shared_files import shared_names

from ik_node.errors import ElementError, TreeError, UrdfError, XacroError, XmlError
from ik_node.model.urdf.reader import load_description, read_urdf

FILES = shared_names('broken_urdf')
MESHES = 'meshes are not found'
VELOCITY = 'the velocity limit is missing'
LEFT_OVER = 'left-over xacro definitions are ignored'
CROSSED = 'lower is above upper'
NARROWED = 'a mimic joint narrows the limits of its driver'
WRAPPED = (ElementError, 'the root element is <urdf> (line 2), not <robot>: use the <robot> of line 3')
ORPHAN = '<parent link="base_link"> of joint "fl_caster_rotation_joint" (line 10): unknown link'

# error and what it says; or (root link, number of links, movable joints, what its warnings start with)
EXPECTED: dict[str, tuple[type[UrdfError], str] | tuple[str, int, int, list[str]]] = {
    'braccio_moveit_gazebo_noetic__braccio_model.urdf': (XmlError, 'line 23, column 5'),
    'ikpy__poppy_ergo.URDF': ('base_link', 7, 6, [VELOCITY, 'position limits are missing', MESHES]),
    'ikpy__prismatic_robot.URDF': ('baseLink', 2, 1, [VELOCITY]),
    'joint_state_publisher__64_joint_robot.urdf': WRAPPED,
    'joint_state_publisher__mimic_cycle.urdf': WRAPPED,
    'joint_state_publisher__multi_joint_robot.urdf': WRAPPED,
    'joint_state_publisher__slash_fiction.urdf': WRAPPED,
    'joint_state_publisher__zero_joint_robot.urdf': WRAPPED,
    'kdl_parser__test.urdf': (
        'base_link',
        11,
        8,
        ['position limits of a continuous joint', VELOCITY, MESHES],
    ),
    'low_cost_robot__low-cost-arm.urdf': ('base_link', 6, 5, ['ignored', VELOCITY, MESHES]),
    'magician_ros2__clean_model_no_macros.urdf': ('magician_root_link', 10, 8, [CROSSED, MESHES]),
    'mycobot_ros__myarm_c650.urdf': ('base', 9, 8, [LEFT_OVER, VELOCITY, VELOCITY, MESHES]),
    'mycobot_ros__myarm_m.urdf': ('base', 9, 8, [LEFT_OVER, VELOCITY, VELOCITY, MESHES]),
    'mycobot_ros__mycobot_pro_600_moveit.urdf': (
        XmlError,
        'line 11, column 2, "<<<<<<< HEAD": StartTag: invalid element name; the file contains a merge',
    ),
    'mycobot_ros__mycobot_pro_force_gripper.urdf': (
        'gripper_base',
        7,
        6,
        [LEFT_OVER, VELOCITY, CROSSED, NARROWED, MESHES],
    ),
    'mycobot_ros__mycobot_with_vision_copy.urdf': (
        XacroError,
        '<xacro:include> (line 5) is unexpanded xacro: expand it first',
    ),
    'mycobot_ros__pro_320_m5_2022_moveit_force_gripper.urdf': (
        'base',
        15,
        12,
        [LEFT_OVER, VELOCITY, CROSSED, NARROWED, MESHES],
    ),
    'pink__omnidirectional_wheeled_robot.urdf': ('base', 4, 3, ['position limits are missing']),
    'robot_state_publisher__mimic_joint.urdf': ('base_link', 3, 0, ['<mimic> on a joint without a position']),
    'robot_state_publisher__two_links_moving_joint.urdf': ('link1', 2, 1, [VELOCITY]),
    'robotics-toolbox-python__test.urdf': (XmlError, 'line 1: "hello" is not XML: a URDF starts with <robot'),
    'ros2_documentation__my_robot_python.urdf': (
        ElementError,
        '<robot name="My robot"> (line 2) has no <link>: a robot needs at least one',
    ),
    'rviz__test.urdf': ('test_robot_link', 4, 1, ['<origin> is given more than once', VELOCITY, MESHES]),
    'scara_tutorial_ros2__materials.urdf': (
        XacroError,
        '<color rgba="${255/255} ${108/255} ${10/255} 1.0"> (line 24) is unexpanded xacro',
    ),
    'ssik__kuka_iiwa14.urdf': ('base', 11, 7, [MESHES]),
    'ssik__puma560.urdf': ('base_link', 7, 6, []),
    'ssik__ur5.urdf': ('world', 11, 6, [MESHES]),
    'urdf__fail_pr2_desc_bracket.urdf': (ElementError, ORPHAN),
    'urdf__fail_pr2_desc_double.urdf': (
        ElementError,
        '<link name="fl_caster_rotation_link"> (line 31): the name is already used by the link of line 14',
    ),
    'urdf__fail_pr2_desc_loop.urdf': (TreeError, 'the links form a loop through joint "fr_caster'),
    'urdf__fail_pr2_desc_no_joint2.urdf': (XmlError, 'line 10, column 29, "<parent link="base_link"//>"'),
    'urdf__fail_pr2_desc_parent_itself.urdf': (
        ElementError,
        'joint "fl_caster_rotation_joint" (line 4) joins link "base_link" to itself',
    ),
    'urdf__fail_pr2_desc_two_trees.urdf': (ElementError, ORPHAN),
    'urdf__fail_three_links_one_joint.urdf': (
        XmlError,
        'line 24, column 10, "</link>": Opening and ending tag mismatch: joint line 21 and link',
    ),
    'urdf__one_link.urdf': ('link1', 1, 0, ['the XML declaration is misspelt']),
    'urdf__test_robot.urdf': ('dummy_link', 17, 8, [VELOCITY, MESHES]),
    'urdf__two_links_one_joint.urdf': ('link1', 2, 0, ['the XML declaration is misspelt']),
    'urdf_files_dataset__model.urdf': ('base', 13, 12, [VELOCITY, MESHES]),
    'urdf_files_dataset__r2_left_gripper.urdf': (
        ElementError,
        '<link name="r2/left_leg/ati"> (line 61): the name is already used by the link of line 18',
    ),
    'urdf_files_dataset__rethink_pneumatic_gripper.urdf': (
        ElementError,
        '<parent link="left_hand"> of joint "left_gripper_base" (line 33): unknown link; links: ',
    ),
}


@pytest.mark.parametrize('name', FILES)
def test_broken_file(
    name: str, shared: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)  # no package is installed that has a mesh
    monkeypatch.delenv('ROS_PACKAGE_PATH', raising=False)
    text = load_description(shared / 'broken_urdf' / name)
    expected = EXPECTED[name]
    if len(expected) == 2:
        kind, words = expected
        with pytest.raises(kind) as caught:
            read_urdf(text)
        assert words in str(caught.value)
    else:
        robot = read_urdf(text)
        root, links, movable, warnings = expected
        assert (robot.root, len(robot.links), len(robot.movable)) == (root, links, movable)
        assert [long[: len(short)] for long, short in zip(robot.warnings, warnings, strict=True)] == warnings
        values = random_values(robot, np.random.default_rng(3))
        for link, pose in robot.link_poses(values).items():
            np.testing.assert_allclose(pose, PlainArm(text, link).pose(values), rtol=0, atol=1e-9)
    assert capfd.readouterr() == ('', '')  # libxml2 keeps quiet


def test_every_broken_file_has_its_expectation(shared: Path) -> None:
    others = json.loads((shared / 'broken_urdf' / 'EXPECT.json').read_text())
    assert EXPECTED.keys() == others.keys()


def test_what_ros_reads_is_read(shared: Path) -> None:
    """Whatever urdfdom accepts, this package reads too."""
    others = json.loads((shared / 'broken_urdf' / 'EXPECT.json').read_text())
    for name, verdict in others.items():
        if verdict['urdfdom_check_urdf']['rc'] == 0:
            read_urdf(load_description(shared / 'broken_urdf' / name))
