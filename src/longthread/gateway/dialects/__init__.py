"""The dialects of providers: how their requests, replies and errors are read and written. Pure."""
