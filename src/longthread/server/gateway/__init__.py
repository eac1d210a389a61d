"""The gateway's endpoints."""
