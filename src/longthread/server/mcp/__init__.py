"""Longthread as a server of the Model Context Protocol: questions, conversations, recall and memories, as tools."""
