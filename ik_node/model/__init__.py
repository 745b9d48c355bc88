"""Robot models: description (URDF, xacro) -> Robot -> Arm. No solving."""
