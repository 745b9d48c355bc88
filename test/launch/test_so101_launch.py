# SPDX-License-Identifier: Apache-2.0
"""so101.launch.py: arm.launch.py with the values of an SO-101."""

from __future__ import annotations

import ast
import importlib

from launch_file import LAUNCH_FILE, module_of_launch_file
from launch_stand_in import stand_in

from ik_node.startup.arguments import ARGUMENTS
from ik_node.startup.plan import plan

TEXT = LAUNCH_FILE.with_name('so101.launch.py').read_text(encoding='utf-8')


def defaults() -> dict[str, str]:
    (found,) = [
        node.value
        for node in ast.parse(TEXT).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == 'DEFAULTS'
    ]
    return ast.literal_eval(found)


def test_its_values_start_the_driver_of_an_so101():
    values = {name: default for name, (default, _, _) in ARGUMENTS.items()}
    assert defaults().keys() <= values.keys()
    programs = {one.executable: one for one in plan(values | defaults() | {'port': 'emulated'}).programs}
    assert programs['ik_servos'].parameters['profile'] == 'so101'
    assert programs['ik_servos'].parameters['torque_at_start'] is True
    assert programs['ik_servos'].parameters['description'].endswith('so101_like.urdf.xacro')
    assert programs['ik_node'].parameters['speed_scaling'] == 0.2


def test_launch_loads_it_and_includes_the_arm_with_these_values(monkeypatch):
    stand_in(monkeypatch)
    context = importlib.import_module('launch').LaunchContext()
    *arguments, arm = module_of_launch_file('so101').generate_launch_description().entities
    for argument in arguments:
        argument.visit(context)
    arm.visit(context)
    for name, default in defaults().items():
        assert context.launch_configurations[name] == default
