"""Memory for agents of LangChain's."""
