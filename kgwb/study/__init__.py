"""What a paper needs: experiments of published papers, error analysis, tables to print, archives of results."""
