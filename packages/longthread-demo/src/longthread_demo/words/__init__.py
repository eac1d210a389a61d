"""What the words of a question may mean."""
