"""Networks: tokens in, logits out. They know neither files nor records."""
