"""The procedure: what somebody does who repeats the experiment, with sysdock or by hand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from sysdock.experiment import plan as planned
from sysdock.experiment.documents.blocks import Block, Code, Heading, Items, Paragraph, table
from sysdock.experiment.documents.by_hand import by_hand
from sysdock.experiment.documents.source import Source

_BLOCKS_SHOWN = 3
_NOT_AUTOMATED = (
    (
        "What other programs on the machine do: runs that they disturb are rejected, but nothing is stopped.",
        "ほかのプログラムの停止。影響を受けた実行は却下されるが、プログラムは停止されない。",
    ),
    (
        "Settings of the firmware and of the host of a virtual machine.",
        "ファームウェアと、仮想マシンのホストの設定。",
    ),
    ("Installing packages.", "パッケージのインストール。"),
)


def procedure(source: Source) -> list[Block]:
    """Packages, commands in order, settings with how they are made by hand, order of runs, judgement."""
    say = source.say
    blocks: list[Block] = [
        Heading(1, say(f"Procedure: {source.title}", f"手順: {source.title}")),
        *source.incomplete(),
        Heading(2, say("With sysdock", "sysdock による再実行")),
        Paragraph(
            say(
                "The first command is the one that made this recording. The second does the same again on "
                "any machine, and says whether the results are reproduced.",
                "1 行目はこの記録を作ったコマンド。2 行目は、任意のマシンで同じ実験を行い、"
                "結果が再現したかを判定する。",
            )
        ),
        Code((source.options["command"], "sysdock experiment replay REC -o AGAIN")),
        Heading(2, say("1. Programs", "1. プログラム")),
        *_programs(source),
        Heading(2, say("2. Preparation", "2. 準備")),
        *_preparation(source),
        Heading(2, say("3. Before each run", "3. 各実行の前")),
        *_settings(source),
        Heading(2, say("4. The run", "4. 実行")),
        *_runs(source),
        Heading(2, say("5. Order of the runs", "5. 実行の順序")),
        *_order(source),
        Heading(2, say("6. Judgement", "6. 判定")),
        _claim(source),
        Heading(2, say("What is not automated", "自動化していないこと")),
    ]
    return [*blocks, Items(tuple(say(*words) for words in _NOT_AUTOMATED))]


def _programs(source: Source) -> Iterator[Block]:
    rows = [(name, value) for section, name, value, _ in source.environment() if section == "program"]
    if rows:
        yield table(
            ("program", "package and checksum")
            if source.english
            else ("プログラム", "パッケージとチェックサム"),
            rows,
        )
    else:
        yield Paragraph(source.say("None but sysdock.", "sysdock のみ。"))


def _preparation(source: Source) -> Iterator[Block]:
    """The steps in words, and the commands that they ran for the first case."""
    experiment = source.experiment
    if not experiment.prepare:
        yield Paragraph(source.say("Nothing is prepared.", "準備はない。"))
        return
    yield Items(tuple(source.say(step.text, step.text_ja) for step in experiment.prepare), is_numbered=True)
    commands = source.session.fetch("SELECT command FROM experiment_commands WHERE case_id = 1")
    if commands:
        words = source.say("Commands that this ran for the first case:", "最初のケースで実行したコマンド:")
        yield Paragraph(words)
        # A file that was written is a command of several lines.
        yield Code(tuple(line for (command,) in commands for line in command.split("\n")))
    if experiment.parameters:
        parts = ("parameter", "values", "meaning") if source.english else ("パラメーター", "値", "意味")
        rows = []
        for each in experiment.parameters:
            values = ", ".join(f"{value:,}" if isinstance(value, int) else value for value in each.values)
            unit = f" {each.unit}" if each.unit else ""
            rows.append((each.name, f"{values}{unit}", source.say(each.text, each.text_ja)))
        yield table(parts, rows)


def _settings(source: Source) -> Iterator[Block]:
    """Of all scenarios, and of each."""
    experiment = source.experiment
    head = (
        ("scenario", "setting", "value", "by hand")
        if source.english
        else ("シナリオ", "設定", "値", "手で行う場合")
    )
    rows = [
        (source.say("all", "すべて"), key, value, by_hand(key, value))
        for key, value in experiment.settings.items()
    ]
    for scenario in experiment.scenarios:
        for factor in experiment.factors:
            level = experiment.levels(scenario)[factor.name]
            key = factor.setting or f"{{{factor.name}}}"
            how = by_hand(factor.setting, str(level)) if factor.setting else "-"
            rows.append((scenario.name, key, str(level), how))
    if rows:
        yield table(head, rows)
    texts = [f"{each.name}: {source.say(each.text, each.text_ja)}" for each in experiment.scenarios]
    yield Items(tuple(texts))


def _runs(source: Source) -> Iterator[Block]:
    say = source.say
    for each in source.experiment.workloads:
        yield Paragraph(f"**{each.name}**: {say(each.text, each.text_ja)}")
        lines = [f"{shlex.join(words)}    # {say('before', '前')}" for words in each.before]
        lines += [f"{shlex.join(each.run)}    # {say('measured', '測定する')}"]
        lines += [f"{shlex.join(words)}    # {say('must succeed', '成功すること')}" for words in each.check]
        lines += [f"{shlex.join(words)}    # {say('after', '後')}" for words in each.after]
        yield Code(tuple(lines))
        for measure in each.measures:
            words = say(measure.text, measure.text_ja)
            yield Paragraph(f"`{measure.name}`: {words} `{measure.pattern}`")


def _order(source: Source) -> Iterator[Block]:
    experiment, seed = source.experiment, int(source.options["seed"])
    plan = experiment.plan
    looks = ", ".join(map(str, plan.looks))
    yield Paragraph(
        source.say(
            f"In each block every scenario runs once, in an order drawn from the seed {seed}; "
            f"{plan.dry} blocks before do not count. Blocks are judged after {looks}.",
            f"各ブロックですべてのシナリオを 1 回ずつ、シード {seed} から引いた順序で実行する。"
            f"最初の {plan.dry} ブロックは数えない。{looks} ブロック後に判定する。",
        )
    )
    lines = []
    for block in range(1, min(_BLOCKS_SHOWN, plan.looks[-1]) + 1):
        names = " ".join(turn.scenario for turn in planned.measured(experiment, 1, block, seed))
        lines.append(source.say(f"case 1, block {block}: {names}", f"ケース 1、ブロック {block}: {names}"))
    yield Code(tuple(lines))


def _claim(source: Source) -> Block:
    claim, plan = source.experiment.claim, source.experiment.plan
    better = {"lower": "小さいほう", "higher": "大きいほう"}[claim.better]
    return Paragraph(
        source.say(
            f"Fixed before the first run: {claim.primary}, {claim.better} is better; a change below "
            f"{100 * claim.margin:g} % does not matter; level {claim.alpha:g}. Baseline: {plan.baseline}. "
            "Differences within blocks go through the exact signed-rank test.",
            f"最初の測定の前に決めたこと: 指標 {claim.primary} ({better}がよい)、"
            f"{100 * claim.margin:g} % 未満の変化は問わない、有意水準 {claim.alpha:g}。"
            f"基準は {plan.baseline}。"
            "ブロック内の差を正確な符号順位検定で判定する。",
        )
    )
