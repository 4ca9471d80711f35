from .discover import background_of as background_of, find_motifs as find_motifs
