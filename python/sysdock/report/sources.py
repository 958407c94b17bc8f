"""The source of a number: the SQL that computed it, in a block that links lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sysdock.library import Analysis
from sysdock.page.markup import both, text
from sysdock.sentences import Words


def sql_block(analysis: Analysis, words: Words, command: str, params: Mapping[str, Any]) -> str:
    """A closed block with the SQL of an analysis or rule, its parameters, and the command that repeats it.

    `words`: its summary. `params`: values that differ from the defaults.
    """
    values = {param.name: params.get(param.name, param.default) for param in analysis.params}
    given = "".join(f"${name} = {'NULL' if value is None else value}\n" for name, value in values.items())
    return f"""<details class="more sql"><summary>{both(words)}</summary>
<p><code>{text(command)}</code></p>
<pre id="{sql_place(analysis)}">{text(given + analysis.sql)}</pre></details>"""


def sql_link(analysis: Analysis, words: str) -> str:
    """`words` (HTML) as a link to the SQL of an analysis or rule."""
    return f'<a class="origin" href="#{sql_place(analysis)}">{words}</a>'


def sql_place(analysis: Analysis) -> str:
    """The id of the block in the page."""
    return f"sql-{analysis.kind}-{text(analysis.id.replace('/', '-'))}"
