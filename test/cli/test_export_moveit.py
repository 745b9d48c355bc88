# SPDX-License-Identifier: Apache-2.0
"""The package with MoveIt's kinematics plugin: its files, its answers, and the plugin in MoveIt itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from ik_node import Arm, Goal, IkSolver, InputError
from ik_node.kernels.arrays import AXIS
from ik_node.model.urdf.reader import load_description
from ik_node.share import share_path
from ik_node.tools.export.moveit.package import moveit_package

HERE = Path(__file__).parent
EXACT = 1e-3  # rad, of answers.hpp
COMPILER = shutil.which('g++') or shutil.which('clang++')
MOVEIT = next(
    (p for p in os.environ.get('AMENT_PREFIX_PATH', '').split(':') if Path(p, 'share/moveit_core').is_dir()), ''
)


def description_of(name: str) -> str:
    return load_description(share_path('urdf', f'{name}.urdf.xacro'))


def arm_of(name: str, **options) -> Arm:
    return Arm.from_urdf(description_of(name), 'tool0', **options)


def write(folder: Path, arm: Arm) -> Path:
    for name, text in moveit_package(arm, arm.name).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')
    return folder


class Answers:
    """The compiled answers.hpp of an arm."""

    def __init__(self, arm: Arm, folder: Path) -> None:
        self.arm, name = arm, arm.name
        self._program = folder / 'driver'
        write(folder, arm)
        names = {'PACKAGE': f'{name}_kinematics', 'ARM_LOWER': f'{name}_lower', 'ARM_UPPER': f'{name}_upper'}
        words = [
            COMPILER,
            '-std=c++17',
            '-O0',
            '-Wall',
            '-Wextra',
            '-Werror',
            *(f'-D{key}={value}' for key, value in names.items()),
        ]
        folders = [f'-I{folder / place}' for place in ('src', 'include')]
        subprocess.run([*words, *folders, HERE / 'answers_driver.cpp', '-o', self._program, '-lm'], check=True)

    def ask(self, frames, seeds, roll_free=False, direction_tolerance=0.01):
        """Return for each frame (9,) and seed its answers: [(q, turned, moved), ...]."""
        rows = [[roll_free, direction_tolerance, *frame, *seed] for frame, seed in zip(frames, seeds, strict=True)]
        text = '\n'.join(' '.join(repr(float(value)) for value in row) for row in rows)
        lines = subprocess.run(
            [self._program], input=text, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        n = self.arm.n
        found = []
        for line in lines:
            count, *values = line.split()
            table = np.array(values, dtype=float).reshape(int(count), n + 2)
            found.append([(row[:n], row[n], row[n + 1]) for row in table])
        assert len(found) == len(rows)
        return found


def frame_at(arm: Arm, q) -> np.ndarray:
    """Tool point, tool axis and lateral axis (9,) at q."""
    return np.asarray(arm.frames(q))[-3:].ravel()


def about(axis, angle: float) -> np.ndarray:
    return Rotation.from_rotvec(angle * axis).as_matrix()


def rolled(frame, angle: float) -> np.ndarray:
    return np.concatenate([frame[:6], about(frame[3:6], angle) @ frame[6:]])


def tilted(frame, angle: float, rng) -> np.ndarray:
    side = np.cross(frame[3:6], rng.normal(size=3))
    turn = about(side / np.linalg.norm(side), angle)
    return np.concatenate([frame[:3], turn @ frame[3:6], turn @ frame[6:]])


def turned_between(a, b) -> float:
    axes = [np.array([f[3:6], f[6:], np.cross(f[3:6], f[6:])]) for f in (a, b)]
    return float(np.arccos(np.clip((np.trace(axes[0] @ axes[1].T) - 1.0) / 2.0, -1.0, 1.0)))


def check(arm: Arm, wanted, seed, answers, direction: float) -> None:
    """Every answer within the limits, at the position, with the direction, and sorted."""
    for q, turned, moved in answers:
        there = frame_at(arm, q)
        assert np.all((arm.lower <= q) & (q <= arm.upper))
        assert np.linalg.norm(there[:3] - wanted[:3]) < 1e-5
        assert np.linalg.norm(there[3:6] - wanted[3:6]) < direction + 2e-4
        assert turned == pytest.approx(turned_between(there, wanted), abs=1e-6)
        assert moved == pytest.approx(np.abs(q - seed).max(), abs=1e-9)
    keys = [(np.floor(turned / EXACT), moved) for _, turned, moved in answers]
    assert keys == sorted(keys)


def sign_of_roll(arm: Arm) -> float:
    return float(np.sign(arm.joints[4, AXIS] @ arm.tool[3:6]))


@pytest.fixture(scope='module')
def rolling(tmp_path_factory) -> Answers:
    """An arm whose joint 5 turns the tool about its axis."""
    return compiled('so101_like', tmp_path_factory)


@pytest.fixture(scope='module')
def bent(tmp_path_factory) -> Answers:
    """An arm whose roll follows from position and direction."""
    return compiled('seed_arm', tmp_path_factory)


def compiled(name: str, tmp_path_factory) -> Answers:
    if COMPILER is None:
        pytest.skip('needs a C++ compiler')
    return Answers(arm_of(name), tmp_path_factory.mktemp(name))


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp('package'), arm_of('seed_arm', tool_axis=(1.0, 0.0, 0.0)))


class TestFiles:
    def test_nothing_is_left_to_fill_in(self, folder):
        for path in folder.rglob('*.*'):
            assert not re.search(r'@\w+@', path.read_text(encoding='utf-8')), path

    def test_the_names_agree(self, folder):
        package = ElementTree.parse(folder / 'package.xml').findtext('name')
        library = ElementTree.parse(folder / 'plugin.xml').getroot()
        built = (folder / 'CMakeLists.txt').read_text(encoding='utf-8')
        source = (folder / 'src/plugin.cpp').read_text(encoding='utf-8')
        group = yaml.safe_load((folder / 'config/kinematics.yaml').read_text(encoding='utf-8'))['arm']
        assert library.get('path') == package == 'seed_arm_kinematics'
        assert f'add_library({package} SHARED src/plugin.cpp)' in built
        assert group['kinematics_solver'] == library[0].get('name')
        assert f'PLUGINLIB_EXPORT_CLASS({library[0].get("type")}, {library[0].get("base_class_type")})' in source
        for parameter in group.keys() - {'kinematics_solver', 'kinematics_solver_timeout'}:
            assert f'parameter("{parameter}"' in source

    def test_what_is_included_is_there_or_a_dependency(self, folder):
        depends = {each.text for each in ElementTree.parse(folder / 'package.xml').iter('depend')}
        built = (folder / 'CMakeLists.txt').read_text(encoding='utf-8')
        assert {'moveit_core', 'pluginlib', 'rclcpp'} < depends
        for name in depends - {'eigen'}:
            assert f'find_package({name} REQUIRED)' in built
        for name in re.findall(r'#include "(.+)"', (folder / 'src/answers.hpp').read_text(encoding='utf-8')):
            assert (folder / 'include' / name).is_file()

    def test_the_tool_axis_is_told(self, folder):
        assert 'x of the tip' in (folder / 'config/kinematics.yaml').read_text(encoding='utf-8')

    def test_a_tool_point_is_refused(self):
        with pytest.raises(InputError, match='add a link at the tool point'):
            moveit_package(arm_of('seed_arm', tool_point=(0.0, 0.0, 0.1)), 'seed_arm')


@pytest.mark.slow  # the compiler takes seconds
class TestAnswers:
    def queries(self, arm: Arm, count: int = 200):
        rng = np.random.default_rng(5)
        return arm.sample(rng, count), arm.sample(rng, count), rng

    @pytest.mark.parametrize('which', ['rolling', 'bent'])
    def test_a_whole_orientation_within_reach_is_met(self, which, request):
        answers = request.getfixturevalue(which)
        known, seeds, _ = self.queries(answers.arm)
        frames = [frame_at(answers.arm, q) for q in known]
        for wanted, seed, found in zip(frames, seeds, answers.ask(frames, seeds), strict=True):
            assert found
            check(answers.arm, wanted, seed, found, 0.0)
            assert max(turned for _, turned, _ in found) <= EXACT

    def test_joint_5_turns_the_tool_to_any_roll_within_its_limits(self, rolling):
        known, seeds, rng = self.queries(rolling.arm)
        values = rng.uniform(rolling.arm.lower[4], rolling.arm.upper[4], len(known))
        frames = [
            rolled(frame_at(rolling.arm, q), sign_of_roll(rolling.arm) * (value - q[4]))
            for q, value in zip(known, values, strict=True)
        ]
        for wanted, seed, found in zip(frames, seeds, rolling.ask(frames, seeds), strict=True):
            assert found
            check(rolling.arm, wanted, seed, found, 0.0)

    def test_of_another_roll_all_solutions_are_answers_if_it_is_free(self, bent):
        known, seeds, rng = self.queries(bent.arm, 100)
        frames = [rolled(frame_at(bent.arm, q), rng.uniform(0.5, np.pi)) for q in known]
        solver = IkSolver(bent.arm)
        refused = bent.ask(frames, seeds)
        free = bent.ask(frames, seeds, roll_free=True)
        for wanted, seed, none, found in zip(frames, seeds, refused, free, strict=True):
            assert all(turned <= EXACT for _, turned, _ in none)
            check(bent.arm, wanted, seed, found, 0.0)
            every = solver.solve_all(Goal(wanted[:3], wanted[3:6]), seed)
            for each in every:
                if each.position_error + each.direction_error > 1e-9:  # next to a fold, within the tolerances only
                    continue
                assert min(np.abs(q - each.q).max() for q, _, _ in found) < 1e-3, (each.q, [q for q, _, _ in found])
            least = min(turned_between(frame_at(bent.arm, each.q), wanted) for each in every)
            assert found[0][1] <= least + EXACT
        assert sum(not none for none in refused) > 80

    def test_the_nearest_direction_is_at_most_as_far_as_one_within_reach(self, rolling):
        known, seeds, rng = self.queries(rolling.arm)
        tilts = rng.uniform(0.05, 0.3, len(known))
        frames = [tilted(frame_at(rolling.arm, q), tilt, rng) for q, tilt in zip(known, tilts, strict=True)]
        assert not any(rolling.ask(frames, seeds))
        solved = 0
        for wanted, tilt, seed, found in zip(
            frames, tilts, seeds, rolling.ask(frames, seeds, True, np.pi), strict=True
        ):
            check(rolling.arm, wanted, seed, found, 1.7)
            if found:  # a joint may be beyond its limit
                solved += 1
                off = min(np.arccos(frame_at(rolling.arm, q)[3:6] @ wanted[3:6]) for q, _, _ in found)
                assert off <= tilt + 1e-6
        assert solved > 0.6 * len(known)
        near = rolling.ask(frames, seeds, True, 0.05)
        assert 0 < sum(map(bool, near)) < solved
        for wanted, seed, found in zip(frames, seeds, near, strict=True):
            check(rolling.arm, wanted, seed, found, 0.05)

    def test_joint_5_at_its_limit_is_the_nearest_if_the_roll_is_free(self, rolling):
        arm, q = rolling.arm, np.array(rolling.arm.middle)
        q[4] = arm.upper[4]
        assert arm.upper[4] - arm.lower[4] < 2 * np.pi - 0.2
        wanted = rolled(frame_at(arm, q), 0.1 * sign_of_roll(arm))
        (found,) = rolling.ask([wanted], [q], roll_free=True)
        assert any(one[4] == arm.upper[4] and turned == pytest.approx(0.1, abs=1e-6) for one, turned, _ in found)
        (exact,) = rolling.ask([wanted], [q])
        assert not exact


SRDF = '<robot name="{}"><group name="arm"><chain base_link="base_link" tip_link="tool0"/></group></robot>'
BUILD = """cmake_minimum_required(VERSION 3.16)
project(driver CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(ament_cmake REQUIRED)
find_package(moveit_core REQUIRED)
find_package(pluginlib REQUIRED)
find_package(rclcpp REQUIRED)
find_package(tf2_eigen REQUIRED)
add_executable(driver {})
ament_target_dependencies(driver moveit_core pluginlib rclcpp tf2_eigen)
"""


def build(source: Path, target: Path, prefix: Path) -> None:
    options = [f'-DCMAKE_INSTALL_PREFIX={prefix}', '-DBUILD_TESTING=OFF', *os.environ.get('IK_NODE_CMAKE', '').split()]
    subprocess.run(['cmake', '-S', source, '-B', target, *options], check=True)
    subprocess.run(['cmake', '--build', target], check=True)


@pytest.mark.nightly
@pytest.mark.skipif(not MOVEIT, reason='needs MoveIt: moveit_core in AMENT_PREFIX_PATH')
@pytest.mark.parametrize('name', ['seed_arm', 'xarm5_like'])
def test_the_plugin_in_moveit(name, tmp_path):
    write(tmp_path / 'package', arm_of(name))
    build(tmp_path / 'package', tmp_path / 'built', tmp_path / 'prefix')
    subprocess.run(['cmake', '--install', tmp_path / 'built'], check=True)
    (tmp_path / 'driver').mkdir()
    (tmp_path / 'driver/CMakeLists.txt').write_text(BUILD.format(HERE / 'moveit_driver.cpp'), encoding='utf-8')
    build(tmp_path / 'driver', tmp_path / 'driver_built', tmp_path / 'prefix')
    (tmp_path / 'arm.urdf').write_text(description_of(name), encoding='utf-8')
    (tmp_path / 'arm.srdf').write_text(SRDF.format(arm_of(name).robot.name), encoding='utf-8')
    paths = {key: f'{tmp_path / "prefix"}{place}:{os.environ.get(key, "")}' for key, place in (
        ('AMENT_PREFIX_PATH', ''), ('LD_LIBRARY_PATH', '/lib'))}  # fmt: skip
    given = [tmp_path / 'arm.urdf', tmp_path / 'arm.srdf', f'{name}_kinematics/IkPlugin', 'base_link', 'tool0']
    done = subprocess.run(
        [tmp_path / 'driver_built/driver', *given],
        env=os.environ | paths,
        check=True,
        capture_output=True,
        text=True,
    )
    told = {key: float(value) for key, value in (line.split() for line in done.stdout.splitlines())}
    assert told['wrong_base'] == told['wrong_tip'] == told['two_tips'] == 0
    assert "its base is 'tool0' and that of the plugin is 'base_link'" in done.stderr
    assert told['whole_number'] == 1
    assert told['below_zero'] == told['text'] == told['number'] == 0
    assert 'direction_tolerance must be an angle [rad] of at least 0, and is wide' in done.stderr
    assert 'roll_free must be true or false, and is 1' in done.stderr
    assert told['met'] == told['met_turned'] == told['set_from_ik'] == 200
    assert told['worst'] < 1e-4
    assert told['worst_forward'] < 1e-9
    assert told['refused'] > 150 if name == 'seed_arm' else told['refused'] == 0  # joint 5 turns the other
    assert told['never'] == 0
    assert told['never_code'] == -31  # NO_IK_SOLUTION
    assert told['all'] > 0
    assert told['offered_all'] == told['last'] == 1
    assert told['slow_code'] == -6  # TIMED_OUT
    assert (told['near'], told['far']) == (1, 0)
    assert told['short_seed'] == told['two_poses'] == told['no_link'] == told['no_turn'] == 0
    assert told['short_seed_code'] == -17  # INVALID_ROBOT_STATE
    assert told['two_poses_error'] == 4  # MULTIPLE_TIPS_NOT_SUPPORTED
