"""The gateway: providers' endpoints that keep the conversations which go through them (document 003)."""
