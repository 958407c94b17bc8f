# Usage: data.py FOLDER SIZE. Writes the shop's data, the requests of each mix, and what is expected of each request.
import json
import random
import sys
import zlib
from pathlib import Path

folder, size = Path(sys.argv[1]), int(sys.argv[2])
drawn = random.Random(1)
ITEMS, CUSTOMERS, ORDERS = 1000 * size, 2000 * size, 5000 * size
SUBJECTS, STOCK, REQUESTS = 40 * size, 1_000_000, 2000
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


def word():
    return "".join(drawn.choices(SYLLABLES, k=drawn.randint(2, 4)))


def copy(table, rows):
    lines = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    return f"COPY {table} FROM stdin;\n{lines}\\.\n"


# Number, subject, title, price.
items = [
    (number, drawn.randint(1, SUBJECTS), f"{word()} {word()}", drawn.randint(100, 9999))
    for number in range(1, ITEMS + 1)
]
price = {number: cents for number, _, _, cents in items}
discount = {number: drawn.choice((0, 0, 0, 5, 10)) for number in range(1, CUSTOMERS + 1)}


def order(customer):
    """Quantities by item, and the price of all."""
    lines = {drawn.randint(1, ITEMS): drawn.randint(1, 3) for _ in range(drawn.randint(1, 5))}
    cents = sum(price[item] * quantity for item, quantity in lines.items())
    return dict(sorted(lines.items())), cents * (100 - discount[customer]) // 100


orders, lines, history = [], [], {}
for number in range(1, ORDERS + 1):
    customer = drawn.randint(1, CUSTOMERS)
    wanted, cents = order(customer)
    orders.append((number, customer, cents))
    lines += [(number, line, item, wanted[item], price[item]) for line, item in enumerate(wanted, 1)]
    history.setdefault(customer, []).append((number, len(wanted), sum(wanted.values()), cents))

(folder / "load.sql").write_text(
    """
CREATE TABLE customers (customer_id integer PRIMARY KEY, discount_percent integer NOT NULL, name text NOT NULL);
CREATE TABLE items (item_id integer PRIMARY KEY, subject integer NOT NULL, title text NOT NULL, cents integer NOT NULL);
CREATE TABLE stock (item_id integer PRIMARY KEY REFERENCES items, quantity integer NOT NULL) WITH (fillfactor = 50);
CREATE TABLE orders (
    order_id bigserial PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers, cents bigint NOT NULL);
CREATE TABLE order_lines (
    order_id bigint REFERENCES orders, line integer, item_id integer NOT NULL REFERENCES items,
    quantity integer NOT NULL, cents integer NOT NULL, PRIMARY KEY (order_id, line));
"""
    + copy("customers", ((number, percent, word()) for number, percent in discount.items()))
    + copy("items", items)
    + copy("stock", ((number, STOCK) for number in price))
    + copy("orders", orders)
    + copy("order_lines", lines)
    + "CREATE INDEX ON items (subject, title, item_id);\nCREATE INDEX ON items (title, item_id);\n"
    + "CREATE INDEX ON orders (customer_id);\n"
    + f"SELECT setval('orders_order_id_seq', {ORDERS});\n"
    + "VACUUM ANALYZE;\n"
)
(folder / "reset.sql").write_text(
    f"""
DELETE FROM order_lines WHERE order_id > {ORDERS};
DELETE FROM orders WHERE order_id > {ORDERS};
UPDATE stock SET quantity = {STOCK} WHERE quantity <> {STOCK};
SELECT setval('orders_order_id_seq', {ORDERS});
VACUUM order_lines, orders, stock;
CHECKPOINT;
"""
)
(folder / "placed.sql").write_text(
    f"""
SELECT (SELECT count(*) FROM orders WHERE order_id > {ORDERS}),
    (SELECT coalesce(sum(cents), 0) FROM orders WHERE order_id > {ORDERS}),
    count(*), coalesce(sum(quantity), 0), coalesce(sum(quantity * cents), 0),
    (SELECT sum({STOCK} - quantity) FROM stock)
FROM order_lines WHERE order_id > {ORDERS};
"""
)


def page(rows):
    body = "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) + "\n" for row in rows)
    return f"<!DOCTYPE html><title>Shop</title><table>\n{body}</table>\n"


def found(chosen):
    """The first 20 of some items, as they are shown."""
    ordered = sorted(chosen, key=lambda item: (item[2], item[0]))
    return [(number, title, cents) for number, _, title, cents in ordered[:20]]


def a_page():
    """A request, and its answer."""
    kind = drawn.random()
    if kind < 0.4:
        subject = drawn.randint(1, SUBJECTS)
        return f"GET /subject?subject={subject}", found(item for item in items if item[1] == subject)
    if kind < 0.8:
        number = drawn.randint(1, ITEMS)
        return f"GET /item?item={number}", found([items[number - 1]])
    if kind < 0.9:
        start = "".join(drawn.choices(SYLLABLES, k=2))
        return f"GET /search?title={start}", found(item for item in items if item[2].startswith(start))
    # Customers with even numbers order nothing more, so that this page stays as it is.
    customer = 2 * drawn.randint(1, CUSTOMERS // 2)
    return f"GET /orders?customer={customer}", history.get(customer, [])[:-11:-1]


def an_order():
    """A request, and what it orders."""
    customer = 2 * drawn.randint(1, CUSTOMERS // 2) - 1
    wanted, cents = order(customer)
    words = "".join(f"&item={item}&quantity={quantity}" for item, quantity in wanted.items())
    full = sum(price[item] * quantity for item, quantity in wanted.items())
    answer = {"lines": len(wanted), "quantity": sum(wanted.values()), "full_cents": full, "cents": cents}
    return f"POST /order?customer={customer}{words}", answer


expected = {}
for mix, part in (("browse", 0.0), ("mixed", 0.2), ("order", 0.8)):
    requests = []
    for _ in range(REQUESTS):
        if drawn.random() < part:
            request, answer = an_order()
        else:
            request, rows = a_page()
            answer = zlib.crc32(page(rows).encode())
        expected[request] = answer
        requests.append(request)
    (folder / f"{mix}.requests").write_text("".join(f"{request}\n" for request in requests))
(folder / "expected.json").write_text(json.dumps(expected))
