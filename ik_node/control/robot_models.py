"""What moves together: the models of a robot with one tool or several."""

from __future__ import annotations

from collections.abc import Mapping

from ik_node.control.arm_model import ArmModel
from ik_node.control.joint_model import JointModel
from ik_node.control.robot_settings import RobotSettings
from ik_node.control.tree_model import TreeModel
from ik_node.errors import InputError
from ik_node.model.tree import joined

Models = dict[str, JointModel]  # by the first of the tools whose joints move together


def build_models(text: str, settings: RobotSettings, before: Mapping[str, JointModel]) -> Models:
    """Build the models of a description. before: those that there were. Raises IkError."""
    arms: dict[str, ArmModel] = {}
    for tool, own in settings.arms.items():
        arms[tool] = ArmModel.build(text, own, _like(text, tool, before, arms))
    groups = joined({tool: model.joint_names for tool, model in arms.items()})
    _check_controllers(settings, arms, groups)
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
    for tool, own in settings.arms.items():
        ArmModel.check(text, own, _like(text, tool, before, {}))


def _like(
    text: str, tool: str, before: Mapping[str, JointModel], arms: Mapping[str, ArmModel]
) -> ArmModel | None:
    """Return a model of text whose robot may be used again, if there is one: first that of the same tool."""
    own: dict[str, ArmModel] = {}
    for first, model in before.items():
        own |= model.arms if isinstance(model, TreeModel) else {first: model.of(first)[0]}
    candidates = [*([own[tool]] if tool in own else []), *arms.values()]
    return next((model for model in candidates if model.text == text), None)


def _check_controllers(
    settings: RobotSettings, arms: Mapping[str, ArmModel], groups: tuple[tuple[str, ...], ...]
) -> None:
    """Raise InputError if the controller of a tool has joints that another controller moves."""
    for group in groups:
        listed = set(settings.arms[group[0]].listed_joints(()))
        for other, model in arms.items():
            both = listed & set(model.joint_names)
            if both and other not in group:
                raise InputError(
                    f'parameter {group[0]}.controller_joints has joint "{min(both)}", which {other} moves'
                )
