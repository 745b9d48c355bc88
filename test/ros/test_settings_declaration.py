# SPDX-License-Identifier: Apache-2.0
"""Parameters: the file in config/ is the dataclass, values are checked, changes are all or nothing."""

import dataclasses
import inspect
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import rclpy
import yaml
from domains import new_domain
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter

from ik_node.control.settings import ArmSettings
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.ros.parameters import ONLY_IN_PYTHON, declare, on_change
from ik_node.solver.solver import IkSolver
from ik_node.tracks import TrackSettings

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'ik_node.yaml'


@pytest.fixture
def make_node():
    """Makes nodes with parameter overrides, in a ROS context of their own."""
    context = rclpy.Context()
    context.init(domain_id=new_domain())
    nodes = []

    def make(**overrides):
        parameters = [Parameter(name, value=value) for name, value in overrides.items()]
        nodes.append(rclpy.create_node('probe', context=context, parameter_overrides=parameters))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()
    context.shutdown()


def test_the_file_in_config_holds_every_parameter_with_its_default_and_text():
    lines = CONFIG.read_text().splitlines()
    values = yaml.safe_load('\n'.join(lines))['/**']['ros__parameters']
    assert list(values) == [field.name for field in dataclasses.fields(ArmSettings)]
    assert ArmSettings(**values) == ArmSettings()
    for field in dataclasses.fields(ArmSettings):
        expected = list if isinstance(field.default, tuple) else type(field.default)
        assert type(values[field.name]) is expected, field.name
        (line,) = [line for line in lines if line.startswith(f'    {field.name}: ')]
        comment = line.partition(' # ')[2].removesuffix(f' ({", ".join(field.metadata["choices"])})')
        assert comment == field.metadata['text'], field.name


@pytest.mark.parametrize('kind', [ArmSettings, TrackSettings])
def test_every_parameter_says_what_it_is_and_what_is_allowed(kind):
    for field in dataclasses.fields(kind):
        assert field.metadata['text'], field.name
        if isinstance(field.default, (float, int)) and not isinstance(field.default, bool):
            assert field.metadata['low'] <= field.default <= field.metadata['high'], field.name


def test_the_node_can_set_all_that_solver_and_arm_can_be_given():
    in_python_only = {'closed_form', 'compile', *ONLY_IN_PYTHON.values()}
    options = set(inspect.signature(IkSolver).parameters) - {'arm', *in_python_only}
    assert set(ArmSettings().search()) == options
    tool = set(inspect.signature(Arm).parameters) - {'robot'}
    assert set(ArmSettings().tool()) == tool


@pytest.mark.parametrize(
    ('name', 'value', 'says'),
    [
        ('speed_scaling', 2.0, r'from 0\.001 to 1, got 2\.0'),
        ('speed_scaling', math.nan, 'number'),
        ('speed_scaling', True, 'number'),
        ('speed_scaling', 'fast', "got 'fast'"),
        ('speed_scaling', None, 'got None'),
        ('restarts', -1, 'from 0 to 1000000, got -1'),
        ('restarts', 1.5, 'whole number'),
        ('on_unreachable', 'jump', "auto, closest, hold, got 'jump'"),
        ('solver', 'magic', 'lm'),
        ('tip_link', 3, 'string'),
        ('publish_description', 1, 'true or false'),
        ('tool_axis', [0.0, 1.0], '3 finite numbers'),
        ('tool_axis', 'up', r'one of x, .* or three numbers such as \[0\.0'),
        ('tool_axis', True, '"y", -y, z'),
        ('tool_point', 'x', '3 finite numbers'),
        ('tool_axis', [0.0, 0.0, 0.0], 'must not be zero'),
        ('tool_point', [0.0, 0.0, math.inf], '3 finite numbers'),
        ('tool_point', 1.0, '3 finite numbers'),
        ('home', [], 'one number, or one per joint'),
        ('home', ['a'], 'finite numbers'),
    ],
)
def test_nonsense_is_rejected_with_what_is_allowed(name, value, says):
    with pytest.raises(InputError, match=f'{name} .*{says}'):
        ArmSettings(**{name: value})


@pytest.mark.slow
def test_a_node_does_not_start_with_nonsense(make_node):
    with pytest.raises(InputError, match='publish_rate'):
        declare(make_node(publish_rate=1e6), ArmSettings)


def test_options_are_those_of_the_solver():
    assert ArmSettings(solver='ccd').search()['method'] == 'ccd'
    assert ArmSettings(direction_weight=0.1).search()['direction_weight'] == 0.1
    with pytest.raises(InputError, match='direction_weight'):
        ArmSettings(direction_weight=0.1, solver='ccd')


@pytest.mark.slow
@pytest.mark.parametrize('axis', [[1, 0, 0], 'x'])
def test_a_node_starts_with_the_values_it_was_given(make_node, axis):
    node = make_node(publish_rate=50, tool_axis=axis, tip_link='hand')
    settings = declare(node, ArmSettings)
    assert settings.publish_rate == 50.0
    assert isinstance(settings.publish_rate, float)
    assert settings.tool_axis == (1.0, 0.0, 0.0)
    assert settings.tip_link == 'hand'
    assert settings == dataclasses.replace(ArmSettings(), publish_rate=50.0, tool_axis=(1.0, 0.0, 0.0), tip_link='hand')


def test_a_removed_search_parameter_is_ignored_with_a_warning_that_says_where_it_is_now(make_node, monkeypatch):
    node = make_node(schedule='metropolis', solver_switches_off='limits', restarts=3)
    warnings = []
    monkeypatch.setattr(node, 'get_logger', lambda: SimpleNamespace(warning=warnings.append))
    assert declare(node, ArmSettings) == ArmSettings(restarts=3)
    arguments = {'schedule': 'schedule', 'solver_switches_off': 'method_options'}
    assert warnings == [
        f'the parameter {old} has been removed and is ignored: programs in Python set it by the '
        f'argument {new} of IkSolver'
        for old, new in arguments.items()
    ]


def test_descriptors_tell_text_and_range(make_node):
    node = make_node()
    declare(node, ArmSettings)
    told = node.describe_parameter('speed_scaling')
    assert told.description == 'fraction of the URDF velocity limits that is used'
    assert told.floating_point_range[0].to_value == 1.0
    assert node.describe_parameter('restarts').integer_range[0].to_value == 1_000_000
    assert 'auto, closest, hold' in node.describe_parameter('on_unreachable').additional_constraints
    assert node.describe_parameter('urdf_file').read_only


class Holder:
    """Stands for a node's state: takes settings, rejects the tip link 'wall'."""

    def __init__(self, node):
        self.settings = declare(node, ArmSettings)
        on_change(node, lambda: self.settings, self.check, self.apply)

    def check(self, settings):
        if settings.tip_link == 'wall':
            raise InputError('there is no link "wall"')

    def apply(self, settings):
        self.settings = settings


def test_changes_are_checked_before_they_take_effect(make_node):
    node = make_node(urdf_file='a.urdf')
    holder = Holder(node)
    before = holder.settings
    asked = {
        'max_jerk': 20,
        'on_unreachable': 'jump',
        'tip_link': 'wall',
        'urdf_file': 'b.urdf',  # read-only
        'use_sim_time': False,  # of others
    }
    good, *rejected, other = node.set_parameters([Parameter(k, value=v) for k, v in asked.items()])
    assert good.successful
    assert other.successful
    assert not any(result.successful for result in rejected)
    assert holder.settings == dataclasses.replace(before, max_jerk=20.0)
    assert node.get_parameter('on_unreachable').value == 'auto'
    assert node.get_parameter('tip_link').value == ''
    wrong = [Parameter('max_jerk', value=30.0), Parameter('speed_scaling', value='fast')]
    assert not node.set_parameters_atomically(wrong).successful
    assert holder.settings.max_jerk == node.get_parameter('max_jerk').value == 20.0


def test_a_change_that_somebody_else_rejects_does_not_take_effect(make_node):
    node = make_node()
    holder = Holder(node)
    if not hasattr(node, 'add_post_set_parameters_callback'):
        pytest.skip('this ROS has no callback after a change of parameters')
    # The callback that was added last is asked first: this one has to come before those of the holder.
    node.add_on_set_parameters_callback(lambda parameters: SetParametersResult(successful=not parameters, reason='no'))
    (result,) = node.set_parameters([Parameter('max_jerk', value=20.0)])
    assert not result.successful
    assert holder.settings == ArmSettings()
