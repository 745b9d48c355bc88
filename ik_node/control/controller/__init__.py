"""One state machine for an arm: requests in, setpoints and reports out."""
