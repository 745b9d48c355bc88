# SPDX-License-Identifier: Apache-2.0
"""Solutions: lists the solutions of the newest goal while users want to see them, and goes to any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import viser
from rclpy.node import Node

from ik_node.checks import Array
from ik_node.errors import IkError
from ik_node.model.arm import Arm, tool_at
from ik_node.ros.programs.player import STILL
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver
from ik_node.steady import steady
from ik_node.viewer.panel.html import Colour
from ik_node.viewer.room import Moment, Room, Shown
from ik_node.viewer.scene.visuals import Drawing
from ik_node.viewer.solutions.along import Along, AlongPanel, Traced
from ik_node.viewer.solutions.ghosts import Ghosts, Look
from ik_node.viewer.solutions.listing import Lister, Listing, Query
from ik_node.viewer.solutions.panel import COLOURS, MOST_ROWS, SolutionsPanel
from ik_node.viewer.solutions.rules import RemoteRules
from ik_node.viewer.solutions.why import Why
from ik_node.viewer.tool import ViewedTool
from ik_node.viewer.worker import Worker

PERIOD = 0.06  # [s] from one list to the next while the goal moves
SETTLED = 0.25  # [s] for which a list is shown before a click counts: nobody can read it faster
MOST_LISTERS = 4  # that are kept
THERE = 0.02  # [rad or m] from a ghost at which the arm itself shows it
SAME = 1e-6  # [m and 1] between two goals that are alike
DRIFT = 5e-3  # the same while there is no goal and the gizmo follows the tool, whose joints are measured
REST = 0.5  # [s] after which joints that have moved less than STILL are at rest
RED: Colour = (212, 60, 60)
BRIGHT, FAINT, BARRED = (
    0.8,
    0.22,
    0.16,
)  # opacities: of the chosen ghost, of others, of those that are forbidden
MOST_BARRED = 8  # ghosts


class ListingResult(NamedTuple):
    """A listing, the solver behind it and for what it was asked."""

    solver: IkSolver
    listing: Listing
    asked: tuple[Any, ...]


class Solutions(Room):
    """Computes in threads of its own, only while the page shows solutions."""

    def __init__(self, node: Node, server: viser.ViserServer, mesh_path: str) -> None:
        self._server, self._mesh_path = server, mesh_path
        self._panel = SolutionsPanel(server.gui)
        self._along_panel = AlongPanel(server.gui, self._panel.folder)
        self._rules = RemoteRules(node)
        self._worker: Worker[ListingResult | str] = Worker(
            'solutions', 'The list could not be computed: see the log of ik_viewer.'
        )
        self._directions: Worker[tuple[Array, Array]] = Worker('directions')
        self._self_motions: Worker[Traced] = Worker('self-motions')
        self._listers: dict[Any, Lister] = {}  # of the thread
        self._shown: Shown | None = None
        self._tool: ViewedTool | None = None  # whose goal is listed
        self._ghosts: Ghosts | None = None
        self._why: Why | None = None
        self._along: Along | None = None
        self._number = 0  # of the present list
        self._forget()

    def _forget(self) -> None:
        self._worker.drop()
        self._asked: tuple[Any, ...] = ()  # for what the newest list was asked
        self._answered: tuple[Any, ...] = ()  # for what the present list was asked
        self._listing: Listing | None = None
        self._solver: IkSolver | None = None
        self._listed = 0.0  # when (steady)
        self._due = 0.0
        self._last = np.zeros(0)  # where the joints (n,) last moved
        self._rested = 0.0  # when they last moved (steady)
        self._wanted: Array | None = None  # the configuration (n,) that a user has chosen
        self._drawn: tuple[Any, ...] = ()
        self._note = ''

    def show(self, shown: Shown | None) -> None:
        """Set the tools of a new description, after the scene was cleared; none without a robot."""
        self._forget()
        self._listers = {}
        self._shown = shown
        self._directions.drop()
        self._self_motions.drop()
        self._tool = self._ghosts = self._why = self._along = None
        self._panel.set_arm(None)
        self._along_panel.show(None)
        self._panel.hide()

    def refresh(self) -> None:
        """Request the rules of ik_node."""
        if self._tool is not None and self._server.get_clients():
            self._rules.refresh()

    def update(self, moment: Moment) -> None:
        """Process the inputs of users and show the newest list."""
        rows = self._panel.take_rows()
        ghosts = self._ghosts.take_clicks() if self._ghosts else []
        shown, tool, values = self._shown, moment.tool, moment.values
        wanted = self._panel.on and moment.commanding and values
        if not wanted or shown is None or tool.arm is None:
            if self._tool is not None:
                self._clear()
                self._panel.set_arm(None)
            if not self._panel.on:
                self._panel.hide()
            return
        if tool is not self._tool:
            self._watch(tool, tool.arm, shown.drawing)
            rows, ghosts = [], []
        q = np.array([values.get(name, 0.0) for name in tool.arm.joint_names])
        self._ask(tool, tool.arm, shown.text, moment, q)
        for click in (*rows, *ghosts):
            self._go(tool, click)
        self._take(self._worker.take())
        self._draw(tool, tool.arm, values, q)

    def _watch(self, tool: ViewedTool, arm: Arm, drawing: Drawing) -> None:
        """List the goals of another tool."""
        self._clear()
        self._tool = tool
        self._ghosts = Ghosts(self._server, arm, drawing)
        self._why = Why(self._server, arm, self._directions)
        self._along = Along(self._server, self._along_panel, arm, drawing, self._self_motions)
        self._panel.set_arm(arm)
        self._panel.show_message('Computing the list')

    def _clear(self) -> None:
        for part in (self._ghosts, self._why, self._along):
            if part is not None:
                part.remove()
        self._tool = self._ghosts = self._why = self._along = None
        self._forget()

    def _ask(self, tool: ViewedTool, arm: Arm, text: str, moment: Moment, q: Array) -> None:
        """Have a new goal listed, and the same one if the arm has come to rest elsewhere; text: the URDF."""
        scene, now = tool.scene, steady()
        pose = scene.gizmo_pose() if scene is not None else None
        if len(self._last) != len(q) or np.abs(q - self._last).max() > STILL:
            self._last, self._rested = q, now
        if scene is None or pose is None or now < self._due:
            return
        held, directed, rules = self._panel.held, scene.directed, self._rules.of(tool.name)
        asked: tuple[Any, ...] = (directed, held, rules, dict(moment.options))
        tolerance = SAME if tool.goal_shown else DRIFT
        same = bool(self._asked) and asked == self._asked[1:] and _alike(pose, self._asked[0], tolerance)
        # Once the arm is at rest, the list is made for where it is then; noise does not renew it.
        if same and not self._due - PERIOD < self._rested + REST <= now:
            return
        asked = self._asked = (pose, *asked)
        self._due = now + PERIOD
        point, axis = tool_at(arm, pose)
        goal = Goal(point, axis if directed else None)
        query = Query(goal, {**moment.values, **held}, tuple(held), rules.workspace)
        listers, options = self._listers, moment.options
        known = arm, text if rules.collisions else '', self._mesh_path, rules.srdf_file

        def compute() -> ListingResult | str:
            key = (*known, *sorted(options.items()))
            try:
                if key not in listers:
                    while len(listers) >= MOST_LISTERS:
                        del listers[next(iter(listers))]
                    listers[key] = Lister(*known, **options)
                lister = listers[key]
                return ListingResult(lister.solver, lister.listing(query), asked)
            except IkError as error:
                return str(error)

        self._worker.submit(compute)

    def _take(self, result: ListingResult | str | None) -> None:
        if isinstance(result, str):
            self._listing = None
            self._panel.show_message(result)
        elif result is not None:
            self._solver, self._listing, self._answered = result
            self._listed = steady()
            self._number += 1
            self._note = ''

    @property
    def _settled(self) -> bool:
        """Whether users have had time to read the list, and it is that of the present goal."""
        return self._answered is self._asked and steady() >= self._listed + SETTLED

    @property
    def _chosen(self) -> int:
        """Which row is the one that a user has chosen, or the nearest."""
        rows = self._listing.allowed[:MOST_ROWS] if self._listing is not None else ()
        if self._wanted is None or not rows:
            return 0
        return int(np.argmin([np.abs(choice.q - self._wanted).max() for choice in rows]))

    def _go(self, tool: ViewedTool, click: int | None) -> None:
        """Go to the configuration of a row or ghost that a user has clicked; None: of an older list."""
        listing = self._listing
        if listing is None:
            return
        shown = min(len(listing.allowed), MOST_ROWS)
        if click is None or (click < shown and not self._settled):
            self._note = 'The list had just changed: click again.'
        elif click >= shown:
            barred = listing.forbidden[click - shown : click - shown + 1]
            self._note = f'The arm cannot go there: {barred[0].forbidden}.' if barred else ''
        else:
            self._send(tool, listing.allowed[click].q)

    def _send(self, tool: ViewedTool, q: Array) -> None:
        self._wanted, self._note = q, ''
        tool.go_to(q, self._asked[0], self._asked[1])

    def _draw(self, tool: ViewedTool, arm: Arm, values: Mapping[str, float], q: Array) -> None:
        """Show the list with the figures of the moment, and the ghosts if they differ."""
        listing, along = self._listing, self._along
        if listing is None or self._solver is None or self._ghosts is None or self._why is None:
            return
        self._why.show(self._solver, listing, arm.robot.link_pose(arm.base_link, values))
        self._panel.follow(values)
        self._panel.show(listing, arm, q, self._note, self._number if self._settled else 0)
        allowed, chosen = listing.allowed[:MOST_ROWS], self._chosen
        if along is not None:
            settled = allowed and self._settled and listing.nearest is None and not self._panel.held
            wanted = along.update(listing.goal, allowed[chosen] if settled else None, values)
            if wanted is not None:
                self._send(tool, wanted)
        there = [bool(np.abs(choice.q - q)[~arm.idle].max() < THERE) for choice in allowed]
        drawn = (self._listed, chosen, *there)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        looks = []
        for k, choice in enumerate(allowed):
            opacity = 0.0 if there[k] else BRIGHT if k == chosen else FAINT
            looks.append(Look(choice.q, COLOURS[k % len(COLOURS)], opacity))
        looks += [Look(choice.q, RED, BARRED) for choice in listing.forbidden[:MOST_BARRED]]
        self._ghosts.show(looks, values)

    def close(self) -> None:
        """End the thread."""
        for worker in (self._worker, self._directions, self._self_motions):
            worker.close()


def _alike(a: Array, b: Array, tolerance: float) -> bool:
    """Whether two poses (4,4) differ by at most tolerance [m and 1] in each element."""
    return bool(np.abs(a - b).max() <= tolerance)
