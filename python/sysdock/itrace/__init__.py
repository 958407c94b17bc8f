"""Instruction traces: guests whose requests are traced, and what is made of a trace."""
