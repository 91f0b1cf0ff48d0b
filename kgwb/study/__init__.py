"""What a paper needs beside its benchmarks: experiments of published papers, error analysis, tables to print."""
