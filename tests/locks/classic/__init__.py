"""The classic programs; see ``programs``."""
