"""Chatty-KG (Omar et al., arXiv 2511.20940): conversational question answering by LLM agents over SPARQL."""
