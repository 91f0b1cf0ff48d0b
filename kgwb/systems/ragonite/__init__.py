"""RAGonite: SQL over a database induced from the graph, and a search of passages about it."""
