"""Chatty-KG (Omar et al., arXiv 2511.20940): LLM agents that answer questions of a dialogue by SPARQL."""
