"""RoboData: a state machine that builds a local graph, and supports each sentence by it."""
