# SPDX-License-Identifier: Apache-2.0
"""Plant: a simulated arm with its controllers, its delays and its sensors. No ROS, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import LARGEST, InputError, join_names
from ik_node.extras import load
from ik_node.model.inertia import GRAVITY, link_inertias
from ik_node.model.joint import Joint
from ik_node.model.robot import JointSet, Robot
from ik_node.model.urdf.reader import read_urdf
from ik_node.settings import check, parameter


@dataclass(frozen=True)
class PlantSettings:
    """The parameters of ik_plant."""

    robot_description: str = parameter('', 'URDF text; if empty, urdf_file or the topic is used', read_only=True)
    urdf_file: str = parameter('', 'path of a .urdf or .xacro file. If it is empty, the topic is used', read_only=True)
    xacro_args: str = parameter('', "arguments of a .xacro file, such as 'dof:=5 gripper:=true'", read_only=True)
    tools: tuple[str, ...] = parameter(
        ('',),
        "names of the tools, as in ik_node. Each has a trajectory controller. The default [''] "
        'means a single controller',
        read_only=True,
    )
    controller_joints: tuple[str, ...] = parameter(
        ('',),
        "joints of position_commands, in its order. The default [''] means all independent joints",
        read_only=True,
    )
    start: tuple[float, ...] = parameter(
        (0.0,),
        'initial positions of the independent joints [rad, m]. A single value applies to every joint',
        read_only=True,
    )
    publish_rate: float = parameter(100.0, 'joint_states per second [Hz]', low=1.0, high=1000.0, read_only=True)
    update_rate: float = parameter(
        100.0, 'periods of the controllers per second [Hz]', low=1.0, high=500.0, read_only=True
    )
    noise: float = parameter(
        0.0, 'standard deviation of the measured positions [rad, m]', low=0.0, high=1.0, read_only=True
    )
    latency: float = parameter(
        0.0, 'delay of commands, and again of measurements [s]', low=0.0, high=1.0, read_only=True
    )
    droop: float = parameter(
        0.0,
        'sag under gravity of the most loaded joint in its worst position [rad, m]',
        low=0.0,
        high=1.0,
        read_only=True,
    )
    backlash: float = parameter(0.0, 'play between motor and joint [rad, m]', low=0.0, high=1.0, read_only=True)

    def __post_init__(self) -> None:
        check(self)


# Controllers: the controllers of ros2_control and a simple driver, as far as commands for arms go.
#
# Measured at joint_trajectory_controller and forward_command_controller of ROS 2 Jazzy: both act in the
# periods of a controller manager, whose clock is not that of their commands. In each period the first
# commands where a trajectory will be one period later. It begins a new one at its stamp, else now, and
# until the first point it moves there from its last command, which it takes for the state of that period,
# although it was meant for one later: so a first point ahead makes a step of two periods.

REST = float(np.finfo(np.float32).eps)  # [rad/s, m/s]: the last velocity must not exceed this
PERIOD = 0.01  # [s] of the controller manager
MAX_PERIODS = 1000  # at once: after a stall, or a jump of the clock, the periods restart


class _Trajectory(NamedTuple):
    """A motion of some joints (m,): times (k,) [s], positions, velocities and perhaps accelerations (k, m).

    stamp: when time 0 is [s], None: when it is begun.
    """

    joints: NDArray[np.int64]
    stamp: float | None
    times: Array
    positions: Array
    velocities: Array
    accelerations: Array | None

    def begun(self, now: float, since: float, *states: Array) -> _Trajectory:
        """Return it with times of the clock, begun now [s] from the states (n,) of a time since [s]."""
        times = self.times + (now if self.stamp is None else self.stamp)
        p, v, a = self.positions, self.velocities, self.accelerations
        if since < times[0]:
            times = np.append(since, times)
            first = [state[self.joints] for state in states]
            p, v = np.vstack([first[0], p]), np.vstack([first[1], v])
            a = None if a is None else np.vstack([first[2], a])
        return _Trajectory(self.joints, self.stamp, times, p, v, a)


class Controllers:
    """Turns commands into the targets (n,) of joints; for each joint the newest command counts.

    names: joints, n. controlled: those that a list of positions has, in its order. velocity,
    acceleration: of the targets (n,), 0 unless a trajectory is followed.
    """

    def __init__(self, names: Sequence[str], controlled: Sequence[str], start: Array, period: float = PERIOD) -> None:
        """period: of the controller manager [s]."""
        self._names = {name: i for i, name in enumerate(names)}
        unknown = [name for name in controlled if name not in self._names]
        if unknown:
            raise InputError(f'controller_joints {join_names(unknown)} do not exist; joints: {join_names(names)}')
        self._controlled = np.array([self._names[name] for name in controlled])
        self._position, self.velocity = start.copy(), np.zeros(start.size)
        self.acceleration = np.zeros(start.size)
        self._taken: list[_Trajectory] = []  # to be begun in the next period
        self._trajectories: list[_Trajectory] = []
        self._list: Array | None = None  # the newest positions, until the next period
        self._period = period
        self._next: float | None = None  # when the next period begins [s]

    def follow(
        self,
        now: float,
        names: Sequence[str],
        times: Sequence[float],
        positions: Sequence[Sequence[float]],
        velocities: Sequence[Sequence[float]],
        accelerations: Sequence[Sequence[float]] = (),
        stamp: float | None = None,
    ) -> None:
        """Take a trajectory at time now [s]; it begins at its stamp [s], without one in the next period.

        It goes along quintics, without accelerations along cubics. It replaces those that move some of its
        joints; others, of other controllers, continue.

        Raises InputError for one that a joint_trajectory_controller rejects.
        """
        index = self._indices(names)
        if not len(times) or not len(times) == len(positions) == len(velocities):
            raise InputError(f'a trajectory needs points, got {len(times)}')
        if not (np.diff(times) > 0.0).all() or times[0] < 0.0:
            raise InputError(f'times must increase and must not be negative, got {list(times)}')
        if len(accelerations) not in (0, len(times)):
            raise InputError(f'accelerations are needed for no point or for all, got {len(accelerations)}')
        rows = (positions, velocities, *((accelerations,) if len(accelerations) else ()))
        points, speeds, *rates = (_rows(row, index.size) for row in rows)
        if np.abs(speeds[-1]).max(initial=0.0) > REST:
            raise InputError(f'the last velocity must be 0, got {speeds[-1].tolist()}')
        if stamp is not None and stamp + times[-1] < now:
            raise InputError(f'a trajectory must not end in the past, it ends at {stamp + times[-1]:.3f} s')
        self._taken = [each for each in self._taken if not np.isin(each.joints, index).any()]
        self._taken.append(_Trajectory(index, stamp, np.array(times), points, speeds, rates[0] if rates else None))

    def forward(self, positions: Sequence[float]) -> None:
        """Take a list of positions. Raises InputError unless there is a finite one for each joint."""
        (self._list,) = _rows([positions], self._controlled.size)

    def drive(self, names: Sequence[str], positions: Sequence[float]) -> None:
        """Take positions by name, of the joints that there are. Raises InputError for a bad message."""
        known = dict(zip(names, positions, strict=False))
        if len(known) != len(names) or len(names) != len(positions):
            raise InputError(f'one position per name is needed, got {join_names(names)} and {list(positions)}')
        mine = [name for name in names if name in self._names]
        index = self._indices(mine)
        self._jump(index, _rows([[known[name] for name in mine]], index.size)[0])

    def targets(self, now: float) -> Array:
        """Return the targets (n,) at time now [s]: those of the last period."""
        if self._next is None or not 0 <= now - self._next + self._period <= MAX_PERIODS * self._period:
            self._next = now
        while self._next <= now:
            self._command(self._next)
            self._next += self._period
        return self._position

    def _command(self, now: float) -> None:
        """Act in the period that begins now [s]."""
        self._position, self.velocity = self._position.copy(), self.velocity.copy()
        self.acceleration = self.acceleration.copy()
        taken, self._taken = self._taken, []
        for each in taken:
            begun = each.begun(now, now - self._period, self._position, self.velocity, self.acceleration)
            self._end(each.joints)
            self._trajectories.append(begun)
        for each in self._trajectories:
            i = each.joints
            self._position[i], self.velocity[i], self.acceleration[i] = _interpolated(*each[2:], now + self._period)
        self._trajectories = [each for each in self._trajectories if now < each.times[-1]]
        if self._list is not None:
            self._jump(self._controlled, self._list)
            self._list = None

    def _end(self, index: NDArray[np.int64]) -> None:
        """End the trajectories that move any of these joints: all of theirs rest where they are."""
        for each in self._trajectories:
            if np.isin(each.joints, index).any():
                self.velocity[each.joints] = self.acceleration[each.joints] = 0.0
        self._trajectories = [x for x in self._trajectories if not np.isin(x.joints, index).any()]

    def _jump(self, index: NDArray[np.int64], positions: Array) -> None:
        self._position, self.velocity = self._position.copy(), self.velocity.copy()
        self.acceleration = self.acceleration.copy()
        self._end(index)
        self._position[index] = positions

    def _indices(self, names: Sequence[str]) -> NDArray[np.int64]:
        unknown = [name for name in names if name not in self._names]
        if unknown or len(set(names)) < len(names) or not names:
            raise InputError(f'joints must be different ones of {join_names(self._names)}, got {join_names(names)}')
        return np.array([self._names[name] for name in names])


def _rows(rows: Sequence[Sequence[float]], size: int) -> Array:
    if any(len(row) != size for row in rows):
        raise InputError(f'{size} numbers are needed, got {[len(row) for row in rows]}')
    values = np.array([list(row) for row in rows], dtype=np.float64)
    if not (np.abs(values) <= LARGEST).all():
        raise InputError(f'numbers must be finite, up to {LARGEST:g}')
    return values


def _interpolated(
    times: Array, positions: Array, velocities: Array, accelerations: Array | None, now: float
) -> tuple[Array, Array, Array]:
    """Return position, velocity and acceleration (n,) at time now, at rest after the last row.

    Between the rows: quintics, or cubics without accelerations.
    """
    if now >= times[-1]:
        rest = np.zeros_like(positions[-1])
        return positions[-1], rest, rest
    i = max(int(np.searchsorted(times, now, side='right')) - 1, 0)
    h = times[i + 1] - times[i]
    t = max(now - times[i], 0.0)
    if accelerations is None:
        mean = (positions[i + 1] - positions[i]) / h
        b = (3.0 * mean - 2.0 * velocities[i] - velocities[i + 1]) / h
        a = (velocities[i] + velocities[i + 1] - 2.0 * mean) / h**2
        powers = np.array([positions[i], velocities[i], b, a])
    else:
        powers = np.array([positions[i], velocities[i], accelerations[i] / 2.0, *np.zeros((3, positions.shape[1]))])
        # What is missing at the end of the piece with the first three powers alone.
        place = positions[i + 1] - powers[0] - h * (powers[1] + h * powers[2])
        speed = (velocities[i + 1] - powers[1] - 2.0 * h * powers[2]) * h
        rate = (accelerations[i + 1] - 2.0 * powers[2]) * h**2
        powers[3] = (10.0 * place - 4.0 * speed + rate / 2.0) / h**3
        powers[4] = (-15.0 * place + 7.0 * speed - rate) / h**4
        powers[5] = (6.0 * place - 3.0 * speed + rate / 2.0) / h**5
    states = []
    for _ in range(3):
        value = np.zeros_like(positions[i])
        for power in powers[::-1]:
            value = value * t + power
        states.append(value)
        powers = powers[1:] * np.arange(1.0, len(powers))[:, None]
    return states[0], states[1], states[2]


TIMESTEP = 0.002  # [s]
BANDWIDTH = 60.0  # [rad/s] of a servo, critically damped
ARMATURE = {'prismatic': 0.05, 'revolute': 2e-3}  # [kg], [kg m^2]: inertia of motor and gears at the joint
POSES = 64  # in which the inertia and the load of each joint are computed


class Dynamics:
    """A robot whose joints follow their targets as position servos make them. There are no contacts.

    joints: all joints of the robot, with n variables. position, velocity: (m,) of joints.names. droop [rad or
    m]: sag of the most loaded joint; gravity is scaled such that the servos yield by that.
    Raises MissingError without MuJoCo.
    """

    def __init__(self, robot: Robot, text: str, start: Array, droop: float) -> None:
        self._mujoco = load('mujoco', 'ik_plant')
        self.joints = JointSet(robot)
        self._model = _compiled(self._mujoco, robot, text)
        self._data = self._mujoco.MjData(self._model)
        self._make_servos(robot, droop)
        self.place(start)

    @property
    def position(self) -> Array:
        """Positions (m,) of all joints."""
        return np.array(self._data.qpos)

    @property
    def velocity(self) -> Array:
        """Velocities (m,) of all joints."""
        return np.array(self._data.qvel)

    def place(self, values: Array) -> None:
        """Set the variables at rest at values (n,)."""
        positions, _ = self.joints.expand(values, np.zeros_like(values))
        self._mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[:] = self._data.ctrl[:] = positions
        self._mujoco.mj_forward(self._model, self._data)

    def step(self, targets: Array) -> None:
        """Advance by TIMESTEP with the servos at targets (n,) of the variables."""
        self._data.ctrl[:], _ = self.joints.expand(targets, np.zeros_like(targets))
        self._mujoco.mj_step(self._model, self._data)

    def _make_servos(self, robot: Robot, droop: float) -> None:
        """Choose stiffness and damping for the largest inertia that each joint moves, then gravity."""
        mujoco, model, data = self._mujoco, self._model, self._data
        generator = np.random.default_rng(0)
        inertia, load_ = np.zeros(model.nv), np.zeros(model.nv)
        matrix = np.zeros((model.nv, model.nv))
        low, high = np.maximum(self.joints.lower, -np.pi), np.minimum(self.joints.upper, np.pi)
        for _ in range(POSES):
            self.place(generator.uniform(np.minimum(low, high), np.maximum(low, high)))
            mujoco.mj_fullM(model, data, matrix)
            inertia = np.maximum(inertia, matrix.diagonal())
            load_ = np.maximum(load_, np.abs(data.qfrc_bias))
        stiffness = BANDWIDTH**2 * inertia
        model.actuator_gainprm[:, 0] = stiffness
        model.actuator_biasprm[:, 1] = -stiffness
        model.actuator_biasprm[:, 2] = -2.0 * BANDWIDTH * inertia
        sag = load_ / stiffness
        revolute = np.array([joint.type != 'prismatic' for joint in robot.movable])
        worst = sag[revolute].max(initial=0.0) or sag.max(initial=0.0)
        model.opt.gravity[2] *= droop / worst if worst > 0.0 else 0.0


def _compiled(mujoco: Any, robot: Robot, text: str) -> Any:
    """Return the MuJoCo model of a robot: its joints in the order of robot.movable, one actuator for each."""
    inertias = link_inertias(robot, text)
    spec = mujoco.MjSpec()
    spec.compiler.balanceinertia = True  # files round inertias to what no body can have
    spec.option.timestep = TIMESTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.gravity = [0.0, 0.0, -GRAVITY]
    bodies = {robot.root: spec.worldbody}
    for joint in robot.joints.values():
        inertia = inertias[joint.child]
        body = bodies[joint.parent].add_body(
            pos=joint.origin[:3, 3],
            quat=_quat_wxyz(mujoco, joint.origin[:3, :3]),
            mass=inertia.mass,
            ipos=inertia.centre,
            fullinertia=[*inertia.tensor.diagonal(), *inertia.tensor[[0, 0, 1], [1, 2, 2]]],
            explicitinertial=True,
        )
        bodies[joint.child] = body
        if joint.movable:
            _add_joint(mujoco, body, joint)
    for joint in robot.movable:
        actuator = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
    model = spec.compile()
    order = [model.joint(i).name for i in range(model.njnt)]
    assert order == [joint.name for joint in robot.movable], order
    return model


def _add_joint(mujoco: Any, body: Any, joint: Joint) -> None:
    slides = joint.type == 'prismatic'
    body.add_joint(
        name=joint.name,
        type=mujoco.mjtJoint.mjJNT_SLIDE if slides else mujoco.mjtJoint.mjJNT_HINGE,
        axis=joint.axis,
        armature=ARMATURE['prismatic' if slides else 'revolute'],
    )


def _quat_wxyz(mujoco: Any, R: Array) -> Array:
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(R).ravel())
    return quat


MAX_CATCH_UP = 0.25  # [s] of motion at once: after a stall the arm continues from its last position


class Plant:
    """A simulated arm. Times are seconds of one clock of the caller.

    names: all joints (m), including mimic joints. settings.start must fit the robot, else InputError.
    """

    def __init__(self, text: str, settings: PlantSettings, time: float) -> None:
        robot = read_urdf(text)
        self._settings = settings
        start = np.array(settings.start)
        variables = JointSet(robot).variables
        if start.size not in (1, len(variables)):
            raise InputError(
                f'parameter start must be one number or {len(variables)} ({", ".join(variables)}), got {start.tolist()}'
            )
        start = np.broadcast_to(start, (len(variables),)).copy()
        self._dynamics = Dynamics(robot, text, start, settings.droop)
        self.names = self._dynamics.joints.names
        listed = settings.controller_joints
        controlled = variables if listed == ('',) else listed
        self._controllers = Controllers(variables, controlled, start, 1.0 / settings.update_rate)
        self._motors = start  # before the backlash
        self._time = time  # of the simulation
        self._commands: deque[tuple[float, Callable[[Controllers, float], None]]] = deque()
        self._states: deque[tuple[float, Array, Array]] = deque()
        self._generator = np.random.default_rng(0)

    def command(self, command: Callable[[Controllers, float], None], time: float) -> None:
        """Take a command at time [s]: a function of the controllers and the time when it gets there."""
        self._commands.append((time + self._settings.latency, command))

    def advance(self, time: float) -> list[str]:
        """Simulate until time [s]; return why commands were rejected."""
        rejections = []
        if not time - MAX_CATCH_UP <= self._time <= time:
            self._time = time - TIMESTEP  # a stall, or the clock was set back
            self._states.clear()
            self._commands = deque((min(then, time), command) for then, command in self._commands)
        while self._time + TIMESTEP <= time:
            self._time += TIMESTEP
            while self._commands and self._commands[0][0] <= self._time:
                try:
                    self._commands.popleft()[1](self._controllers, self._time)
                except InputError as error:
                    rejections.append(str(error))
            half = self._settings.backlash / 2.0
            targets = self._controllers.targets(self._time)
            self._motors = np.clip(self._motors, targets - half, targets + half)
            self._dynamics.step(self._motors)
            self._states.append((self._time, self._dynamics.position, self._dynamics.velocity))
        while len(self._states) > 1 and self._states[1][0] <= time - self._settings.latency:
            self._states.popleft()
        return rejections

    def measured(self) -> tuple[Array, Array]:
        """Return positions and velocities (m,) as the sensors report them."""
        if not self._states:
            position, velocity = self._dynamics.position, self._dynamics.velocity
        else:
            _, position, velocity = self._states[0]
        return position + self._settings.noise * self._generator.standard_normal(position.size), velocity

    @property
    def targets(self) -> tuple[Array, Array]:
        """Positions and velocities (n,) of the independent joints that the controllers want now."""
        return self._controllers.targets(self._time), self._controllers.velocity

    @property
    def position(self) -> Array:
        """True positions (m,) of all joints."""
        return self._dynamics.position
