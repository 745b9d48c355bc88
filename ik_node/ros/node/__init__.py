"""The node ik_node."""
