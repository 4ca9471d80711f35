"""A model as a product: weights with their card in one file, the shipped models, encoders of others."""
