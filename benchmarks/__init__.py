"""What `make bench` measures: ik_node's answers and times, beside its peers'."""
