# SPDX-License-Identifier: Apache-2.0
"""With which parameters ik_node starts, and what it says of those that are wrong."""

from __future__ import annotations

import pytest
from node_harness import running
from small_arm import arm_urdf

from ik_node.errors import IkError


@pytest.mark.slow
@pytest.mark.parametrize(
    ('urdf', 'parameters', 'named'),
    [
        ('<robot name="x"><link name="a"></robot>', {}, 'arm.urdf: .* line 1'),
        ('<robot/>', {}, '<link>'),
        (arm_urdf(), {'tip_link': 'hand'}, 'tip_link "hand"'),
        (arm_urdf(), {'home': [0.0, 1.0]}, 'home'),
        (arm_urdf(), {'speed_scaling': 5.0}, 'speed_scaling'),
        (None, {'urdf_file': '/no/such/arm.urdf'}, '/no/such/arm.urdf'),
        (arm_urdf(), {'robot_description': '<robot/>'}, 'robot_description and urdf_file'),
    ],
)
def test_it_does_not_start_with_nonsense(tmp_path, urdf, parameters, named):
    if urdf is not None:
        path = tmp_path / 'arm.urdf'
        path.write_text(urdf)
        parameters = {'urdf_file': str(path), **parameters}
    given = {'base_link': '', 'tip_link': '', **parameters}
    with pytest.raises(IkError, match=named), running(None, ready=False, **given):
        pass


def test_commands_are_never_taken_for_measurements():
    remapped = ['--ros-args', '-r', 'measured_joint_states:=joint_states']
    with pytest.raises(IkError, match='joint_states'), running(None, ready=False, cli_args=remapped):
        pass


def test_a_parameter_that_does_not_exist_is_named(capfd):
    with running(arm_urdf(), max_folowing_error=0.1):
        said = capfd.readouterr().err
        assert '"max_folowing_error"' in said
        assert '"max_following_error"' in said
