# SPDX-License-Identifier: Apache-2.0
"""The services of MoveIt."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from scipy.optimize import minimize
from sensor_msgs.msg import JointState

from ik_node.checks import Array
from ik_node.control.checks import CLEARANCE
from ik_node.control.controller import NO_MODEL
from ik_node.control.requests import Snapshot
from ik_node.errors import InputError, join_names
from ik_node.model.collision import SelfCollision
from ik_node.model.robot import Robot
from ik_node.ros.conversions import joint_values, matrix_pose, pose_matrix, seconds
from ik_node.ros.frames import Frames
from ik_node.solver.goal import Goal, Solution, Status
from ik_node.solver.trees import Clock, TreeSolution, TreeSolver
from ik_node.steady import steady

from .interfaces import COMPUTE_FK, COMPUTE_IK, SOLVE_IK, Service
from .tool_interface import ToolInterface

ALTERNATIVES = 8  # number of other solutions to try if the nearest collides

# If tools that share joints are turned: places of these joints to try, solutions of the tools at each, how
# many of the best places are moved on, by this step [rad or m], and for how long at most [s]
TRUNKS, LIMBS, REFINED, STEP, TURNING = 16, 8, 3, 0.1, 1.0
WORST = 100.0  # [rad] of roll, for what is not solved
TURNED = 1e-3  # [rad] of the roll above which it is reported
CONSTRAINTS = (
    'joint_constraints',
    'position_constraints',
    'orientation_constraints',
    'visibility_constraints',
)


class Code(IntEnum):
    """The codes of moveit_msgs/msg/MoveItErrorCodes that are used."""

    SUCCESS = 1
    FAILURE = 99999
    TIMED_OUT = -6
    INVALID_GROUP_NAME = -15
    INVALID_GOAL_CONSTRAINTS = -16
    INVALID_ROBOT_STATE = -17
    INVALID_LINK_NAME = -18
    FRAME_TRANSFORM_FAILURE = -21
    COLLISION_CHECKING_UNAVAILABLE = -22
    ROBOT_STATE_STALE = -23
    NO_IK_SOLUTION = -31


class RejectedError(Exception):
    """A request that cannot be met: the code, and the reason as a sentence."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, eq=False)
class Query:
    """Context of a request besides its message.

    arms: the present arms, by tool; the only tool of a robot has the empty name. frames: for goals in other
    frames. check_needed: reject avoid_collisions where self-collision is not checked, instead of leaving that
    check to the caller. timeout: of a search [s], inf: none.
    """

    arms: Mapping[str, Snapshot]
    frames: Frames
    check_needed: bool = True
    timeout: float = math.inf

    @property
    def arm(self) -> Snapshot:
        """The arm of the first tool; its values and joints are those of the whole robot."""
        return next(iter(self.arms.values()))


def inverse(query: Query, request: Any) -> tuple[JointState, str]:
    """Return the joints for a moveit_msgs/msg/PositionIKRequest, and a sentence.

    All movable joints of the robot; joints of other tools are as in robot_state.
    Raises RejectedError.
    """
    for name in CONSTRAINTS:
        if getattr(request.constraints, name):
            raise RejectedError(Code.INVALID_GOAL_CONSTRAINTS, f'{name} are not supported, only poses of tools')
    values = _state(query, request.robot_state)
    goals = _goals(query, request)
    checkers = _checkers(query, request, goals)
    clock = Clock(query.timeout)  # one for all searches
    candidates = (_together if len(goals) > 1 else _alone)(query, goals, values, clock)
    reason = ''
    for found in candidates:
        missed = {tool: solution for tool, solution in found.items() if not solution.solved}
        if missed:
            searched = all(solution.status is Status.NOT_FOUND for solution in missed.values())
            late = searched and clock.late
            raise RejectedError(Code.TIMED_OUT if late else Code.NO_IK_SOLUTION, _summary(missed))
        there = values.copy()
        for tool, solution in found.items():
            there[query.arms[tool].tool.index] = solution.q
        overlap = next((colliding for checker in checkers if (colliding := _overlap(checker, there))), '')
        if not overlap:
            joints = query.arm.model.joints
            positions, _ = joints.expand(there, np.zeros(joints.n))
            return JointState(name=list(joints.names), position=positions.tolist()), _summary(found)
        reason = reason or overlap
    raise RejectedError(
        Code.TIMED_OUT if clock.late else Code.NO_IK_SOLUTION,
        f'every solution that was tried collides; the nearest: {reason}',
    )


def forward(query: Query, request: Any) -> tuple[list[PoseStamped], list[str], str]:
    """Return the poses for a moveit_msgs/srv/GetPositionFK request, their links, and a sentence.

    The sentence is empty if all links are known; else poses and links are those that are known, as
    move_group does it. The poses are in the frame of the header, empty: the base link, all at the joints of
    robot_state. Raises RejectedError.
    """
    model = query.arm.model
    if not request.fk_link_names:
        raise RejectedError(Code.INVALID_LINK_NAME, f'no link is given; links: {join_names(model.robot.links)}')
    values = _state(query, request.robot_state)
    try:
        T_frame_base = np.linalg.inv(query.frames.in_base(request.header, model, values))
    except InputError as error:
        raise RejectedError(Code.FRAME_TRANSFORM_FAILURE, str(error)) from None
    poses, links = [], []
    for link in request.fk_link_names:
        if link in model.robot.links:
            pose = PoseStamped(pose=matrix_pose(T_frame_base @ model.link_in_base(link, values)))
            pose.header.frame_id = request.header.frame_id or model.tree.base_link
            poses.append(pose)
            links.append(link)
    unknown = [link for link in request.fk_link_names if link not in links]
    said = (
        f'unknown links: {join_names(unknown)}; links: {join_names(model.robot.links, unknown[0])}' if unknown else ''
    )
    return poses, links, said


def _state(query: Query, state: Any) -> Array:
    """Return the variables (n,) of a moveit_msgs/msg/RobotState; missing joints keep their position."""
    given, joints = state.joint_state, query.arm.model.joints
    named: dict[str, float] = {}
    if given.name or given.position:
        try:
            named = joint_values(given, given.name)  # joints of other robots are ignored
        except InputError as error:
            raise RejectedError(Code.INVALID_ROBOT_STATE, f'robot_state: {error}') from None
        if not named.keys() & set(joints.names):
            raise RejectedError(
                Code.INVALID_ROBOT_STATE,
                f'robot_state has no joint of this robot ({join_names(joints.names)}), got {join_names(named)}',
            )
    unknown = [
        name
        for arm in query.arms.values()
        if math.isinf(arm.measured_age)
        for name in arm.tool.arm.joint_names
        if name not in named
    ]
    if unknown:
        raise RejectedError(
            Code.ROBOT_STATE_STALE,
            f'robot_state lacks joints that have not been measured either: {join_names(unknown)}',
        )
    return joints.filled({**joints.named(query.arm.values), **named})


def _goals(query: Query, request: Any) -> dict[str, Goal]:
    """Return the goals by tool."""
    poses = list(request.pose_stamped_vector) or [request.pose_stamped]
    links = list(request.ik_link_names) if request.pose_stamped_vector else [request.ik_link_name]
    if len(poses) == 1 and not links:
        links = ['']
    if len(poses) != len(links):
        raise RejectedError(
            Code.INVALID_LINK_NAME,
            f'pose_stamped_vector and ik_link_names must have the same length, got {len(poses)} and {len(links)}',
        )
    goals: dict[str, Goal] = {}
    for pose, link in zip(poses, links, strict=True):
        tool, T_link_tip = _tool(query, link, request.group_name)
        if tool in goals:
            raise RejectedError(Code.INVALID_LINK_NAME, f'the tool of link "{link}" already has a pose')
        try:
            arm = query.arms[tool]
            T_base_frame = query.frames.in_base(pose.header, arm.model, query.arm.values)
        except InputError as error:
            raise RejectedError(Code.FRAME_TRANSFORM_FAILURE, str(error)) from None
        try:
            goals[tool] = arm.tool.pose_goal(T_base_frame @ pose_matrix(pose.pose) @ T_link_tip)
        except InputError as error:
            raise RejectedError(Code.INVALID_GOAL_CONSTRAINTS, f'pose of the goal: {error}') from None
    return goals


def _tool(query: Query, link: str, group: str) -> tuple[str, Array]:
    """Return the tool that a link is fixed to, and the pose T_link_tip (4, 4); without a link, of a group."""
    arms = query.arms
    if not link:
        if group not in arms and len(arms) > 1:
            raise RejectedError(
                Code.INVALID_GROUP_NAME,
                f'without ik_link_name, group_name must be a tool: {join_names(arms)}, got "{group}"',
            )
        return (group if group in arms else next(iter(arms))), np.eye(4)
    robot = query.arm.model.robot
    if link in robot.links:
        above = _moved_by(robot, link)
        for tool, arm in arms.items():
            tip = arm.tool.arm.tip_link
            if _moved_by(robot, tip) == above:
                return tool, np.linalg.inv(robot.link_pose(link, {})) @ robot.link_pose(tip, {})
    tips = [arm.tool.arm.tip_link for arm in arms.values()]
    raise RejectedError(
        Code.INVALID_LINK_NAME,
        f'the link must be {join_names(tips)} or fixed to one of them, got "{link}"',
    )


def _moved_by(robot: Robot, link: str) -> list[str]:
    return [joint.name for joint in robot.path(link) if joint.movable]


def _checkers(query: Query, request: Any, tools: Collection[str]) -> list[SelfCollision]:
    """Return the self-collision checkers that the request asks for, those of the tools that move."""
    if not request.avoid_collisions:
        return []
    models = dict.fromkeys(query.arms[tool].model for tool in tools)
    found = [model.collision for model in models if model.collision is not None]
    if query.check_needed:
        if len(found) < len(models):
            raise RejectedError(
                Code.COLLISION_CHECKING_UNAVAILABLE,
                'avoid_collisions is set, but self-collision is not checked: see the log for the reason',
            )
        if request.robot_state.attached_collision_objects:
            raise RejectedError(
                Code.COLLISION_CHECKING_UNAVAILABLE,
                'avoid_collisions is set, but attached objects are not checked',
            )
    return found


def _alone(query: Query, goals: Mapping[str, Goal], values: Array, clock: Clock) -> Iterator[dict[str, Solution]]:
    """Yield solutions for one tool, the least roll error first; of equal ones that nearest to values (n,)."""
    ((tool, goal),) = goals.items()
    own = query.arms[tool].tool
    solver, seed = own.solver, values[own.index]
    nearest = solver.solve(goal, seed, _budget(clock))
    if not (nearest.solved and _turned(nearest)):
        yield {tool: nearest}
    others = solver.solve_all(goal, seed, time_budget=_budget(clock))
    found = [nearest, *(solver.align_lateral(goal, seed, other) for other in others)]
    for solution in sorted(found, key=_turned)[: ALTERNATIVES + 1]:  # a stable sort
        yield {tool: solution}


def _turned(solution: Solution) -> float:
    """Return the angle of the tool about its axis from the pose [rad], 0 if that is small."""
    turned = solution.lateral_error or 0.0
    return turned if turned > TURNED else 0.0


def _together(query: Query, goals: Mapping[str, Goal], values: Array, clock: Clock) -> Iterator[dict[str, Solution]]:
    """Yield the solution for several tools that is nearest to values (n,)."""
    found: dict[str, Solution] = {}
    for model in dict.fromkeys(query.arms[tool].model for tool in goals):
        own = {tool: goal for tool, goal in goals.items() if tool in model.tools}
        if model.together is None:
            found |= next(_alone(query, own, values, clock))
        else:
            found |= _least_turned(model.together, own, values[model.index], clock).tools
    yield {tool: found[tool] for tool in goals}


def _least_turned(solver: TreeSolver, goals: Mapping[str, Goal], q: Array, clock: Clock) -> TreeSolution:
    """Return the solution nearest to q (k,), or one with a lesser roll error if that one is turned.

    For given shared joints each tool has a few solutions, independent of those of the others.
    """
    tree, free = solver.tree, solver.tree.arms.keys() - goals.keys()
    best = solver.solve(goals, q, free=free, time_budget=_budget(clock))
    if not (best.solved and _rolls(best)):
        return best
    end = Clock(min(TURNING, clock.left))
    uses = np.zeros(len(q), dtype=int)
    for tool in goals:
        uses[tree.columns[tool]] += 1
    shared = uses > 1
    samples = tree.sample(np.random.default_rng(0), TRUNKS)

    def tried(seed: Array) -> TreeSolution:
        nonlocal best
        found = solver.solve(goals, seed, free=free, time_budget=end.left)
        if found.solved and _rolls(found) < _rolls(best):
            best = found
        return found

    def turned_at(place: Array) -> float:
        """Return the least roll error [rad] with the shared joints at a place, as far as it is found."""
        whole, least = best.q.copy(), dict.fromkeys(goals, WORST)
        whole[shared] = place
        for limbs in (best.q, *samples[:LIMBS]):
            if end.late or not _rolls(best):
                return 0.0
            found = tried(np.where(shared, whole, limbs))
            if found.solved and np.allclose(found.q[shared], place):
                for tool, solution in found.tools.items():
                    if _turned(solution) < least[tool]:
                        least[tool], whole[tree.columns[tool]] = _turned(solution), solution.q
        if max(least.values()) < WORST:
            tried(whole)
        return sum(least.values())

    places = [best.q[shared], *samples[:, shared]]
    for place in sorted(places, key=turned_at)[:REFINED]:
        corners = np.vstack([place, place + STEP * np.eye(len(place))])
        minimize(turned_at, place, method='Nelder-Mead', options={'initial_simplex': corners})
    return best


def _rolls(found: TreeSolution) -> float:
    """Return the sum of the roll errors of the tools [rad]."""
    return sum(map(_turned, found.tools.values()))


def _budget(clock: Clock) -> float | None:
    """Return what is left of the time [s], None: as the solver has it."""
    return None if clock.budget == math.inf else clock.left


def _overlap(collision: SelfCollision, values: Array) -> str:
    """Return which links are too close to each other at the variables (n,), empty if none."""
    distance, (one, other) = collision.distance(values)
    if distance >= CLEARANCE:
        return ''
    gap = f'overlap by {-distance:.4f} m' if distance < 0.0 else f'are as near as {distance:.4f} m'
    return f'link "{one}" and link "{other}" {gap}'


def _summary(solutions: Mapping[str, Solution]) -> str:
    return '; '.join(f'{tool}: {_sentence(s)}' if tool else _sentence(s) for tool, s in solutions.items())


def _sentence(solution: Solution) -> str:
    if not solution.solved:
        return f'{solution.status.value}: {solution.reason}'
    turned = _turned(solution)
    if not turned:
        return 'solved'
    return f'solved, but turned about the tool axis by {math.degrees(turned):.1f} degrees: the roll is free'


MAX_QUEUED = 64  # maximum number of queued requests
CHANGE = 1.0  # [s] to wait while the node changes from one robot to another

RequestHandler = Callable[[Any, Any, Query], str]  # fills the response to a request, and returns a sentence


class MoveItServices:
    """Provides solve_ik, ~/compute_ik and ~/compute_fk, processed by a thread of their own.

    They delay neither goals nor measurements. solve_ik is the default name of MoveIt's SrvKinematicsPlugin,
    which always sets avoid_collisions; MoveIt checks collisions itself.
    """

    def __init__(self, node: Node, tools: Sequence[ToolInterface], frames: Frames) -> None:
        self._node, self._tools, self._frames = node, tools, frames
        self._worker = ThreadPoolExecutor(1, thread_name_prefix='kinematics')
        self._waiting = 0
        node.context.on_shutdown(self.close)
        if COMPUTE_IK.type is None:
            node.get_logger().debug(
                'compute_ik and compute_fk are not available: moveit_msgs is not installed; the topics '
                '~/project_pose and ~/fk_joint_states serve the same queries'
            )
            return
        group = ReentrantCallbackGroup()  # requests may arrive while one is processed
        services: dict[Service, RequestHandler] = {
            COMPUTE_IK: partial(self._inverse, True),
            SOLVE_IK: partial(self._inverse, False),
            COMPUTE_FK: self._forward,
        }
        for service, answer in services.items():
            service.provide(node, self._served(answer), group=group)

    def close(self) -> None:
        """End the thread; queued requests get no response."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _served(self, answer: RequestHandler) -> Callable[[Any, Any], Any]:
        async def served(request: Any, response: Any) -> Any:
            if self._waiting >= MAX_QUEUED:
                _respond(response, self._node, Code.FAILURE, f'busy: {MAX_QUEUED} requests are queued')
                return response
            done = Future(executor=self._node.executor)
            self._waiting += 1
            try:
                job = self._worker.submit(self._work, answer, request, response, steady())
                job.add_done_callback(lambda _: done.set_result(None))
                done.add_done_callback(lambda _: None)  # this wakes the executor
                await done
            except RuntimeError:  # closed
                _respond(response, self._node, Code.FAILURE, 'the node is ending')
            finally:  # also of a request that the executor drops
                self._waiting -= 1
            return response

        return served

    def _work(self, answer: RequestHandler, request: Any, response: Any, arrival: float) -> None:
        """Fill a response, in the thread."""
        try:
            timeout = _timeout(request)
            waited = steady() - arrival
            if waited > timeout:
                raise RejectedError(Code.TIMED_OUT, f'waited {waited:.3g} s, timeout {timeout:g} s')
            _respond(response, self._node, Code.SUCCESS, answer(request, response, self._query(timeout - waited)))
        except RejectedError as rejection:
            _respond(response, self._node, rejection.code, str(rejection))
        except Exception as error:
            _respond(response, self._node, Code.FAILURE, f'unexpected error: {error}')
            self._node.get_logger().error(
                f'unexpected error, please report it: {traceback.format_exc()}', throttle_duration_sec=10.0
            )

    def _query(self, timeout: float) -> Query:
        """Return the context, once all tools have the same robot. Raises RejectedError without one."""
        end = steady() + CHANGE
        while True:
            arms = {tool.tool: tool.snapshot() for tool in self._tools}
            known = {tool: arm for tool, arm in arms.items() if arm is not None}
            if len(known) == len(arms) and len({arm.model.text for arm in known.values()}) == 1:
                return Query(known, self._frames, timeout=timeout)
            if not known or steady() > end:
                raise RejectedError(Code.FAILURE, NO_MODEL if not known else 'the robot is being changed')
            time.sleep(0.01)

    def _inverse(self, check_needed: bool, request: Any, response: Any, query: Query) -> str:
        query = replace(query, check_needed=check_needed)
        response.solution.joint_state, sentence = inverse(query, request.ik_request)
        response.solution.joint_state.header.stamp = self._node.get_clock().now().to_msg()
        return sentence

    def _forward(self, request: Any, response: Any, query: Query) -> str:
        response.pose_stamped, response.fk_link_names, unknown = forward(query, request)
        now = self._node.get_clock().now().to_msg()
        for pose in response.pose_stamped:
            pose.header.stamp = now
        if unknown:
            raise RejectedError(Code.INVALID_LINK_NAME, unknown)
        return 'solved'


def _timeout(request: Any) -> float:
    """Return the timeout of a request [s], infinite if it has none."""
    ik_request = getattr(request, 'ik_request', None)
    timeout = 0.0 if ik_request is None else seconds(ik_request.timeout)
    return timeout if timeout > 0.0 else math.inf


def _respond(response: Any, node: Node, code: Code, sentence: str) -> None:
    """Set the error code of a response; Humble's has neither message nor source."""
    error = response.error_code
    error.val = int(code)
    for name, text in (('message', sentence), ('source', node.get_fully_qualified_name())):
        if hasattr(error, name):
            setattr(error, name, text)
