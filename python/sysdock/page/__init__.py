"""Parts of pages: a self-contained document, markup, tables, numbers, colours."""
