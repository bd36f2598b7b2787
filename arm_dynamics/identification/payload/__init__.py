"""Payload from recorded efforts with and without it. May import efforts and all below."""
