"""Every exception that ik_node raises on purpose."""


class IkError(Exception):
    """Base of all errors of ik_node."""


class InputError(IkError, ValueError):
    """A call with arguments that no arm could serve: says what was given and what is allowed."""


class UrdfError(IkError):
    """A robot description that cannot be read as an arm: names element, attribute and line."""
