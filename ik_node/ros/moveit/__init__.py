"""The services of MoveIt."""
