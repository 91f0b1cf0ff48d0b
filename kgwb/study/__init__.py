"""What a paper needs beside its benchmarks: the experiments of published papers, and tables to print."""
