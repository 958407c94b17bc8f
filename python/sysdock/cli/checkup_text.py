"""The text form of `sysdock checkup`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.text import printable, wrapped

if TYPE_CHECKING:
    from sysdock.checkup.statement import Step

COLUMNS = 100
_WORDS = {
    "en": {
        "ok": "ok",
        "finding": "LOOK CLOSER",
        "unknown": "unknown",
        "step": "Step {number}  {verdict}  {title}",
        "do": "What to do: ",
    },
    "ja": {
        "ok": "問題なし",
        "finding": "要確認",
        "unknown": "判定不能",
        "step": "ステップ {number}  {verdict}  {title}",
        "do": "対策: ",
    },
}
# What is printed where nothing was given.
GUIDE = {
    "en": """A check-up in four steps says whether I/O holds a job back. Give what you have:

1 I/O ratio      the job itself, or its times
    sysdock checkup -- CMD
    sysdock checkup --time job.log            # output of `time -v`, also in a job log
    sysdock checkup --acct pacct --job NAME   # process accounting (package acct)
    sysdock checkup --table jobs.csv --job ID # job, user, system, real, cores, assistant_cores
    sysdock checkup --user 51,023ms --real 18:20 --cores 3 --assistant-cores 2
2 volume, rate   a recording (`sysdock run -o rec -- CMD`); counters and samples of that time
    sysdock checkup rec --site site.toml --nfsstat before after --sar sadf.json
3 system calls   the recording
    sysdock checkup rec
4 bundle         what the administrator needs, without contents of files
    sysdock checkup rec -o bundle.tar.gz --hash-names

`sysdock checkup --help` names all options, `sysdock threshold` makes the site's threshold.
""",
    "ja": """入出力がジョブを遅くしているかどうかを 4 つのステップで調べます。あるものを与えてください。

1 入出力の比    ジョブそのもの、またはその時間
    sysdock checkup -- CMD
    sysdock checkup --time job.log            # `time -v` の出力。ジョブのログの中でもよい
    sysdock checkup --acct pacct --job NAME   # プロセスアカウンティング (acct パッケージ)
    sysdock checkup --table jobs.csv --job ID # job, user, system, real, cores, assistant_cores
    sysdock checkup --user 51,023ms --real 18:20 --cores 3 --assistant-cores 2
2 量、速さ      記録 (`sysdock run -o rec -- CMD`) と、その時のカウンターや負荷の記録
    sysdock checkup rec --site site.toml --nfsstat before after --sar sadf.json
3 システムコール  記録
    sysdock checkup rec
4 管理者に渡すもの  ファイルの内容を含みません
    sysdock checkup rec -o bundle.tar.gz --hash-names

オプションの一覧は `sysdock checkup --help`、サイトのしきい値は `sysdock threshold` で。
""",
}


def step_lines(steps: Sequence[Step], lang: str, columns: int | None = None) -> list[str]:
    """The steps with their verdicts, and below each what was seen and what to do."""
    words, room = _WORDS[lang], min(columns or COLUMNS, COLUMNS)
    lines = []
    for step in steps:
        title = step.title[lang == "ja"]
        lines += ["", words["step"].format(number=step.number, title=title, verdict=words[step.status])]
        advised = set()
        for part in step.parts:
            mark = f"[{words[part.status]}] " if len(step.parts) > 1 else ""
            lines += wrapped(printable(mark + part.text(lang)), room, "  ")
            advice = part.advice(lang)
            if advice and advice not in advised:
                lines += wrapped(printable(words["do"] + advice), room, "    ")
                advised.add(advice)
    return lines[1:]


def heads(lang: str) -> list[str]:
    """Beginnings of lines that are headings."""
    return [_WORDS[lang]["do"].strip()]


def status_names(lang: str) -> dict[str, str]:
    """What statuses are called here, and which they are."""
    return {_WORDS[lang][status]: status for status in ("ok", "finding", "unknown")}
