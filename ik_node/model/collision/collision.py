# SPDX-License-Identifier: Apache-2.0
"""SelfCollision: the distances between links of a robot that are not adjacent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import join_names
from ik_node.extras import load
from ik_node.model.collision.bodies import Bodies
from ik_node.model.collision.known_distances import KnownDistances
from ik_node.model.collision.shapes import CollisionShape
from ik_node.model.collision.sweeps import Sweeps
from ik_node.model.joint_set import JointSet
from ik_node.model.robot import Robot

SAMPLES = 200  # configurations in which pairs are checked
ALWAYS = 0.95  # share of them from which a pair is considered always in collision: its shapes are coarse
RESOLUTION = 2e-3  # [m] minimum step of a point between two checks of a path
FAR = 0.1  # [m] from which bounds of distances are good enough to advance along a path
UNLIMITED = 1e3  # [rad or m] assumed range of a joint without limits
FREE_SPAN = np.pi  # a joint without limits is sampled from -pi to pi [rad or m]

Pair = tuple[str, str]


class SelfCollision:
    """Distances between the collision shapes of a robot.

    q: the values (n,) of joints.variables. Left out are pairs of links that no joint of the arm moves against
    each other (a gripper may close), that are joined by one joint (links without shapes between them do not
    count), that the caller excludes, and that always collide: always (their names). Pairs that the same
    joints move against each other are a group. sweep (groups, n): how far points of such a pair move against
    each other at most when a variable moves by 1 [m/rad or 1].
    """

    def __init__(
        self,
        robot: Robot,
        joints: JointSet,
        arm_joints: Iterable[str],
        shapes: list[CollisionShape],
        excluded: Iterable[Pair] = (),
    ) -> None:
        """arm_joints: names of the variables that the motion of the arm changes. Raises MissingError."""
        self._coal = load('coal', 'self-collision checking')
        self._request = self._coal.DistanceRequest()
        self._joints = joints
        self._shapes = shapes
        self._bodies = bodies = Bodies(robot)
        self._rows = [joints.names.index(joint.name) for joint in bodies.joints]
        self._movers = bodies.movers(
            [robot.driver(joint.name).joint in arm_joints for joint in bodies.joints]
        )
        self._all_movers = bodies.movers([True] * len(bodies.joints))
        self._body = np.array([bodies.of_link[shape.link][0] for shape in shapes], dtype=np.int64)
        links = np.array([bodies.of_link[shape.link][1] for shape in shapes]).reshape(-1, 4, 4)
        self._in_bodies = links @ np.array([shape.pose for shape in shapes]).reshape(-1, 4, 4)
        centres = np.array([[*shape.centre, 1.0] for shape in shapes]).reshape(-1, 4, 1)
        self._centres = (links @ centres)[:, :3, 0]  # in the bodies
        self._radii = np.array([shape.radius for shape in shapes])
        self.always: list[Pair] = []
        self._pairs = self._enabled({frozenset(pair) for pair in excluded})
        self.always = self._always_colliding()
        self._pairs = self._enabled({frozenset(pair) for pair in (*excluded, *self.always)})
        self._grouped()

    @property
    def empty(self) -> bool:
        """Whether there is no pair of shapes to check."""
        return not len(self._pairs)

    def describe(self) -> str:
        """Return one line for the log."""
        links = {frozenset((self._shapes[i].link, self._shapes[j].link)) for i, j in self._pairs.tolist()}
        text = f'self-collision checking: {len(self._shapes)} shapes, {len(links)} pairs of links'
        if self.always:
            pairs = ', '.join(f'{a} with {b}' for a, b in self.always[:20])
            text += f'; left out, as they collide everywhere: {pairs}'
        return text

    def distance(self, q: Array) -> tuple[float, Pair]:
        """Return the least distance [m], negative in collision, and the links that have it."""
        poses = self._poses(q)
        bounds = self._bounds(poses)
        best, pair = np.inf, ('', '')
        placed: dict[int, object] = {}
        for k in np.argsort(bounds).tolist():
            if bounds[k] >= best:
                break
            i, j = self._pairs[k].tolist()
            found = self._between(i, j, poses, placed)
            if found < best:
                best, pair = found, (self._shapes[i].link, self._shapes[j].link)
        return best, pair

    def along(self, path: Array, clearance: float) -> tuple[int, float, Pair] | None:
        """Return where a path (k, n), straight between its rows, first comes nearer than clearance [m].

        (row before it, distance, links), None if it never does. A path that starts nearer may stay as near,
        but not end so. Conservative advancement: between two checks no point moves farther than the
        remaining distance to the other link, or than RESOLUTION, so nothing between two checks is nearer than
        clearance - RESOLUTION / 2.
        """
        if self.clear(path.min(axis=0), path.max(axis=0), clearance):
            return None
        steps = np.abs(np.diff(path, axis=0)) @ self.sweep.T
        covered = np.vstack([np.zeros((1, len(self._groups))), np.cumsum(steps, axis=0)])  # (k, groups)
        rows, end = np.arange(len(path), dtype=np.float64), float(len(path) - 1)
        least, at = clearance, 0.0
        while True:
            k = min(int(at), len(path) - 1)
            share = at - k
            q = path[k] if share == 0.0 else (1.0 - share) * path[k] + share * path[k + 1]
            distances, pairs = self.look(q)
            nearest = int(distances.argmin())
            distance = float(distances[nearest])
            if at == 0.0:
                least = min(clearance, distance / 2 if distance > 0.0 else distance - RESOLUTION)
            if distance < (clearance if at == end else least):
                return k, distance, pairs[nearest]
            if at == end:
                return None
            until = end
            for g, free in enumerate(np.maximum(distances - least, RESOLUTION).tolist()):
                line = covered[:, g]
                here = float(np.interp(at, rows, line))
                if line[-1] > here + free:
                    until = min(until, float(np.interp(here + free, line, rows)))
            at = until if until > at else min(k + 1.0, end)

    def clear(self, low: Array, high: Array, clearance: float) -> bool:
        """Whether earlier checks show that nothing comes nearer than clearance [m] for low <= q <= high.

        Each (n,). Much faster than a check. False is not a verdict.
        """
        return self._known.clear(low, high, clearance)

    def look(self, q: Array) -> tuple[Array, list[Pair]]:
        """Return the least distance (groups,) between links of each group, and those links.

        Far apart, the distance is a lower bound, and the names of the links are empty.
        """
        poses = self._poses(q)
        bounds = self._bounds(poses)
        distances, pairs = np.full(len(self._groups), np.inf), [('', '')] * len(self._groups)
        placed: dict[int, object] = {}
        for g, members in enumerate(self._groups):
            near = bounds[members]
            if (least := near.min()) > FAR:
                distances[g] = least
                continue
            for k in members[np.argsort(near)].tolist():
                if bounds[k] >= distances[g]:
                    break
                i, j = self._pairs[k].tolist()
                found = bounds[k] if bounds[k] > FAR else self._between(i, j, poses, placed)
                if found < distances[g]:
                    distances[g], pairs[g] = found, (self._shapes[i].link, self._shapes[j].link)
        self._known.add(q, distances)
        return distances, pairs

    def _bounds(self, poses: Array) -> Array:
        """Return a lower bound of the distance of each pair, by spheres around the shapes."""
        placed = poses[self._body]
        centres = (placed[:, :3, :3] @ self._centres[:, :, None])[:, :, 0] + placed[:, :3, 3]
        first, second = self._pairs.T
        apart = np.linalg.norm(centres[first] - centres[second], axis=1)
        return apart - self._radii[first] - self._radii[second]

    def _grouped(self) -> None:
        """Group the pairs by the joints that move one of them and not the other."""
        groups: dict[frozenset[int], list[int]] = {}
        for k, (i, j) in enumerate(self._pairs.tolist()):
            groups.setdefault(self._all_movers[self._body[i]] ^ self._all_movers[self._body[j]], []).append(k)
        self._groups = [np.array(members) for members in groups.values()]
        zeros = np.zeros(self._joints.n)
        ends = [np.clip(end, -UNLIMITED, UNLIMITED) for end in (self._joints.lower, self._joints.upper)]
        travel = np.abs([self._joints.expand(end, zeros)[0][self._rows] for end in ends]).max(axis=0)
        sweeps = Sweeps(self._bodies, travel, self._body, self._centres, self._radii)
        self.sweep = np.zeros((len(self._groups), self._joints.n))
        unit = np.eye(self._joints.n)
        ratios = np.abs([self._joints.expand(zeros, e)[1][self._rows] for e in unit])  # (n, joints)
        for sweep, members in zip(self.sweep, self._groups, strict=True):
            for i, j in self._pairs[members].tolist():
                by_joint = sweeps.between(i, j)
                own = ratios[:, list(by_joint)] @ np.array(list(by_joint.values()))
                np.maximum(sweep, own, out=sweep)
        self._known = KnownDistances(self.sweep)

    def _between(self, i: int, j: int, poses: Array, placed: dict[int, object]) -> float:
        for k in (i, j):
            if k not in placed:
                pose = poses[self._body[k]] @ self._in_bodies[k]
                placed[k] = self._coal.Transform3s(pose[:3, :3], pose[:3, 3])
        one, other = self._shapes[i].geometry, self._shapes[j].geometry
        result = self._coal.DistanceResult()
        return float(self._coal.distance(one, placed[i], other, placed[j], self._request, result))

    def _poses(self, q: Array) -> Array:
        """Return the poses (bodies, 4, 4) in the root link's frame."""
        return self._bodies.poses(self._joints.expand(q, np.zeros_like(q))[0][self._rows])

    def _enabled(self, excluded: set[frozenset[str]]) -> NDArray[np.int64]:
        """Return the pairs (p, 2) of shapes to check."""
        parent = [0, *self._bodies.parents]
        filled = set(self._body.tolist())

        def above(body: int) -> int:
            """Return the next body with shapes towards the root."""
            body = parent[body]
            while body and body not in filled:
                body = parent[body]
            return body

        pairs = []
        for i, one in enumerate(self._shapes):
            for j, other in enumerate(self._shapes[:i]):
                a, b = int(self._body[i]), int(self._body[j])
                joined = self._movers[a] == self._movers[b] or above(a) == b or above(b) == a
                if not joined and frozenset((one.link, other.link)) not in excluded:
                    pairs.append((j, i))
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def _always_colliding(self) -> list[Pair]:
        low = np.maximum(self._joints.lower, -FREE_SPAN)
        high = np.minimum(self._joints.upper, FREE_SPAN)
        rng = np.random.default_rng(0)
        times: Counter[frozenset[str]] = Counter()
        for q in rng.uniform(np.minimum(low, high), high, (SAMPLES, self._joints.n)):
            times.update(self._colliding(q))
        return [tuple(sorted(pair)) for pair, count in times.items() if count >= ALWAYS * SAMPLES]  # type: ignore[misc]

    def _colliding(self, q: Array) -> set[frozenset[str]]:
        """Return every pair of links in collision."""
        poses = self._poses(q)
        found: set[frozenset[str]] = set()
        placed: dict[int, object] = {}
        for i, j in self._pairs[self._bounds(poses) < 0.0].tolist():
            pair = frozenset((self._shapes[i].link, self._shapes[j].link))
            if pair not in found and self._between(i, j, poses, placed) < 0.0:
                found.add(pair)
        return found


def unknown_links(robot: Robot, pairs: Iterable[Pair]) -> str:
    """Return the links of pairs that the robot does not have, as text; '' if there are none."""
    names = [name for pair in pairs for name in pair if name not in robot.links]
    return join_names(dict.fromkeys(names)) if names else ''
