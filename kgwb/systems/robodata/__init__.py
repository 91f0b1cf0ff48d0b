"""RoboData: a state machine that builds a local graph, and answers with the support of each sentence."""
