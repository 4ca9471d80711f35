"""What would fool a model trained on labelled sequences: leaks, shortcuts, and what simple rules score."""
