# SPDX-License-Identifier: Apache-2.0
"""A cube is picked up and put down: real contact in MuJoCo, the node and its client as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from node_harness import Client, running
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState

from ik_node.client import ArmClient
from ik_node.model.arm import Arm
from ik_node.model.gripper import gripper_of
from ik_node.model.urdf.description import load_description
from ik_node.ros.programs.leader import LeaderNode
from ik_node.ros.programs.teleop_keys import KeysNode
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver
from ik_node.steady import steady
from ik_node.viewer.drive import Drive

mujoco = pytest.importorskip('mujoco')
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures('terminal')]

ARM = Path(__file__).parents[2] / 'urdf' / 'xarm5_like.urdf.xacro'
REMAPPED = ['--ros-args', '-r', 'joint_states:=joint_commands', '-r', 'measured_joint_states:=joint_states']
SIDE = 0.04  # [m] of the cube
A, B = (0.32, 0.1), (0.32, -0.12)
DOWN = (0.0, 0.0, -1.0)
PERIOD, STEPS = 0.01, 10  # [s] of the measurements, and steps of the physics in one


class Table:
    """The arm with position servos above a floor on which a cube lies, behind joint_commands and joint_states."""

    def __init__(self, node: Node, text: str) -> None:
        spec = mujoco.MjSpec.from_string(text)
        spec.option.timestep = PERIOD / STEPS
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0  # grips do not creep
        spec.option.noslip_iterations = 5
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[2, 2, 0.1], pos=[0, 0, 0])
        cube = spec.worldbody.add_body(name='cube', pos=[*A, SIDE / 2])
        cube.add_freejoint()
        half = [SIDE / 2] * 3
        geom = cube.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, size=half, mass=0.05, friction=[1.5, 0.05, 0.001], condim=4
        )
        geom.solref, geom.priority = [0.004, 1.0], 1  # a hard cube
        self.names = [joint.name for joint in spec.joints if joint.name]
        for body in spec.bodies:
            body.gravcomp = float(body.name != 'cube')
        for name in self.names:
            finger = 'finger' in name
            stiff, damping, force = (2000.0, 60.0, 10.0) if finger else (4000.0, 200.0, 200.0)
            actuator = spec.add_actuator(target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, forcerange=[-force, force])
            actuator.gainprm[0], actuator.biasprm[1], actuator.biasprm[2] = stiff, -stiff, -damping
            actuator.biastype, actuator.forcelimited = mujoco.mjtBias.mjBIAS_AFFINE, True
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self._at = {name: self.model.joint(name).qposadr[0] for name in self.names}
        start = {'joint2': -0.6, 'joint3': -0.6, 'joint4': 1.2, 'left_finger_joint': 0.04, 'right_finger_joint': 0.04}
        for k, name in enumerate(self.names):
            self.data.qpos[self._at[name]] = self.data.ctrl[k] = start.get(name, 0.0)
        self._publisher = node.create_publisher(JointState, 'joint_states', 10)
        self._subscription = node.create_subscription(JointState, 'joint_commands', self._take, 10)
        node.create_timer(PERIOD, self._step)

    @property
    def cube(self) -> np.ndarray:
        return self.data.body('cube').xpos.copy()

    def _take(self, message: JointState) -> None:
        for name, position in zip(message.name, message.position, strict=True):
            self.data.ctrl[self.names.index(name)] = position
            if name == 'left_finger_joint':
                self.data.ctrl[self.names.index('right_finger_joint')] = position

    def _step(self) -> None:
        mujoco.mj_step(self.model, self.data, STEPS)
        positions = [float(self.data.qpos[self._at[name]]) for name in self.names]
        self._publisher.publish(JointState(name=self.names, position=positions))


@pytest.fixture
def table() -> Iterator[tuple[Client, Table]]:
    text = load_description(str(ARM))
    with running(text, ready=False, cli_args=REMAPPED, speed_scaling=0.3, publish_description=True) as client:
        table = Table(client.node, text)
        client.wait(lambda: client.served._tools[0].controller.ready, 'the arm')
        yield client, table


def test_ten_lines_move_a_cube_from_a_to_b(table: tuple[Client, Table]):
    _, world = table
    with ArmClient() as arm:
        assert arm.gripper(1.0)
        assert arm.move((*A, 0.12), DOWN)
        assert arm.move((*A, 0.02), DOWN, line=True)
        held = arm.gripper(0.0)
        assert held.state == 'holding'
        assert arm.move((*A, 0.12), DOWN, line=True)
        assert world.cube[2] > 0.08, 'it is in the air'
        assert arm.move((*B, 0.12), DOWN)
        assert arm.move((*B, 0.025), DOWN, line=True)
        assert arm.gripper(1.0).state == 'reached'
        assert arm.move((*B, 0.15), DOWN, line=True)
    assert np.linalg.norm(world.cube[:2] - B) < 0.01
    assert world.cube[2] == pytest.approx(SIDE / 2, abs=2e-3)
    assert held.opening == pytest.approx(SIDE / 2 / 0.042, abs=0.05)


class Operator:
    """Steers the tool by what a person does: looks where it is, and holds a key or a stick."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def tool(self) -> np.ndarray:
        snapshot = self.client.served._tools[0].snapshot()
        return snapshot.tool.arm.fk(snapshot.position)[0]

    def steer(self, error: np.ndarray) -> None:
        raise NotImplementedError

    def grip(self, opens: bool) -> None:
        raise NotImplementedError

    def go(self, x: float, y: float, z: float) -> None:
        for _ in range(600):
            error = np.array([x, y, z]) - self.tool()
            if np.abs(error).max() < 0.004:
                break
            self.steer(error)
            self.client.run(0.04)
        else:
            raise AssertionError(f'not at {x}, {y}, {z}')
        self.client.run(0.5)

    def squeeze(self, opens: bool) -> None:
        for _ in range(60):
            self.grip(opens)
            self.client.run(0.04)
        self.client.run(1.0)


class ByKeys(Operator):
    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._keys = KeysNode(context=client.world.context)
        self._keys.press('-')  # the tool goes on for a moment after the last key

    def steer(self, error: np.ndarray) -> None:
        axis = int(np.abs(error).argmax())
        self._keys.press(('ws', 'ad', 'rf')[axis][int(error[axis] < 0.0)])

    def grip(self, opens: bool) -> None:
        self._keys.press(']' if opens else '[')


class BySticks(Operator):
    """The sticks of the page, or a gamepad at the browser."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._drive = Drive(Node('ik_viewer', context=client.world.context))

    def _send(self, **values: float) -> None:
        axes = {**dict.fromkeys(('x', 'y', 'z', 'yaw', 'grip'), 0.0), **values}
        text = '&'.join(f'{axis}={value}' for axis, value in axes.items())
        assert self._drive.take(f'page=p&time={steady():.3f}&{text}') == ''

    def steer(self, error: np.ndarray) -> None:
        way = np.clip(10.0 * error, -0.3, 0.3)
        self._send(x=way[0], y=way[1], z=way[2])

    def grip(self, opens: bool) -> None:
        self._send(grip=1.0 if opens else -1.0)


class ByLeader(Operator):
    """A hand moves a leader, here one of the same make, until the tool of the follower is where it should be."""

    PERIOD, NEARER, STEP = 0.02, 0.2, 0.003  # [s] between messages; share of the way in each; [m] in each look

    def __init__(self, client: Client, description: str = '', scale: float = 1.0) -> None:
        super().__init__(client)
        given = {'leader_description': description, 'scale': scale}
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        self._node = LeaderNode(context=client.world.context, parameter_overrides=overrides)
        self._scale, self._publisher = scale, client.node.create_publisher(JointState, 'leader/joint_states', 10)
        arm, start = self.leader()
        self._solver, self._q, self._place = IkSolver(arm), start, arm.fk(start)[0]
        self._gripper, self._opening = gripper_of(arm), 0.95  # as that of the follower
        self._shown = self._wanted()
        client.node.create_timer(self.PERIOD, self._publish)
        client.run(2.5)
        client.call('ik_leader/lead', on=True)
        client.wait(lambda: self._node._leader.following, 'the follower to follow')

    def leader(self) -> tuple[Arm, np.ndarray]:
        """The arm, and where it is to begin with: its tool points down."""
        snapshot = self.client.served._tools[0].snapshot()
        return snapshot.tool.arm, snapshot.position

    def _wanted(self) -> dict[str, float]:
        return dict(zip(self._solver.arm.joint_names, self._q, strict=True)) | self._gripper.positions(self._opening)

    def _publish(self) -> None:
        for name, position in self._wanted().items():
            self._shown[name] += self.NEARER * (position - self._shown[name])
        message = JointState(name=list(self._shown), position=[float(one) for one in self._shown.values()])
        message.header.stamp = self.client.now().to_msg()
        self._publisher.publish(message)

    def steer(self, error: np.ndarray) -> None:
        self._place = self._place + np.clip(0.1 * error, -self.STEP, self.STEP) / self._scale
        self._q = self._solver.solve_nearby(Goal(self._place, DOWN), self._q).q

    def grip(self, opens: bool) -> None:
        self._opening = float(opens)


class ByAnotherMake(ByLeader):
    """An SO-101 leads: its tool moves half as far."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, str(ARM.with_name('so101_like.urdf.xacro')), 2.0)

    def leader(self) -> tuple[Arm, np.ndarray]:
        arm = self._node._leader_arm
        found = IkSolver(arm).solve(Goal((0.22, 0.05, 0.055), DOWN))
        assert found.solved
        return arm, found.q


SLOW_ONES = [pytest.param(kind, marks=pytest.mark.nightly) for kind in (ByLeader, ByAnotherMake)]


@pytest.mark.parametrize('kind', [ByKeys, BySticks, *SLOW_ONES])
def test_an_operator_moves_it(table: tuple[Client, Table], kind: type[Operator]):
    client, world = table
    with ArmClient() as arm:  # to begin with, the tool points down
        assert arm.move((*A, 0.12), DOWN)
    operator = kind(client)
    client.run(0.3)
    operator.squeeze(opens=True)
    operator.go(*A, 0.03)
    operator.squeeze(opens=False)
    operator.go(*A, 0.12)
    assert world.cube[2] > 0.08, 'it is in the air'
    operator.go(*B, 0.12)
    operator.go(*B, 0.035)
    operator.squeeze(opens=True)
    operator.go(*B, 0.12)
    assert np.linalg.norm(world.cube[:2] - B) < 0.02
    assert world.cube[2] == pytest.approx(SIDE / 2, abs=2e-3)
