"""Debating over Graphs (DoG): a question is answered hop by hop, and debated shorter on the way."""
