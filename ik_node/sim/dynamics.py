# SPDX-License-Identifier: Apache-2.0
"""Dynamics: a robot in MuJoCo, each joint driven by a position servo."""

from __future__ import annotations

from typing import Any

import numpy as np

from ik_node.checks import Array
from ik_node.extras import load
from ik_node.model.inertia import GRAVITY, link_inertias
from ik_node.model.joint import Joint
from ik_node.model.joint_set import JointSet
from ik_node.model.robot import Robot

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
