"""What pages are made of: a document that needs nothing but itself, markup, tables, numbers, colours."""
