"""The procedure: what somebody does who repeats the experiment, with sysdock or by hand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from sysdock.experiment import plan as planned
from sysdock.experiment.documents.blocks import Block, Code, Heading, Items, Paragraph, table
from sysdock.experiment.documents.by_hand import by_hand
from sysdock.experiment.documents.source import Source
from sysdock.sentences import fact

_BLOCKS_SHOWN = 3
_NOT_AUTOMATED = (
    fact("documents/what_other_programs_machine"),
    fact("documents/settings_firmware_host_virtual"),
    fact("documents/installing_packages"),
)


def procedure(source: Source) -> list[Block]:
    """Packages, commands in order, settings with how they are made by hand, order of runs, judgement."""
    say = source.say
    blocks: list[Block] = [
        Heading(1, say(fact("documents/procedure", title=source.title))),
        *source.incomplete(),
        Heading(2, say(fact("documents/sysdock"))),
        Paragraph(
            say(
                fact("documents/first_command_one_made"),
            )
        ),
        Code((source.options["command"], "sysdock experiment replay REC -o AGAIN")),
        Heading(2, say(fact("documents/n_1_programs"))),
        *_programs(source),
        Heading(2, say(fact("documents/n_2_preparation"))),
        *_preparation(source),
        Heading(2, say(fact("documents/n_3_before_each_run"))),
        *_settings(source),
        Heading(2, say(fact("documents/n_4_run"))),
        *_runs(source),
        Heading(2, say(fact("documents/n_5_order_runs"))),
        *_order(source),
        Heading(2, say(fact("documents/n_6_judgement"))),
        _claim(source),
        Heading(2, say(fact("documents/what_not_automated"))),
    ]
    return [*blocks, Items(tuple(say(words) for words in _NOT_AUTOMATED))]


def _programs(source: Source) -> Iterator[Block]:
    rows = [(name, value) for section, name, value, _ in source.environment() if section == "program"]
    if rows:
        yield table(
            source.head("program", "package"),
            rows,
        )
    else:
        yield Paragraph(source.say(fact("documents/none_but_sysdock")))


def _preparation(source: Source) -> Iterator[Block]:
    """The steps in words, and the commands that they ran for the first case."""
    experiment = source.experiment
    if not experiment.prepare:
        yield Paragraph(source.say(fact("documents/nothing_prepared")))
        return
    yield Items(tuple(source.say(step.texts) for step in experiment.prepare), is_numbered=True)
    commands = source.session.fetch("SELECT command FROM experiment_commands WHERE case_id = 1")
    if commands:
        words = source.say(fact("documents/commands_ran_first_case"))
        yield Paragraph(words)
        # A file that was written is a command of several lines.
        yield Code(tuple(line for (command,) in commands for line in command.split("\n")))
    if experiment.parameters:
        parts = source.head("parameter", "values", "meaning")
        rows = []
        for each in experiment.parameters:
            values = ", ".join(f"{value:,}" if isinstance(value, int) else value for value in each.values)
            unit = f" {each.unit}" if each.unit else ""
            rows.append((each.name, f"{values}{unit}", source.say(each.texts)))
        yield table(parts, rows)


def _settings(source: Source) -> Iterator[Block]:
    """The settings of all scenarios, and of each one."""
    experiment = source.experiment
    head = source.head("scenario", "setting", "value", "by_hand")
    rows = [
        (source.say(fact("documents/all")), key, value, by_hand(key, value))
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
    texts = [f"{each.name}: {source.say(each.texts)}" for each in experiment.scenarios]
    yield Items(tuple(texts))


def _runs(source: Source) -> Iterator[Block]:
    say = source.say
    for each in source.experiment.workloads:
        yield Paragraph(f"**{each.name}**: {say(each.texts)}")
        lines = [f"{shlex.join(words)}    # {say(fact('documents/before'))}" for words in each.before]
        lines += [f"{shlex.join(each.run)}    # {say(fact('documents/measured'))}"]
        lines += [f"{shlex.join(words)}    # {say(fact('documents/must_succeed'))}" for words in each.check]
        lines += [f"{shlex.join(words)}    # {say(fact('documents/after'))}" for words in each.after]
        yield Code(tuple(lines))
        for measure in each.measures:
            words = say(measure.texts)
            yield Paragraph(f"`{measure.name}`: {words} `{measure.pattern}`")


def _order(source: Source) -> Iterator[Block]:
    experiment, seed = source.experiment, int(source.options["seed"])
    plan = experiment.plan
    looks = ", ".join(map(str, plan.looks))
    yield Paragraph(
        source.say(
            fact("documents/each_block_every_scenario", seed=seed, dry=plan.dry, looks=looks),
        )
    )
    lines = []
    for block in range(1, min(_BLOCKS_SHOWN, plan.looks[-1]) + 1):
        names = " ".join(turn.scenario for turn in planned.measured(experiment, 1, block, seed))
        lines.append(source.say(fact("documents/case_1_block", block=block, names=names)))
    yield Code(tuple(lines))


def _claim(source: Source) -> Block:
    claim, plan = source.experiment.claim, source.experiment.plan
    better = fact(f"documents/better_{claim.better}")
    return Paragraph(
        source.say(
            fact(
                "documents/fixed_before_first_run",
                primary=claim.primary,
                better=better,
                margin=100 * claim.margin,
                alpha=claim.alpha,
                baseline=plan.baseline,
            ),
        )
    )
