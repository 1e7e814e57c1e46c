"""Other libraries' objects: AnnData and networkx."""
