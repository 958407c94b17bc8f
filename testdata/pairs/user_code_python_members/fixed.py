"""Counts orders of known customers.

The names are a set, so that each look-up takes the same time, however many there are.
"""

customers = {f"customer {number}" for number in range(9_000)}
orders = [f"customer {number * 7 % 18_000}" for number in range(9_000)]


def count_known() -> int:
    """Orders whose customer is known."""
    return sum(order in customers for order in orders)


print(count_known())
