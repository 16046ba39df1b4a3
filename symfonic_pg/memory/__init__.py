"""The vocabulary and the coordinator: pure Python, no input or output, the standard library only."""
