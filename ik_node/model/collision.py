# SPDX-License-Identifier: Apache-2.0
"""SelfCollision: the distances between links of a robot that are not adjacent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import IkError, InputError, MissingError, UrdfError, join_names, quoted
from ik_node.extras import load
from ik_node.model.meshes import load_mesh
from ik_node.model.plausibility import doubtful_mesh
from ik_node.model.robot import Robot
from ik_node.model.urdf.elements import Element, Reading, named, parse_xml
from ik_node.model.urdf.reader import rotation

from .joint import Joint
from .robot import JointSet


class Bodies:
    """Links that are fixed to each other are one body; 0 is that of the root, k + 1 moves with joints[k].

    joints: the movable ones, parents first. parents: the body that each of them is mounted on. origins
    (4, 4): its pose there at value 0. of_link: the body of each link, and the pose of the link in it.
    """

    def __init__(self, robot: Robot) -> None:
        self.joints: list[Joint] = []
        self.parents: list[int] = []
        self.origins: list[Array] = []
        self.of_link: dict[str, tuple[int, Array]] = {robot.root: (0, np.eye(4))}
        for joint in robot.joints.values():
            body, pose = self.of_link[joint.parent]
            origin = pose @ joint.origin
            if joint.movable:
                self.joints.append(joint)
                self.parents.append(body)
                self.origins.append(origin)
                self.of_link[joint.child] = (len(self.joints), np.eye(4))
            else:
                self.of_link[joint.child] = (body, origin)
        self._slides = np.array([joint.type == 'prismatic' for joint in self.joints], dtype=bool)
        self._constant = np.array(self.origins).reshape(-1, 4, 4)
        terms = [joint.terms for joint in self.joints]
        self._linear = self._constant @ np.array([term[0] for term in terms]).reshape(-1, 4, 4)
        self._square = self._constant @ np.array([term[1] for term in terms]).reshape(-1, 4, 4)

    def poses(self, values: Array) -> Array:
        """Return the poses (bodies, 4, 4) in the root link at values (k,) of joints [rad or m]."""
        linear = np.where(self._slides, values, np.sin(values))[:, None, None]
        square = (1.0 - np.cos(values))[:, None, None]
        local = self._constant + linear * self._linear + square * self._square
        poses = np.empty((len(self.joints) + 1, 4, 4))
        poses[0] = np.eye(4)
        for k, parent in enumerate(self.parents):
            np.matmul(poses[parent], local[k], out=poses[k + 1])
        return poses

    def movers(self, driven: Sequence[bool]) -> list[frozenset[int]]:
        """Return by body the joints that move it, of those that are driven (k,)."""
        movers: list[frozenset[int]] = [frozenset()]
        for k, parent in enumerate(self.parents):
            movers.append(movers[parent] | {k} if driven[k] else movers[parent])
        return movers


KEPT = 8  # checks
ROUNDING = 1e-5  # [m] of measured distances


class KnownDistances:
    """Distances of groups of links at the last checked configurations.

    A distance shrinks at most by the motion of its links. If that rules a collision out, the distance need
    not be computed again, and the verdict is the same. Thread-safe. sweep (g, n): how fast a distance can
    change with each variable.
    """

    def __init__(self, sweep: Array) -> None:
        self._sweep = sweep
        self._looks = np.empty((0, sweep.shape[1])), np.empty((0, sweep.shape[0]))

    def add(self, q: Array, distances: Array) -> None:
        """Note the distances (g,) at q (n,)."""
        rows, known = self._looks
        self._looks = np.vstack([rows[1 - KEPT :], q]), np.vstack([known[1 - KEPT :], distances])

    def clear(self, low: Array, high: Array, clearance: float) -> bool:
        """Whether all distances are known to stay above clearance [m] where low <= q <= high, each (n,)."""
        rows, known = self._looks
        moved = np.maximum(np.abs(rows - low), np.abs(rows - high))
        return bool((moved @ self._sweep.T + (clearance + ROUNDING) < known).any(axis=0).all())


LARGEST = 1e3  # [m] larger sizes and offsets are mistakes


@dataclass(frozen=True, eq=False)
class CollisionShape:
    """One shape fixed to a link.

    pose (4, 4) in the link's frame; radius [m] of a sphere about centre (3,), in the link's frame, around it.
    """

    link: str
    geometry: Any
    pose: Array
    centre: Array
    radius: float


def collision_shapes(text: str, mesh_path: str) -> tuple[list[CollisionShape], list[str]]:
    """Return the shapes of the <collision> elements of a URDF, and one sentence per one that is left out.

    A mesh becomes its convex hull; mesh_path: as for find_mesh. Raises MissingError without coal.
    """
    shapes: list[CollisionShape] = []
    notes: list[str] = []
    for link, element in named(parse_xml(text, Reading()), 'link').items():
        for collision in element.findall('collision'):
            coal = load('coal', 'self-collision checking')
            try:
                geometry = _geometry(coal, collision.find('geometry'), mesh_path)
            except Exception as error:  # an unreadable mesh file too must not reject the arm
                reason = str(error) if isinstance(error, IkError) else f'{type(error).__name__}: {error}'
                notes.append(f'a collision shape of link {quoted(link)} is left out: {" ".join(reason.split())}')
                continue
            pose = _origin(collision.find('origin'))
            geometry.computeLocalAABB()
            centre = pose[:3, :3] @ np.array(geometry.aabb_center) + pose[:3, 3]
            shapes.append(CollisionShape(link, geometry, pose, centre, float(geometry.aabb_radius)))
    return shapes, notes


def _geometry(coal: Any, element: Element | None, mesh_path: str) -> Any:
    """Return the coal geometry of a <geometry>."""
    for kind in () if element is None else element:
        if kind.tag == 'box':
            return coal.Box(*_numbers(kind, 'size', 3, positive=True))
        if kind.tag in ('cylinder', 'capsule'):
            (radius,), (length,) = (_numbers(kind, name, 1, positive=True) for name in ('radius', 'length'))
            make = coal.Cylinder if kind.tag == 'cylinder' else coal.Capsule
            return make(radius, length)
        if kind.tag == 'sphere':
            return coal.Sphere(*_numbers(kind, 'radius', 1, positive=True))
        if kind.tag == 'mesh':
            scale = _numbers(kind, 'scale', 3) if kind.get('scale') else [1.0, 1.0, 1.0]
            return _hull(coal, kind.get('filename', ''), scale, mesh_path)
    raise InputError('it has no box, cylinder, sphere or mesh')


def large_meshes(text: str, mesh_path: str) -> Iterator[str]:
    """Yield a question for each mesh of a URDF that is too large for an arm, the same file once.

    mesh_path: as for find_mesh; files that cannot be read are skipped. Raises MissingError without trimesh.
    """
    known = set[tuple[str, str]]()
    for link, element in named(parse_xml(text, Reading()), 'link').items():
        for mesh in element.iter('mesh'):
            key = mesh.get('filename', ''), mesh.get('scale', '1 1 1')
            if key in known:
                continue
            known.add(key)
            try:
                sizes = load_mesh(key[0], mesh_path).extents * [float(part) for part in key[1].split()]
            except MissingError:
                raise
            except Exception:  # whatever trimesh raises for a file that is no mesh
                continue
            if doubt := doubtful_mesh(float(np.abs(sizes).max())):
                yield f'mesh {quoted(key[0])} of link {quoted(link)}: {doubt}'


def _hull(coal: Any, filename: str, scale: list[float], mesh_path: str) -> Any:
    """Return the convex hull of a mesh file. Raises InputError for one in millimetres."""
    scene = load_mesh(filename, mesh_path)
    if doubt := doubtful_mesh(float(np.abs(scene.extents * scale).max())):
        raise InputError(doubt)
    hull = scene.to_mesh().convex_hull
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for vertex in np.asarray(hull.vertices, dtype=np.float64) * scale:
        points.append(vertex)
    for face in hull.faces.tolist():
        triangles.append(coal.Triangle(*face))
    return coal.Convex(points, triangles)


def _origin(element: Element | None) -> Array:
    pose = np.eye(4)
    if element is not None:
        if element.get('rpy'):
            pose[:3, :3] = rotation(*_numbers(element, 'rpy', 3))
        if element.get('xyz'):
            pose[:3, 3] = _numbers(element, 'xyz', 3)
    return pose


def _numbers(element: Element, attribute: str, count: int, *, positive: bool = False) -> list[float]:
    try:
        values = [float(word) for word in element.get(attribute, '').split()]
    except ValueError:
        values = []
    if len(values) != count or not all(
        math.isfinite(x) and abs(x) <= LARGEST and (x > 0 or not positive) for x in values
    ):
        allowed = f'{count} numbers{" greater than 0" if positive else ""} up to {LARGEST:g}'
        raise InputError(f'{attribute} of <{element.tag}> must be {allowed}, got {element.get(attribute)!r}')
    return values


def disabled_pairs(path: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of links that an SRDF file excludes from collision checking. Raises UrdfError."""
    try:
        root = parse_xml(Path(path).read_text(encoding='utf-8'), Reading())
    except (OSError, UnicodeDecodeError, UrdfError) as error:
        raise InputError(f'parameter srdf_file: {path} cannot be read: {error}') from None
    for element in root.findall('disable_collisions'):
        yield element.get('link1', ''), element.get('link2', '')


class Sweeps:
    """Bounds for shapes on bodies, from the lengths between joints alone: they hold in any configuration.

    A joint between two shapes moves one against the other. Seen from either of them, a point of the other
    moves no farther than its distance from the axis times the angle; the smaller of both bounds holds.
    """

    def __init__(self, bodies: Bodies, travel: Array, body: NDArray[np.int64], centres: Array, radii: Array):
        """travel (k,): farthest position of each joint of bodies from zero [rad or m].

        body, centres, radii: by shape, its body and the sphere around it there, (s,), (s, 3), (s,) [m].
        """
        self._bodies = bodies
        self._body, self._centres, self._radii = body, centres, radii
        self._above = bodies.movers([True] * len(bodies.joints))
        self._slides = [joint.type == 'prismatic' for joint in bodies.joints]
        lengths = [float(np.linalg.norm(origin[:3, 3])) for origin in bodies.origins]
        slid = np.where(self._slides, travel, 0.0).tolist()
        self._length = [length + far for length, far in zip(lengths, slid, strict=True)]

    def between(self, i: int, j: int) -> dict[int, float]:
        """Return by joint between shapes i and j how far a point of one moves against the other at most.

        [m/rad] for a revolute joint, 1 for a prismatic one.
        """
        found = {}
        for k in self._above[self._body[i]] ^ self._above[self._body[j]]:
            below, beside = (i, j) if k in self._above[self._body[i]] else (j, i)
            found[k] = 1.0 if self._slides[k] else min(self._below(below, k), self._beside(beside, k))
        return found

    def _below(self, shape: int, k: int) -> float:
        """Return the largest distance of a shape that joint k carries from its axis [m]."""
        body = int(self._body[shape])
        if body == k + 1:
            return self._from_axis(shape, np.zeros(3), np.asarray(self._bodies.joints[k].axis))
        path = self._above[body] - self._above[k + 1]
        return self._reach(shape) + sum(self._length[m] for m in path)

    def _beside(self, shape: int, k: int) -> float:
        """Return the same for a shape that joint k does not carry."""
        body, parent = int(self._body[shape]), self._bodies.parents[k]
        origin = self._bodies.origins[k]
        if body == parent:
            return self._from_axis(shape, origin[:3, 3], origin[:3, :3] @ self._bodies.joints[k].axis)
        path = self._above[body] ^ self._above[parent]
        return self._reach(shape) + sum(self._length[m] for m in path) + float(np.linalg.norm(origin[:3, 3]))

    def _reach(self, shape: int) -> float:
        """Return the distance of the farthest point of a shape from the origin of its body [m]."""
        return float(np.linalg.norm(self._centres[shape]) + self._radii[shape])

    def _from_axis(self, shape: int, origin: Array, axis: Array) -> float:
        """Return the distance of the farthest point of a shape from an axis in its body [m]."""
        away = self._centres[shape] - origin
        return float(np.linalg.norm(away - (away @ axis) * axis) + self._radii[shape])


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
        self._movers = bodies.movers([robot.driver(joint.name).joint in arm_joints for joint in bodies.joints])
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
