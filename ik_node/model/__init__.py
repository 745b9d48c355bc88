"""What a robot is: description (URDF, xacro) -> Robot -> Arm. No solving."""
