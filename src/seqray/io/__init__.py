"""The only readers and writers of files. Behind them coordinates are 0-based and half-open."""
