"""RAGonite: SQL over a database induced from the graph, and search over its triples put into words."""
