# SPDX-License-Identifier: Apache-2.0
"""The functions that docs/how_to/moveit.md shows, with the messages of MoveIt or their stand-ins."""

from __future__ import annotations

import re
import sys
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import moveit_plain
import numpy as np
import pytest
import rclpy
from geometry_msgs.msg import PoseStamped
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState

from ik_node.ros.conversions import matrix_pose

PAGE = Path(__file__).parents[2] / 'docs/how_to/moveit.md'
POSITION, DIRECTION = 1e-3, 0.01  # tolerances that goal_with_free_roll has without others


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the Python of the page defines."""
    for package in ('moveit_msgs', 'shape_msgs'):
        names = {**vars(moveit_plain), **vars(moveit_plain.srv)}
        for name in (package, f'{package}.msg', f'{package}.srv'):
            module = ModuleType(name)
            vars(module).update({key: value for key, value in names.items() if not key.startswith('_')})
            monkeypatch.setitem(sys.modules, name, module)
    defined: dict[str, Any] = {}
    for block in re.findall(r'^```python\n(.*?)^```', PAGE.read_text(encoding='utf-8'), re.MULTILINE | re.DOTALL):
        exec(compile(block, PAGE.name, 'exec'), defined)
    return defined


def stamped(matrix: np.ndarray) -> PoseStamped:
    pose = PoseStamped(pose=matrix_pose(matrix))
    pose.header.frame_id = 'base_link'
    return pose


def placed(rotation: Rotation, point: Any) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation.as_matrix(), point
    return matrix


def is_met(goal: Any, there: np.ndarray) -> bool:
    """Whether MoveIt accepts a link at `there`: a ball, and intrinsic Euler angles xyz from the orientation wanted."""
    (position,), (turned,) = goal.position_constraints, goal.orientation_constraints
    (ball,), (center,) = position.constraint_region.primitives, position.constraint_region.primitive_poses
    assert (ball.type, len(ball.dimensions)) == (ball.SPHERE, 1)
    assert turned.parameterization == turned.XYZ_EULER_ANGLES
    assert {position.weight, turned.weight} == {1.0}
    middle = np.array([center.position.x, center.position.y, center.position.z])
    q = turned.orientation
    angles = (Rotation.from_quat([q.x, q.y, q.z, q.w]).inv() * Rotation.from_matrix(there[:3, :3])).as_euler('XYZ')
    allowed = [getattr(turned, f'absolute_{axis}_axis_tolerance') for axis in 'xyz']
    return bool(np.linalg.norm(there[:3, 3] - middle) <= ball.dimensions[0] and np.all(np.abs(angles) <= allowed))


@pytest.mark.parametrize('axis', ['x', 'z'])
def test_a_goal_takes_any_roll_and_no_other_direction_or_position(shown, axis):
    rng = np.random.default_rng(1)
    tool = np.eye(3)['xz'.index(axis) * 2]
    for _ in range(50):
        wanted, point = Rotation.random(random_state=rng), rng.normal(size=3)
        goal = shown['goal_with_free_roll']('tool0', stamped(placed(wanted, point)), axis)
        assert goal.position_constraints[0].link_name == goal.orientation_constraints[0].link_name == 'tool0'
        assert goal.orientation_constraints[0].header.frame_id == goal.position_constraints[0].header.frame_id
        roll = Rotation.from_rotvec(rng.uniform(-np.pi, np.pi) * tool)
        across = np.cross(tool, rng.normal(size=3))
        across /= np.linalg.norm(across)
        step = rng.normal(size=3)
        step /= np.linalg.norm(step)

        def turned(tilt: float, wanted=wanted, across=across, roll=roll) -> Rotation:
            return wanted * Rotation.from_rotvec(tilt * across) * roll

        assert is_met(goal, placed(turned(0.9 * DIRECTION), point + 0.9 * POSITION * step))
        assert not is_met(goal, placed(turned(1.5 * DIRECTION), point))
        assert not is_met(goal, placed(turned(0.0), point + 1.1 * POSITION * step))


@pytest.fixture
def ask(shown, monkeypatch):
    """Ask joint_goal with this response of solve_ik; without one the service does not respond."""
    monkeypatch.setattr(rclpy, 'spin_until_future_complete', lambda *_, **__: None)

    def ask(response: Any) -> tuple[Any, Any]:
        future: Future = Future()
        if response is not None:
            future.set_result(response)
        requests = []
        client = SimpleNamespace(call_async=lambda request: requests.append(request) or future)
        seed = JointState(name=['yaw', 'bend'], position=[0.1, 0.2])
        goal = shown['joint_goal'](None, client, stamped(np.eye(4)), seed)
        return goal, requests[0].ik_request

    return ask


def response(code: int) -> Any:
    result = moveit_plain.IkResponse()
    result.error_code.val, result.error_code.message = code, 'out of reach'
    result.solution.joint_state = JointState(name=['bend', 'finger', 'yaw'], position=[0.3, 0.01, 0.4])
    return result


def test_a_joint_goal_has_the_joints_of_the_seed_alone(ask):
    goal, request = ask(response(moveit_plain.MoveItErrorCodes.SUCCESS))
    assert {each.joint_name: each.position for each in goal.joint_constraints} == {'bend': 0.3, 'yaw': 0.4}
    assert {(each.tolerance_above, each.tolerance_below) for each in goal.joint_constraints} == {(1e-3, 1e-3)}
    assert request.pose_stamped.header.frame_id == 'base_link'
    assert list(request.robot_state.joint_state.position) == [0.1, 0.2]


def test_a_joint_goal_that_is_not_found_says_why(ask):
    code = moveit_plain.MoveItErrorCodes.NO_IK_SOLUTION
    with pytest.raises(RuntimeError, match=f'{code} out of reach'):
        ask(response(code))
    with pytest.raises(RuntimeError, match='no response from solve_ik'):
        ask(None)
