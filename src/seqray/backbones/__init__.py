"""Encoders that others trained: directories in the form of Hugging Face's transformers (extra ``hf``)."""
