"""RAGonite: SQL over a database induced from the graph, and a search of its triples as sentences."""
