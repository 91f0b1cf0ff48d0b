"""RoboData: a state machine that builds a local graph and answers from it, each sentence with its support."""
