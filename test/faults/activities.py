# SPDX-License-Identifier: Apache-2.0
"""Activities: what the arm is asked to do in a run, so that faults meet it in every phase."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from faults.actions import Action, Draw, Plan
from faults.arena import Arena
from faults.messages import (
    enable,
    jog,
    joints_message,
    path,
    pose,
    random_joints,
    random_point,
    random_pose,
    stamped,
    twist,
)


def send(topic: str, message: object, at: float) -> Action:
    """Send a message with the stamp of that moment."""
    return Action(at, lambda arena: arena.send(topic, stamped(arena, message)))


def rest(_: Draw) -> Plan:
    """Do nothing."""
    return []


def goals(draw: Draw) -> Plan:
    """Send a few goals of all kinds."""
    robot, rng = draw.arena.robot, draw.rng
    kinds = (('goal_pose', random_pose), ('goal_point', random_point), ('goal_joints', random_joints))
    chosen = [kinds[i] for i in rng.integers(0, len(kinds), int(rng.integers(1, 5)))]
    return [send(topic, make(robot, rng), draw.time()) for topic, make in chosen]


def stream(draw: Draw) -> Plan:
    """Send poses along a curve at 50 Hz."""
    robot, rng = draw.arena.robot, draw.rng
    middle, size, phase = robot.joints(rng), rng.uniform(0.02, 0.4), rng.uniform(0.0, 7.0)
    plan = []
    for at in draw.times(50.0):
        joints = {n: v + size * np.sin(2.0 * at + phase + i) for i, (n, v) in enumerate(middle.items())}
        plan.append(send('goal_pose', pose(robot, joints), at))
    return plan


def along_path(draw: Draw) -> Plan:
    """Ask for straight lines from where the tool is."""
    seed = int(draw.rng.integers(2**32))

    def ask(arena: Arena) -> None:
        joints = arena.driver.position()
        start = {name: joints[name] for name in arena.robot.arm.joint_names}
        arena.send('goal_path', stamped(arena, path(arena.robot, start, np.random.default_rng(seed))))

    return [Action(at, ask) for at in (0.1, 0.4, 0.8)]


def by_twist(draw: Draw) -> Plan:
    """Steer by twists, which change now and then."""
    robot, rng = draw.arena.robot, draw.rng
    messages = [twist(robot, rng) for _ in range(3)]
    return [
        send('ik_node/delta_twist_cmds', messages[int(3 * at / draw.length) % 3], at)
        for at in draw.times(50.0)
    ]


def by_jog(draw: Draw) -> Plan:
    """Steer by joint velocities."""
    message = jog(draw.arena.robot, draw.rng)
    return [send('ik_node/delta_joint_cmds', message, at) for at in draw.times(50.0)]


def by_hand(draw: Draw) -> Plan:
    """Steer by the poses of a hand, with or without the clutch."""
    robot, rng = draw.arena.robot, draw.rng
    clutch = bool(rng.random() < 0.5)
    middle, size = robot.joints(rng), rng.uniform(0.02, 0.4)
    plan = []
    for at in draw.times(50.0):
        joints = {n: v + size * np.sin(2.0 * at + i) for i, (n, v) in enumerate(middle.items())}
        plan.append(send('ik_node/pose_target_cmds', pose(robot, joints), at))
        if clutch:
            plan.append(send('ik_node/enable', enable(robot, rng), at))
    if clutch:
        plan.append(send('ik_node/enable', Bool(data=True), 0.0))
    else:
        plan.append(Action(0.0, lambda arena: arena.change('clutch', 'none')))
    return plan


def guided(draw: Draw) -> Plan:
    """Guide the arm by hand: the joints are pushed while the commands follow."""
    rng = draw.rng
    begin, end = 0.1, float(rng.uniform(0.3, draw.length))
    push = rng.uniform(-0.3, 0.3, 64)
    plan = [
        Action(0.0, lambda arena: arena.ask('stop')),
        Action(0.05, lambda arena: arena.ask('resume')),
        Action(begin, lambda arena: arena.ask('hand_guide', SetBool.Request(data=True))),
        Action(end, lambda arena: arena.ask('hand_guide', SetBool.Request(data=False))),
    ]
    for at in draw.times(100.0, begin + 0.1, end):
        share = (at - begin) / draw.length
        plan.append(Action(at, lambda arena, s=share: push_joints(arena, s * push)))
    return [*plan, Action(draw.length, lambda arena: push_joints(arena, 0.0 * push))]


def push_joints(arena: Arena, push: np.ndarray) -> None:
    """Hold the joints off their commands."""
    arena.driver.offset = push[: len(arena.driver.offset)]


def homing(draw: Draw) -> Plan:
    """Call ~/home."""
    return [Action(draw.time(), lambda arena: arena.ask('home'))]


def gripper(draw: Draw) -> Plan:
    """Move a joint off the arm besides the arm."""
    robot, rng = draw.arena.robot, draw.rng
    extra = {'finger': float(rng.uniform(0.0, 0.04))} if robot.name == 'little' else {}
    return [
        send('goal_joints', joints_message({**robot.joints(rng), **extra}), draw.time()) for _ in range(2)
    ]


ACTIVITIES: dict[str, Callable[[Draw], Plan]] = {
    'rest': rest,
    'goals': goals,
    'stream of goals': stream,
    'path': along_path,
    'twist': by_twist,
    'jog': by_jog,
    'hand': by_hand,
    'hand-guided': guided,
    'home': homing,
    'gripper': gripper,
}
