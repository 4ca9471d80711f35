"""What everything else speaks of: letters, records, settings, errors, results. No files, no networks."""
