"""From the text of a URDF or xacro to a robot, with every fault named."""
