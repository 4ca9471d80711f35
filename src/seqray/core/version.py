"""The version of seqray, which packaging reads from here."""

__version__ = "0.2.0"
