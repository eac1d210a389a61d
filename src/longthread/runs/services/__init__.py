"""The services that an analyst hands out, one concern each."""
