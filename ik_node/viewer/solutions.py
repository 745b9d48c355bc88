# SPDX-License-Identifier: Apache-2.0
"""Solutions: lists the solutions of the newest goal, or why there is none, with ghosts and self-motions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import viser
from viser.transforms import SO3

from ik_node.checks import Array
from ik_node.control.preview import Preview, Previews
from ik_node.control.settings import ArmSettings, RobotSettings
from ik_node.errors import IkError
from ik_node.model.arm import Arm, tool_at
from ik_node.model.joint import Joint
from ik_node.model.robot import Robot
from ik_node.ros.programs.player import STILL
from ik_node.solver.goal import Goal, Solution
from ik_node.solver.reachable_directions import fibonacci_sphere
from ik_node.solver.solver import IkSolver
from ik_node.steady import steady

from . import panel
from .events import Event, Events, Worker
from .panel import AMBER, GREEN, GREY, RED, Colour, JointScale, update
from .scene import Drawing, Ghost, add_dots, extent_of, ghost_meshes, hits, move
from .section import Frame, Page, RobotView, Section
from .tool import ViewedTool

BUDGET = 0.05  # [s] for each list of a goal: a new one is due ten times per second
FIRST_BUDGET = 2.0  # [s] for the constants of an arm, computed once
REACHED = 1e-5  # [m] up to which a position counts as reached where the direction is not
ROUNDING = 1e-9  # [rad or m]


@dataclass(frozen=True, eq=False)
class Choice:
    """A configuration q (n,) of a list.

    forbidden: why the arm may not go there, '' if it may. joint, to_limit: the joint that is nearest to one
    of its limits, as a share of its range, and how far it is from it [rad or m]; None without limits.
    clearance: least distance between links [m], None where it is not known. self_motion: q is part of one.
    """

    q: Array
    forbidden: str = ''
    joint: int | None = None
    to_limit: float = math.inf
    clearance: float | None = None
    self_motion: bool = False


@dataclass(frozen=True, eq=False)
class Listing:
    """The solutions of a goal.

    allowed: nearest first. forbidden: met by the goal, but not possible. complete: the goal has no others.
    nearest: the best configuration of a goal that cannot be met, else None; allowed then holds the
    configurations that are as near.
    """

    goal: Goal
    allowed: Sequence[Choice] = ()
    forbidden: Sequence[Choice] = ()
    complete: bool = True
    nearest: Solution | None = None


@dataclass(frozen=True, eq=False)
class Query:
    """What is to be listed: a goal, and the joint positions by name where the arm is.

    locked: the joints that keep these positions. at_rest: the arm rests there, so motions are judged, too.
    """

    goal: Goal
    values: Mapping[str, float] = field(default_factory=dict)
    locked: Mapping[str, float] = field(default_factory=dict)
    at_rest: bool = False


class Lister:
    """Lists the solutions of a tool with the verdict of ik_node on each; for one thread.

    preview: may be replaced by another one of the same model.
    """

    def __init__(self, preview: Preview) -> None:
        self.preview, self.solver, arm = preview, preview.solver, preview.arm
        self._opened = IkSolver(opened(arm), **preview.settings.search())
        for solver in (self.solver, self._opened):  # a list has no time for the constants
            solver.solve_all(Goal(*arm.fk(arm.middle)), arm.middle, (), FIRST_BUDGET)
        self._periods = np.where(arm.turning_period > 0.0, arm.turning_period, math.inf)

    def listing(self, query: Query) -> Listing:
        """Return the solutions of the goal."""
        arm, goal, locked = self.preview.arm, query.goal, tuple(query.locked)
        named = {**query.values, **query.locked}
        seed = np.array([named.get(name, 0.0) for name in arm.joint_names])
        seed = np.where([name in locked for name in arm.joint_names], np.clip(seed, arm.lower, arm.upper), seed)
        found = self.solver.solve_all(goal, seed, locked, BUDGET)
        judged = [self._judged(one.q, query, self_motion=one.self_motion) for one in found]
        over = self._over_limits(query, seed)
        listing = Listing(
            goal,
            [choice for choice in judged if not choice.forbidden],
            [choice for choice in judged if choice.forbidden] + over,
            found.complete,
        )
        if found or locked:
            return listing
        nearest = self.solver.solve(goal, seed, BUDGET)
        rows = [nearest.q]
        if nearest.position_error < REACHED and goal.direction is not None and not nearest.solved:
            position, direction = arm.fk(nearest.q)
            near = self.solver.solve_all(Goal(position, direction), seed, locked, BUDGET)
            rows = [one.q for one in near] or rows
        near_rows = [self._judged(q, query) for q in rows]
        return replace(
            listing,
            allowed=[choice for choice in near_rows if not choice.forbidden],
            forbidden=[*(choice for choice in near_rows if choice.forbidden), *over],
            nearest=None if nearest.solved else nearest,
        )

    def _over_limits(self, query: Query, seed: Array) -> list[Choice]:
        """Return the configurations that meet the goal with at least one joint beyond its limits."""
        choices = []
        for one in self._opened.solve_all(query.goal, seed, tuple(query.locked), BUDGET):
            beyond = self._beyond(one.q)
            if beyond is not None:
                choices.append(self._judged(one.q, query, beyond))
        return choices

    def _beyond(self, q: Array) -> str | None:
        """Return which joints of q (n,) are beyond their limits at all of their turns; None if none is."""
        arm, parts = self.preview.arm, []
        for i, name in enumerate(arm.joint_names):
            excess = max(arm.lower[i] - q[i], q[i] - arm.upper[i])
            period = self._periods[i]
            if excess > ROUNDING and math.isfinite(period):
                turns = math.ceil((arm.lower[i] - ROUNDING - q[i]) / period)
                around = q[i] + period * np.array([turns - 1, turns])
                excess = float(np.maximum(arm.lower[i] - around, around - arm.upper[i]).min())
            if excess > ROUNDING:
                parts.append(f'{name} {amount(excess, bool(arm.prismatic[i]))} beyond its limit')
        return ', '.join(parts) or None

    def _judged(self, q: Array, query: Query, forbidden: str = '', self_motion: bool = False) -> Choice:
        """Return a configuration with its distances, and why ik_node would forbid it."""
        arm, model = self.preview.arm, self.preview.model
        joint, to_limit = None, math.inf
        room = np.minimum(q - arm.lower, arm.upper - q)
        limited = np.isfinite(room) & (arm.upper > arm.lower) & ~arm.idle
        if limited.any():
            shares = np.where(limited, room / np.where(limited, arm.upper - arm.lower, 1.0), math.inf)
            joint = int(shares.argmin())
            to_limit = float(room[joint])
        clearance = None
        if model.collision is not None:
            named = {**query.values, **dict(zip(arm.joint_names, q.tolist(), strict=True))}
            clearance = model.collision.distance(model.joints.filled(named))[0]
        forbidden = forbidden or self.preview.rejection(q, query.values, query.at_rest)
        return Choice(q, forbidden, joint, to_limit, clearance, self_motion)


def opened(arm: Arm) -> Arm:
    """Return an arm whose revolute joints have at least a whole turn, from -pi to pi."""

    def whole(joint: Joint) -> Joint:
        if joint.type != 'revolute' or joint.mimic is not None:
            return joint
        return replace(joint, lower=min(joint.lower, -math.pi), upper=max(joint.upper, math.pi))

    robot: Robot = arm.robot.with_joints({name: whole(joint) for name, joint in arm.robot.joints.items()})
    return arm.with_robot(robot)


def spare_joint(arm: Arm) -> str | None:
    """Return the joint whose values lead along the solutions of an arm with a spare joint, None without.

    The roll about the tool, where it moves neither tool point nor tool axis, else the first joint.
    """
    free = [name for name, idle in zip(arm.joint_names, arm.idle, strict=True) if idle]
    if not free and arm.n > arm.effective_dof:
        free = list(arm.joint_names)
    return free[0] if free else None


def amount(value: float, prismatic: bool) -> str:
    """Return a joint position [rad or m] with its unit."""
    shown, unit = (1e3 * value, ' mm') if prismatic else (math.degrees(value), '°')
    return f'{shown:.0f}{unit}' if shown >= 1.0 or shown < 0.05 else f'{shown:.1f}{unit}'


SWELLING = 1.02  # larger than the arm, so that surfaces that coincide do not flicker


class Look(NamedTuple):
    """How one ghost looks."""

    q: Array
    colour: Colour
    opacity: float


class Click(NamedTuple):
    """A click on a link of the ghost with that number. ray (2, 3): its origin and direction, in root."""

    number: int
    link: str
    ray: Array


class Ghosts:
    """Any number of ghosts of an arm, until the scene is cleared; clicks on them are kept.

    The links of all ghosts are one node of the scene each, so that a change takes few messages.
    """

    def __init__(self, server: viser.ViserServer, events: Events, arm: Arm, drawing: Drawing) -> None:
        self._events, self._arm = events, arm
        self._clicked: list[Click] = []
        self._placed: list[dict[str, Array]] = []  # T_root_link of each ghost that is shown
        self._meshes = ghost_meshes(arm, drawing, SWELLING)
        self._root = server.scene.add_frame('/solutions', show_axes=False, visible=False)
        self._links: dict[str, viser.BatchedMeshHandle] = {}
        for link, mesh in self._meshes.items():
            handle = server.scene.add_batched_meshes_simple(
                f'/solutions/{len(self._links)}',
                mesh.vertices,
                mesh.faces,
                np.array([[1.0, 0.0, 0.0, 0.0]]),
                np.zeros((1, 3)),
                batched_colors=np.zeros((1, 3), dtype=np.uint8),
                batched_opacities=np.ones(1),
                opacity=1.0,
                lod='off',
                cast_shadow=False,
                receive_shadow=False,
            )
            handle.on_click(self._on_click)
            self._links[link] = handle

    async def _on_click(self, event: viser.SceneNodePointerEvent[Any]) -> None:
        if event.instance_index is not None:
            link = next(link for link, handle in self._links.items() if handle is event.target)
            ray = np.array([event.ray_origin, event.ray_direction])
            self._events.post_input(event, partial(self._clicked.append, Click(event.instance_index, link, ray)))

    def take_clicks(self) -> list[int | None]:
        """Return which ghosts users clicked since the last call, None for one that is no longer there.

        A browser may show older ghosts than this does.
        """
        clicks = [click.number if self._hit(click) else None for click in self._clicked]
        self._clicked.clear()
        return clicks

    def _hit(self, click: Click) -> bool:
        """Whether the ray of a click hits the link of that ghost."""
        if click.number >= len(self._placed):
            return False
        pose = self._placed[click.number][click.link]
        origin, direction = (click.ray[0] - pose[:3, 3]) @ pose[:3, :3], click.ray[1] @ pose[:3, :3]
        return hits(origin, direction, np.asarray(self._meshes[click.link].triangles))

    def show(self, looks: Sequence[Look], values: Mapping[str, float]) -> None:
        """Show these ghosts; other joints of the robot are at values by name."""
        names = self._arm.joint_names
        placed = self._placed = [
            dict(self._arm.robot.link_poses({**values, **dict(zip(names, look.q, strict=True))})) for look in looks
        ]
        self._root.visible = bool(looks)
        if not looks:
            return
        colours = np.array([look.colour for look in looks], dtype=np.uint8)
        opacities = np.array([look.opacity for look in looks], dtype=np.float32)
        for link, handle in self._links.items():
            poses = np.array([poses[link] for poses in placed], dtype=np.float32)
            handle.batched_wxyzs = SO3.from_matrix(poses[:, :3, :3]).wxyz
            handle.batched_positions = poses[:, :3, 3]  # their number is that of the ghosts
            handle.batched_colors, handle.batched_opacities = colours, opacities

    def remove(self) -> None:
        """Remove the ghosts from the scene."""
        self._root.remove()


STEP = 0.04  # of all joints together [rad or m]
LONGEST = 12.0  # of a curve in one direction, the same unit
STRAIGHT = 0.5  # least cosine between two tangents: at a sharper bend curves may cross
CORRECTIONS = 4  # Newton steps back to the goal after each step along the curve
MET = 1e-7  # [m and 1] from the goal
RANK = 1e-6  # singular values below this share of the largest count as 0
FLAT = 1e-6  # a part of a unit vector that is shorter has no direction


@dataclass(frozen=True, eq=False)
class SelfMotion:
    """A curve of configurations q (k, n) that meet one goal, about STEP apart.

    start: the row that was given. closed: the last row leads to the first.
    """

    q: Array
    start: int
    closed: bool

    def at(self, share: float) -> Array:
        """Return the configuration (n,) at a share of the curve from 0 to 1: one of its rows."""
        return self.q[round(share * (len(self.q) - 1))]

    @property
    def share(self) -> float:
        """Where on the curve the given configuration is."""
        return self.start / max(len(self.q) - 1, 1)


def trace_self_motion(arm: Arm, goal: Goal, q: Array, spare: int) -> SelfMotion:
    """Trace the self-motion through q (n,), a solution of goal, both ways up to the limits.

    It begins in the direction in which the joint number spare moves most. With several spare joints it is one
    curve of many, the straightest. By predictor and corrector: Allgower and Georg, Numerical Continuation
    Methods, 1990.
    """
    forwards, closed = _traced(arm, goal, q, spare, 1.0)
    if closed:
        return SelfMotion(np.array([q, *forwards]), 0, True)
    backwards, _ = _traced(arm, goal, q, spare, -1.0)
    return SelfMotion(np.array([*reversed(backwards), q, *forwards]), len(backwards), False)


def _traced(arm: Arm, goal: Goal, start: Array, spare: int, sign: float) -> tuple[list[Array], bool]:
    """Return the configurations behind start in one direction, and whether they lead back to it."""
    along = np.zeros(arm.n)
    along[spare] = sign
    q, rows = start, list[Array]()
    first: Array | None = None
    for _ in range(round(LONGEST / STEP)):
        tangent = _still(arm, goal, q, along)
        if tangent is None or (first is not None and tangent @ along < STRAIGHT):
            break
        first = tangent if first is None else first
        ahead = _corrected(arm, goal, q + STEP * tangent)
        if ahead is None or (ahead < arm.lower).any() or (ahead > arm.upper).any():
            break
        along, q = tangent, ahead
        if len(rows) > 2 and _meets(arm, start - q) and tangent @ first > 0.5:
            return rows, True
        rows.append(q)
    return rows, False


def _meets(arm: Arm, gap: Array) -> bool:
    """Whether a difference (n,) of two configurations is less than a step, without whole turns."""
    turns = arm.turning_period > 0.0
    periods = np.where(turns, arm.turning_period, 1.0)
    rest = np.where(turns, gap - periods * np.round(gap / periods), gap)
    return bool(np.linalg.norm(rest) < 0.75 * STEP)


def _equations(arm: Arm, goal: Goal, q: Array) -> tuple[Array, Array]:
    """Return the errors (3,) or (6,) of position and tool axis at q, and their Jacobian."""
    position, direction = arm.fk(q)
    jacobian = arm.jacobian(q)
    if goal.direction is None:
        return position - goal.position, jacobian[:3]
    return np.concatenate([position - goal.position, direction - goal.direction]), jacobian


def _still(arm: Arm, goal: Goal, q: Array, along: Array) -> Array | None:
    """Return the unit vector nearest to along (n,) that leaves the tool still, None if there is none."""
    _, jacobian = _equations(arm, goal, q)
    _, values, rows = np.linalg.svd(jacobian)
    still = rows[int((values > RANK * values[0]).sum()) :]
    if not len(still):
        return None
    tangent = still.T @ (still @ along)
    length = float(np.linalg.norm(tangent))
    return tangent / length if length > FLAT else np.sign(along.sum()) * still[0]


def _corrected(arm: Arm, goal: Goal, q: Array) -> Array | None:
    """Return the solution near q (n,), None if Newton's method does not find it."""
    for _ in range(CORRECTIONS):
        errors, jacobian = _equations(arm, goal, q)
        if np.abs(errors).max() < MET:
            return q
        q = q - np.linalg.pinv(jacobian, RANK) @ errors
    errors, _ = _equations(arm, goal, q)
    return q if np.abs(errors).max() < MET else None


BELOW_ROWS = 1.5e6  # order in the folder
SELF_MOTION_SWELLING = 1.03
COLOUR: Colour = (202, 138, 4)
SLIDER_HINT = 'The spare joint moves and the tool stays. The slider shows a ghost only.'


class Traced(NamedTuple):
    """The self-motion of a choice."""

    choice: Choice
    self_motion: SelfMotion


class AlongPanel:
    """A slider and a button, hidden at first; inputs are kept until they are taken."""

    def __init__(self, section: Section) -> None:
        """section: in whose folder the controls are."""
        self._moved: float | None = None
        self._pressed = False
        gui = section.gui
        with section.folder:
            self._slider = gui.add_slider(
                'Move the spare joint [%]', 0.0, 100.0, 0.1, 0.0, visible=False, hint=SLIDER_HINT, order=BELOW_ROWS
            )
            self._go = section.button('Go to the ghost', self._on_go, visible=False, order=BELOW_ROWS + 1.0)
        section.listen(self._slider, self._on_slider)

    def _on_slider(self, event: Event) -> None:
        share = event.value / 100.0  # typed beside the slider, it may be beyond
        self._moved = min(1.0, max(0.0, share))

    def _on_go(self) -> None:
        self._pressed = True

    def show(self, share: float | None) -> None:
        """Show the controls with the slider at a share of the curve, or hide them; forget what waits."""
        self.take()
        if share is not None:
            self._slider.value = round(100.0 * share, 1)  # type: ignore[misc]
        for control in (self._slider, self._go):
            if control.visible is (share is None):
                control.visible = share is not None

    def take(self) -> tuple[float | None, bool]:
        """Return the newest share of the slider and whether the button was pressed, since the last call."""
        taken = self._moved, self._pressed
        self._moved, self._pressed = None, False
        return taken


class Along:
    """Shows the self-motion of the chosen solution of one arm, if it has one; computes in a thread."""

    def __init__(
        self,
        server: viser.ViserServer,
        panel: AlongPanel,
        arm: Arm,
        drawing: Drawing,
        worker: Worker[Traced],
    ) -> None:
        """worker: for the curves."""
        self._arm, self._panel, self._worker = arm, panel, worker
        spare = spare_joint(arm)
        self._spare = arm.joint_names.index(spare) if spare is not None else None
        self._requested: Choice | None = None
        self._traced: Traced | None = None
        self._self_motion: SelfMotion | None = None
        self._q: Array | None = None  # of the ghost
        self._ghost = Ghost(server, '/self_motion', (arm,), drawing, COLOUR, SELF_MOTION_SWELLING)
        self.forget()

    def update(self, goal: Goal, choice: Choice | None, values: Mapping[str, float]) -> Array | None:
        """Show the self-motion of a choice that meets goal, None for none; values: joint positions by name.

        Returns the configuration (n,) of the ghost if users want to go there.
        """
        if choice is not self._requested:
            self.forget()
            self._requested = choice
            if choice is not None and choice.self_motion and self._spare is not None:
                arm, spare = self._arm, self._spare
                self._worker.submit(lambda: Traced(choice, trace_self_motion(arm, goal, choice.q, spare)), self._take)
        traced, self._traced = self._traced, None
        if traced is not None and traced.choice is choice and len(traced.self_motion.q) > 1:
            self._self_motion = traced.self_motion
            self._panel.show(self._self_motion.share)
            self._place(self._self_motion.share, self._self_motion, values)
        share, pressed = self._panel.take()
        if self._self_motion is None:
            return None
        if share is not None:
            self._place(share, self._self_motion, values)
        return self._q if pressed else None

    def _take(self, traced: Traced) -> None:
        self._traced = traced

    def _place(self, share: float, self_motion: SelfMotion, values: Mapping[str, float]) -> None:
        """Put the ghost at a share of the self-motion."""
        self._q = self_motion.at(share)
        self._ghost.place({**values, **dict(zip(self._arm.joint_names, self._q.tolist(), strict=True))})

    def forget(self) -> None:
        """Hide everything."""
        self._requested = self._self_motion = self._q = self._traced = None
        self._worker.drop()
        self._ghost.hide()
        self._panel.show(None)

    def remove(self) -> None:
        """Remove the ghost from the scene and hide the controls."""
        self.forget()
        self._ghost.remove()


FORBIDDEN: Colour = (212, 60, 60)
POSSIBLE: Colour = (47, 158, 91)
DOTS = 24  # of the line
SAMPLES = 120  # directions that are tried, evenly spread: so many marks at most

# Lengths in extents of the arm.
DOT_RADIUS = 0.006
SPHERE_RADIUS, MARK_RADIUS = 0.16, 0.0065
HIDDEN = 1e-6  # scale


class WhyScene:
    """A dotted line with its length, and marks on a sphere about the goal; hidden at first."""

    def __init__(self, server: viser.ViserServer, extent: float) -> None:
        """extent: of the arm [m]."""
        self._extent = extent
        self._base = server.scene.add_frame('/why', show_axes=False)
        self._line = _hidden_dots(server, '/why/line', DOT_RADIUS * extent, DOTS, FORBIDDEN)
        self._marks = _hidden_dots(server, '/why/directions', MARK_RADIUS * extent, SAMPLES, POSSIBLE)
        self._label = server.scene.add_label('/why/distance', '', visible=False)

    def place(self, T_root_base: Array) -> None:
        """Follow the base of the arm, in whose frame the rest is."""
        move(self._base, T_root_base)

    def show_miss(self, goal: Array, reached: Array, words: str) -> None:
        """Show words, and a line from goal (3,) to the nearest point (3,) of the tool; without words hide."""
        shown = bool(words)
        if shown:
            shares = np.linspace(0.0, 1.0, DOTS)[:, None]
            self._line.batched_positions = ((1.0 - shares) * goal + shares * reached).astype(np.float32)
            self._label.text = words
            self._label.position = 0.5 * (goal + reached)
        for handle in (self._line, self._label):
            handle.visible = shown

    def show_directions(self, centre: Array, directions: Array) -> None:
        """Show directions (k, 3) on a sphere about centre (3,); k = 0: hide."""
        count = len(directions)
        if count:
            positions = np.tile(centre, (SAMPLES, 1))
            positions[:count] += SPHERE_RADIUS * self._extent * directions
            scales = np.full(SAMPLES, HIDDEN, dtype=np.float32)
            scales[:count] = 1.0
            self._marks.batched_positions = positions.astype(np.float32)
            self._marks.batched_scales = scales
        self._marks.visible = count > 0

    def remove(self) -> None:
        """Remove everything from the scene."""
        self._base.remove()


def _hidden_dots(
    server: viser.ViserServer, name: str, radius: float, count: int, colour: Colour
) -> viser.BatchedMeshHandle:
    dots = add_dots(server, name, radius, colour, np.zeros((count, 3)), np.ones(count))
    dots.visible = False
    return dots


DIRECTIONS_PERIOD = 0.4  # [s] from one set of directions to the next: they take up to 0.2 s
MOVED = 1e-4  # [m] from where the directions were asked for
DIRECTION_BUDGET = 2e-3  # [s] for a direction


class Why:
    """The line, the distance and the directions of one arm; the directions are computed in a thread."""

    def __init__(self, server: viser.ViserServer, arm: Arm, worker: Worker[tuple[Array, Array]]) -> None:
        """worker: for the directions."""
        self._arm, self._worker = arm, worker
        self._scene = WhyScene(server, extent_of(arm.robot, arm.tip_link))
        self._requested: Array | None = None  # the position of the directions that were asked for
        self._due = 0.0
        worker.drop()

    def show(self, solver: IkSolver, listing: Listing, T_root_base: Array) -> None:
        """Show why the goal of a listing cannot be met, nothing if it can. T_root_base: (4, 4)."""
        nearest, goal = listing.nearest, listing.goal
        self._scene.place(T_root_base)
        if nearest is None:
            self._hide()
            return
        position = goal.position
        missed = nearest.position_error > REACHED
        words = shortfalls(nearest)[0] if missed else ''
        self._scene.show_miss(position, self._arm.fk(nearest.q)[0], words)
        if missed:
            self._hide_directions()
            return
        now = steady()
        moved = self._requested is None or np.abs(position - self._requested).max() > MOVED
        if moved and now >= self._due:
            self._requested, self._due = position.copy(), now + DIRECTIONS_PERIOD
            place, seed = self._requested, nearest.q
            self._worker.submit(lambda: (place, possible_directions(solver, place, seed)), self._show_directions)

    def _show_directions(self, directions: tuple[Array, Array]) -> None:
        self._scene.show_directions(*directions)

    def _hide(self) -> None:
        self._scene.show_miss(np.zeros(3), np.zeros(3), '')
        self._hide_directions()

    def _hide_directions(self) -> None:
        if self._requested is not None:
            self._requested = None
            self._worker.drop()
        self._scene.show_directions(np.zeros(3), np.zeros((0, 3)))

    def remove(self) -> None:
        """Remove everything from the scene."""
        self._worker.drop()
        self._scene.remove()


def possible_directions(solver: IkSolver, position: Array, seed: Array) -> Array:
    """Return directions (k, 3) of the tool axis that are possible at position (3,) [m].

    The nearest possible one to each of evenly spread directions: all over a cap where the direction is free,
    on its edge, and along a curve where the position ties the direction.
    """
    found = []
    for direction in fibonacci_sphere(SAMPLES):
        solution = solver.solve(Goal(position, direction), seed, DIRECTION_BUDGET)
        if solution.position_error < REACHED:
            found.append(solver.arm.fk(solution.q)[1])
    return np.array(found).reshape(-1, 3)


ORDER = 0.9e6  # of the folder: below the joints, above the methods
MAX_ROWS = 16
ROWS, BELOW, SPARE = 1e6, 2e6, 3e6  # order within the folder
SHOWN = 6  # forbidden solutions in words

# One per row and its ghost, then again from the first; dark enough for white letters.
COLOURS: tuple[Colour, ...] = (
    (37, 99, 235),
    (15, 118, 110),
    (147, 51, 234),
    (161, 98, 7),
    (219, 39, 119),
    (77, 124, 15),
    (71, 85, 105),
    (14, 116, 144),
)
HINT = 'Each row: the posture, the largest turn of a joint on the way there, and the joint nearest to a limit. '
HINT += 'A click moves the arm.'
SMALL_GAP = 0.03  # [m] between links, below which it is shown
BENT = 0.3  # least share of a bend that is upwards or downwards, for it to be called so


class SolutionsPanel:
    """Shows a listing; clicks on its rows are kept until take_rows returns them.

    Each list that has settled has rows of its own: a click on a row counts for the list that it was made for,
    whatever a slow browser shows.
    """

    def __init__(self, section: Section) -> None:
        """section: in whose folder the controls are."""
        self._section, self.folder = section, section.folder
        gui = self._gui = section.gui
        self._clicked: list[tuple[int, int]] = []  # number of the list, and of the row
        self._number = 0  # of the list whose rows can be clicked; 0: none
        with self.folder:
            self._show = gui.add_checkbox(
                'Show solutions', False, hint='Every solution of the goal, as ghosts in the scene.'
            )
            self._summary = gui.add_html('', visible=False)
            self._below = gui.add_html('', visible=False, order=BELOW)
        self._rows: list[viser.GuiButtonHandle] = []
        self._hold: viser.GuiCheckboxHandle | None = None
        self._slider: viser.GuiSliderHandle[float] | None = None
        self._spare = '', JointScale.of(0.0, 0.0)  # the spare joint, and the scale of its slider

    def _add_row(self, number: int, k: int) -> viser.GuiButtonHandle:
        clicked = partial(self._clicked.append, (number, k))
        with self.folder:
            row: viser.GuiButtonHandle = self._section.button(
                f'{k + 1}', clicked, order=ROWS + k, color=COLOURS[k % len(COLOURS)]
            )
        return row

    @property
    def on(self) -> bool:
        """Whether users want to see solutions."""
        return self._show.value

    @property
    def fixed(self) -> dict[str, float]:
        """The position [rad or m] at which users hold the spare joint, by its name."""
        if self._hold is None or self._slider is None or not self._hold.value:
            return {}
        name, scale = self._spare
        return {name: self._slider.value * scale.unit}

    def follow(self, values: Mapping[str, float]) -> None:
        """Put the slider to the joint's position by name, unless users hold it."""
        name, scale = self._spare
        if self._slider is not None and not self.fixed and name in values:
            self._slider.value = scale.shown(values[name])  # type: ignore[misc]

    def take_rows(self) -> list[int | None]:
        """Return which rows users clicked since the last call, None for a row of another list."""
        rows = [k if number and number == self._number else None for number, k in self._clicked]
        self._clicked.clear()
        return rows

    def set_arm(self, arm: Arm | None) -> None:
        """Show the slider for the spare joint of an arm, none without one."""
        for control in (self._hold, self._slider):
            if control is not None:
                control.remove()
        self._hold = self._slider = None
        name = spare_joint(arm) if arm is not None else None
        if arm is None or name is None:
            return
        index = arm.joint_names.index(name)
        scale = JointScale.of(arm.lower[index], arm.upper[index], bool(arm.prismatic[index]))
        self._spare = name, scale
        with self.folder:
            self._hold = self._gui.add_checkbox(
                f'Hold {name}',
                False,
                hint='The joint is spare: list the solutions for one value of it.',
                order=SPARE,
            )
            self._slider = scale.slider(self._gui, f'{name} at', order=SPARE)

    def hide(self) -> None:
        """Show no listing."""
        self._set(self._summary, '')
        self._set(self._below, '')
        self._set_rows(0, 0)

    def show(self, listing: Listing, arm: Arm, q: Array, note: str, number: int) -> None:
        """Show a listing for an arm that is at q (n,).

        note: a sentence on the last click. number: of the list; 0 while it changes, which disables its rows.
        """
        self._set(self._summary, panel.box(_summary(listing) + panel.paragraph(note)))
        self._set_rows(min(len(listing.allowed), MAX_ROWS), number)
        for k, row in enumerate(self._rows):
            update(row, label=f'{k + 1}: {_figures(listing.allowed[k], arm, q)}', disabled=not number)
        parts = [panel.paragraph(panel.at_page(choice.forbidden)) for choice in listing.forbidden[:SHOWN]]
        more = len(listing.forbidden) - SHOWN
        if parts:
            parts.insert(0, panel.pills((f'{len(listing.forbidden)} not possible', RED)))
        if more > 0:
            parts.append(panel.paragraph(f'and {more} more', faint=True))
        self._set(self._below, panel.box(''.join(parts)) if parts else '')

    def _set_rows(self, count: int, number: int) -> None:
        """Have this many rows, made anew for another list."""
        kept = count if not number or number == self._number else 0
        for row in self._rows[kept:]:
            row.remove()
        self._rows = self._rows[:kept]
        self._number = number
        self._rows += [self._add_row(number, k) for k in range(len(self._rows), count)]

    def show_message(self, message: str) -> None:
        """Show a sentence instead of a listing."""
        self.hide()
        self._set(self._summary, panel.box(panel.paragraph(message)))

    def _set(self, handle: viser.GuiHtmlHandle, content: str) -> None:
        update(handle, content=content, visible=bool(content))


def _summary(listing: Listing) -> str:
    count = len(listing.allowed)
    if listing.nearest is not None:
        how_far = ', '.join(shortfalls(listing.nearest))
        reason = listing.nearest.reason
        content = panel.pills(('Not possible', AMBER), (how_far, GREY))
        content += panel.paragraph(panel.capital(str(reason)) if reason else '')
        below = 'the nearest configuration' if count == 1 else f'{count} configurations as near as possible'
        content += panel.paragraph(f'Below: {below}.')
    else:
        name = 'solution' if count == 1 else 'solutions'
        content = panel.pills((f'{count} {name}', GREEN if count else AMBER))
        if not listing.complete:
            content += panel.paragraph('There may be more: these were found by search.', faint=True)
    if count > MAX_ROWS:
        content += panel.paragraph(f'The nearest {MAX_ROWS} are shown.', faint=True)
    return content + panel.paragraph(HINT if count else '', faint=True)


def shortfalls(nearest: Solution) -> list[str]:
    """Return how far a configuration is from its goal, in words."""
    parts = []
    if nearest.position_error > 1e-5:
        millimetres = 1e3 * nearest.position_error
        cause = nearest.reason.cause.value if nearest.reason else ''
        way = cause if cause in ('too far', 'too near') else 'away'
        parts.append(f'{millimetres:.0f} mm {way}' if millimetres >= 1.0 else f'{millimetres:.2f} mm {way}')
    if nearest.direction_error > 1e-4:
        parts.append(f'direction off by {math.degrees(nearest.direction_error):.1f}°')
    return parts or ['not found']


def _figures(choice: Choice, arm: Arm, q: Array) -> str:
    moves = np.abs(choice.q - q)
    largest = int(moves.argmax())
    parts = [posture(arm, choice.q), f'moves {amount(float(moves[largest]), bool(arm.prismatic[largest]))}']
    if choice.joint is not None and choice.to_limit >= 0.0:
        left = amount(choice.to_limit, bool(arm.prismatic[choice.joint]))
        parts.append(f'{arm.joint_names[choice.joint]} {left} to limit')
    if choice.clearance is not None and 0.0 <= choice.clearance < SMALL_GAP:
        parts.append(f'links {1e3 * choice.clearance:.0f} mm apart')
    return ' · '.join(filter(None, parts))


def posture(arm: Arm, q: Array) -> str:
    """Return which way an arm at q (n,) bends between its base and its tool, '' if it is straight."""
    points = arm.skeleton(q)
    line = points[-1] - points[0]
    along = (points - points[0]) @ line / max(float(line @ line), 1e-12)
    aside = points - points[0] - np.clip(along, 0.0, 1.0)[:, None] * line
    far = aside[int(np.linalg.norm(aside, axis=1).argmax())]
    bend = float(np.linalg.norm(far))
    if bend < 0.02 * arm.reach:
        return ''
    up = far[2] / bend
    return 'elbow up' if up > BENT else 'elbow down' if up < -BENT else 'elbow aside'


PERIOD = 0.06  # [s] from one list to the next while the goal moves
SETTLED = 0.25  # [s] for which a list is shown before a click counts: nobody can read it faster
THERE = 0.02  # [rad or m] from a ghost at which the arm itself shows it
SAME = 1e-6  # [m and 1] between two goals that are alike
DRIFT = 5e-3  # the same while there is no goal and the gizmo follows the tool, whose joints are measured
REST = 0.5  # [s] after which joints that have moved less than STILL are at rest
BRIGHT, FAINT, BARRED = (
    0.8,
    0.35,
    0.16,
)  # opacities: of the chosen ghost, of others, of those that are forbidden
MAX_BARRED = 3  # ghosts


class ListingResult(NamedTuple):
    """A listing, the solver behind it and for what it was asked."""

    solver: IkSolver
    listing: Listing
    requested: tuple[Any, ...]


class Solutions(Section):
    """Computes in threads of its own, only while the page shows solutions."""

    def __init__(self, page: Page, mesh_path: str) -> None:
        super().__init__(page, 'Solutions', ORDER, expand_by_default=True)
        events = self.events
        self._mesh_path = mesh_path
        self._panel = SolutionsPanel(self)
        self._along_panel = AlongPanel(self)
        self._worker: Worker[ListingResult | str] = Worker(
            events, 'solutions', 'The list could not be computed: see the log of ik_viewer.'
        )
        self._directions: Worker[tuple[Array, Array]] = Worker(events, 'directions')
        self._self_motions: Worker[Traced] = Worker(events, 'self-motions')
        self._previews = Previews()  # of the thread
        self._lister: Lister | None = None  # of the thread
        self._tool: ViewedTool | None = None  # whose goal is listed
        self._ghosts: Ghosts | None = None
        self._why: Why | None = None
        self._along: Along | None = None
        self._number = 0  # of the present list
        self._forget()

    def _forget(self) -> None:
        self._worker.drop()
        self._requested: tuple[Any, ...] = ()  # for what the newest list was asked
        self._answered: tuple[Any, ...] = ()  # for what the present list was asked
        self._listing: Listing | None = None
        self._solver: IkSolver | None = None
        self._listed = 0.0  # when (steady)
        self._due = 0.0
        self._last = np.zeros(0)  # where the joints (n,) last moved
        self._rested = 0.0  # when they last moved (steady)
        self._picked: Array | None = None  # the configuration (n,) that a user has chosen
        self._drawn: tuple[Any, ...] = ()
        self._note = ''

    def show(self, robot: RobotView | None) -> None:
        """Set the tools of a new description, after the scene was cleared; none without a robot."""
        super().show(robot)
        self._forget()
        self._directions.drop()
        self._self_motions.drop()
        self._tool = self._ghosts = self._why = self._along = None
        self._panel.set_arm(None)
        self._along_panel.show(None)
        self._panel.hide()

    def update(self, frame: Frame) -> None:
        """Process the inputs of users and show the newest list."""
        rows = self._panel.take_rows()
        ghosts = self._ghosts.take_clicks() if self._ghosts else []
        robot, tool, values = self.robot, frame.tool, frame.values
        shown = self._panel.on and frame.commanding and values
        if not shown or robot is None or tool.arm is None:
            if self._tool is not None:
                self._clear()
                self._panel.set_arm(None)
            if not self._panel.on:
                self._panel.hide()
            return
        if tool is not self._tool:
            self._watch(tool, tool.arm, robot.drawing)
            rows, ghosts = [], []
        q = np.array([values.get(name, 0.0) for name in tool.arm.joint_names])
        self._request(tool, tool.arm, robot, frame, q)
        for click in (*rows, *ghosts):
            self._go(tool, click)
        self._draw(tool, tool.arm, values, q)

    def _watch(self, tool: ViewedTool, arm: Arm, drawing: Drawing) -> None:
        """List the goals of another tool."""
        self._clear()
        self._tool = tool
        self._ghosts = Ghosts(self.server, self.events, arm, drawing)
        self._why = Why(self.server, arm, self._directions)
        self._along = Along(self.server, self._along_panel, arm, drawing, self._self_motions)
        self._panel.set_arm(arm)
        self._panel.show_message('Computing the list')

    def _clear(self) -> None:
        for part in (self._ghosts, self._why, self._along):
            if part is not None:
                part.remove()
        self._tool = self._ghosts = self._why = self._along = None
        self._forget()

    def _request(self, tool: ViewedTool, arm: Arm, robot: RobotView, frame: Frame, q: Array) -> None:
        """Have a new goal listed, and the same one if the arm has come to rest elsewhere."""
        scene, now = tool.scene, steady()
        pose = scene.gizmo_pose() if scene is not None else None
        if len(self._last) != len(q) or np.abs(q - self._last).max() > STILL:
            self._last, self._rested = q, now
        if scene is None or pose is None or now < self._due:
            return
        fixed, directed = self._panel.fixed, scene.directed
        settings = self._settings(robot)
        requested: tuple[Any, ...] = (directed, fixed, settings)
        tolerance = SAME if tool.goal_shown else DRIFT
        last = self._requested
        same = bool(last) and requested == last[1:] and _alike(pose, last[0], tolerance)
        # Once the arm is at rest, the list is made for where it is then; noise does not renew it.
        at_rest = self._rested + REST <= now
        if same and not (at_rest and self._due - PERIOD < self._rested + REST):
            return
        requested = self._requested = (pose, *requested)
        self._due = now + PERIOD
        point, axis = tool_at(arm, pose)
        query = Query(Goal(point, axis if directed else None), frame.values, fixed, at_rest)

        def compute() -> ListingResult | str:
            try:
                lister = self._lister_of(self._previews.of(robot.text, settings, tool.name))
                return ListingResult(lister.solver, lister.listing(query), requested)
            except IkError as error:
                return str(error)

        self._worker.submit(compute, self._take)

    def _settings(self, robot: RobotView) -> RobotSettings:
        """Return the settings of ik_node for the tools of the page; its defaults until they are known."""
        known = self.remote.current or RobotSettings(ArmSettings(mesh_path=self._mesh_path), {})
        own = {
            tool.name: {
                **known.own.get(tool.name, {}),
                'base_link': tool.arm.base_link,
                'tip_link': tool.arm.tip_link,
                'tool_axis': tuple(tool.arm.tool_axis.tolist()),
                'tool_point': tuple(tool.arm.tool_point.tolist()),
            }
            for tool in robot.tools
            if tool.arm is not None
        }
        only = own.pop('', {})
        return RobotSettings(replace(known.general, **only), own)

    def _lister_of(self, preview: Preview) -> Lister:
        if self._lister is None or self._lister.solver is not preview.solver:
            self._lister = Lister(preview)
        self._lister.preview = preview
        return self._lister

    def _take(self, result: ListingResult | str) -> None:
        if isinstance(result, str):
            self._listing = None
            self._panel.show_message(result)
        else:
            self._solver, self._listing, self._answered = result
            self._listed = steady()
            self._number += 1
            self._note = ''

    @property
    def _settled(self) -> bool:
        """Whether users have had time to read the list, and it is that of the present goal."""
        return self._answered is self._requested and steady() >= self._listed + SETTLED

    @property
    def _chosen(self) -> int:
        """Which row is the one that a user has chosen, or the nearest."""
        rows = self._listing.allowed[:MAX_ROWS] if self._listing is not None else ()
        if self._picked is None or not rows:
            return 0
        return int(np.argmin([np.abs(choice.q - self._picked).max() for choice in rows]))

    def _go(self, tool: ViewedTool, click: int | None) -> None:
        """Go to the configuration of a row or ghost that a user has clicked; None: of an older list."""
        listing = self._listing
        if listing is None:
            return
        shown = min(len(listing.allowed), MAX_ROWS)
        if click is None or (click < shown and not self._settled):
            self._note = 'The list had just changed: click again.'
        elif click >= shown:
            barred = listing.forbidden[click - shown : click - shown + 1]
            self._note = f'The arm cannot go there: {barred[0].forbidden}.' if barred else ''
        else:
            self._send(tool, listing.allowed[click].q)

    def _send(self, tool: ViewedTool, q: Array) -> None:
        self._picked, self._note = q, ''
        tool.go_to(q, self._requested[0], self._requested[1])

    def _draw(self, tool: ViewedTool, arm: Arm, values: Mapping[str, float], q: Array) -> None:
        """Show the list with the figures of the moment, and the ghosts if they differ."""
        listing, along = self._listing, self._along
        if listing is None or self._solver is None or self._ghosts is None or self._why is None:
            return
        self._why.show(self._solver, listing, arm.robot.link_pose(arm.base_link, values))
        self._panel.follow(values)
        self._panel.show(listing, arm, q, self._note, self._number if self._settled else 0)
        allowed, chosen = listing.allowed[:MAX_ROWS], self._chosen
        if along is not None:
            settled = allowed and self._settled and listing.nearest is None and not self._panel.fixed
            step = along.update(listing.goal, allowed[chosen] if settled else None, values)
            if step is not None:
                self._send(tool, step)
        there = [bool(np.abs(choice.q - q)[~arm.idle].max() < THERE) for choice in allowed]
        drawn = (self._listed, chosen, *there)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        looks = []
        for k, choice in enumerate(allowed):
            opacity = 0.0 if there[k] else BRIGHT if k == chosen else FAINT
            looks.append(Look(choice.q, COLOURS[k % len(COLOURS)], opacity))
        looks += [Look(choice.q, FORBIDDEN, BARRED) for choice in listing.forbidden[:MAX_BARRED]]
        self._ghosts.show(looks, values)

    def close(self) -> None:
        """End the thread."""
        for worker in (self._worker, self._directions, self._self_motions):
            worker.close()


def _alike(a: Array, b: Array, tolerance: float) -> bool:
    """Whether two poses (4,4) differ by at most tolerance [m and 1] in each element."""
    return bool(np.abs(a - b).max() <= tolerance)
