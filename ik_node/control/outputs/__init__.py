"""What a controller of the arm is sent."""
