# SPDX-License-Identifier: Apache-2.0
"""What moves together: the models of a robot with one tool or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ik_node.control.robot.arm_model import ArmModel, JointModel
from ik_node.control.robot.tree_model import TreeModel
from ik_node.control.settings.robot import RobotSettings
from ik_node.errors import ChainError, InputError
from ik_node.model.arm import Arm
from ik_node.model.tree import joined

Models = dict[str, JointModel]  # by the first of the tools whose joints move together


def build_models(text: str, settings: RobotSettings, before: Mapping[str, JointModel]) -> Models:
    """Build the models of a description. before: those that there were. Raises IkError."""
    arms: dict[str, ArmModel] = {}
    for tool, own in settings.arms.items():
        with _errors_of(tool):
            arms[tool] = ArmModel.build(text, own, _like(text, tool, before, arms))
    groups = _groups({tool: model.arm for tool, model in arms.items()}, settings, before)
    models: Models = {}
    for group in groups:
        first = group[0]
        last = before.get(first)
        models[first] = arms[first]
        if len(group) > 1:
            own = settings.arms[first]
            last = last if isinstance(last, TreeModel) else None
            models[first] = TreeModel.build({tool: arms[tool] for tool in group}, own, last)
    return models


def check_models(text: str, settings: RobotSettings, before: Mapping[str, JointModel]) -> None:
    """Raise the IkError of a tool that build_models would raise, without building solvers."""
    arms = {}
    for tool, own in settings.arms.items():
        with _errors_of(tool):
            arms[tool] = ArmModel.check(text, own, _like(text, tool, before, {}))
    for group in _groups(arms, settings, before):
        if len(group) > 1:
            TreeModel.check({tool: arms[tool] for tool in group}, settings.arms[group[0]])


def arms_of(first: str, model: JointModel) -> dict[str, ArmModel]:
    """Return the arms of a model by tool; first: the first of its tools."""
    return model.arms if isinstance(model, TreeModel) else {first: model.of(first)[0]}


@contextmanager
def _errors_of(tool: str) -> Iterator[None]:
    """Name the tool in errors on its links and parameters."""
    try:
        yield
    except (InputError, ChainError) as error:
        if not tool:
            raise
        raise InputError(f'tool {tool}: {error}') from None


def _like(
    text: str, tool: str, before: Mapping[str, JointModel], arms: Mapping[str, ArmModel]
) -> ArmModel | None:
    """Return a model of text whose robot may be used again, if there is one: first that of the same tool."""
    own: dict[str, ArmModel] = {}
    for first, model in before.items():
        own |= arms_of(first, model)
    candidates = [*([own[tool]] if tool in own else []), *arms.values()]
    return next((model for model in candidates if model.text == text), None)


def _groups(
    arms: Mapping[str, Arm], settings: RobotSettings, before: Mapping[str, JointModel]
) -> tuple[tuple[str, ...], ...]:
    """Return the tools that share joints. Raises InputError for impossible ones or controllers."""
    groups = joined({tool: arm.joint_names for tool, arm in arms.items()})
    if before and {group[0] for group in groups} != before.keys():
        raise InputError('the new description changes which tools share joints; restart ik_node to use it')
    for group in groups:
        listed = set(settings.arms[group[0]].listed_joints(()))
        for other, arm in arms.items():
            both = listed & set(arm.joint_names)
            if both and other not in group:
                raise InputError(
                    f'parameter {group[0]}.controller_joints has joint "{min(both)}", which {other} moves'
                )
    return groups
