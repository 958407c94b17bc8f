"""Reads experiments, `knowhow/experiments/<area>/<name>.toml`: a question, a claim, scenarios and workloads.

The words: a *case* is a workload with one value of each parameter. In each *block* of a case every
*scenario* runs once; a scenario is a level of each *factor*. A level replaces `{factor}` in the commands, or
is the value of the setting that the factor names.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sysdock.entries import Entries
from sysdock.errors import UserError, did_you_mean, refusal
from sysdock.library.tables import read_toml
from sysdock.sentences import Prose, fact, translated_keys

Value = int | str
Words = tuple[str, ...]
BETTER = ("lower", "higher")
# The level of a factor with a setting that leaves the setting as it is on the machine.
AS_IT_IS = "default"
# The workload of an experiment without a file: its levels are commands of the shell.
ONE_COMMAND: Words = ("sh", "-c", "{command}")
_TEXTS = (*translated_keys("title"), *translated_keys("question"))
_KEYS = (
    *_TEXTS,
    "analysis",
    "claim",
    "plan",
    "parameters",
    "factors",
    "scenarios",
    "prepare",
    "settings",
    "workloads",
    "reject",
)
_NEEDED = ("title", "question", "scenarios", "workloads")
_PARAMETER_KEYS = ("values", "range", *translated_keys("text"), "unit")
_FACTOR_KEYS = ("levels", "setting", *translated_keys("text"))
_STEP_TEXTS = translated_keys("text")
_WORKLOAD_KEYS = (
    "name",
    *translated_keys("text"),
    "run",
    "before",
    "after",
    "check",
    "timeout_s",
    "primary",
    "measures",
    "unit",
    "units",
    "methods",
)
_MEASURE_KEYS = ("pattern", "better", *translated_keys("text"), "series")
_MEASURE_NEEDED = ("pattern", "better", "text")
_NUMBER = re.compile(r"[0-9]{1,18}")
_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
# Greatest size of a file next to an experiment.
_MOST_BYTES = 1 << 20
_HINT = "docs/reference/knowhow-files.md shows what an experiment holds"


@dataclass(frozen=True)
class Parameter:
    """A value that differs from case to case, or that users may want to change: its `values`.

    `range`: the least and the greatest number that a recording may state instead, without --trust.
    """

    name: str
    values: tuple[Value, ...]
    text: str
    texts: Prose
    unit: str | None = None
    range: tuple[int, int] | None = None

    def declares(self, value: Value) -> bool:
        """Whether the experiment itself says that it may have this value."""
        if value in self.values:
            return True
        return self.range is not None and isinstance(value, int) and self.range[0] <= value <= self.range[1]


@dataclass(frozen=True)
class Factor:
    """A factor in which scenarios differ. `setting`: a level is its value, `default` leaves it unchanged;
    None: a level replaces a placeholder.
    """

    name: str
    levels: tuple[str, ...]
    setting: str | None
    text: str
    texts: Prose


@dataclass(frozen=True)
class Scenario:
    """A level of each factor; what it does not state has the first one."""

    name: str
    levels: dict[str, str]
    text: str
    texts: Prose


@dataclass(frozen=True)
class Step:
    """A preparation that is made once for each case: a function by its name (`do`), or a command (`run`).

    `read`: those of its argument `files` that are in the folder next to the experiment's file.
    """

    do: str | None
    run: Words | None
    arguments: dict[str, Any]
    text: str
    texts: Prose
    read: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measure:
    """A number that the command prints: the first group of `pattern`, in its last match.

    `series`: every match is a value of a series; the number is the mean of its steady part.
    """

    name: str
    pattern: str
    better: str
    text: str
    texts: Prose
    series: bool = False


@dataclass(frozen=True)
class Workload:
    """The measured command, and settings of its runs. `primary`: instead of the claim's.

    `units`: the measure that says how much work a run did, counted in `unit`. `methods`: the file in which
    the run's own profiler says which methods it called.
    """

    name: str
    text: str
    texts: Prose
    run: Words
    before: tuple[Words, ...] = ()
    after: tuple[Words, ...] = ()
    check: tuple[Words, ...] = ()
    timeout_s: float = 600.0
    primary: str | None = None
    measures: tuple[Measure, ...] = ()
    unit: str = "run"
    units: str | None = None
    methods: str | None = None


@dataclass(frozen=True)
class Claim:
    """Properties that are fixed before the first run: metric, direction, margin (a part), level, expected
    effect.
    """

    primary: str = "elapsed_s"
    better: str = "lower"
    margin: float = 0.01
    alpha: float = 0.01
    detect: float = 0.10


@dataclass(frozen=True)
class Plan:
    """Number of blocks: `looks` are the numbers at which results are judged, the last is the greatest.

    `explain_every`: after so many blocks each scenario runs once more under the recorder. 0: never.
    `duet`: the runs of a block run at the same time, on CPUs of their own.
    """

    baseline: str
    looks: tuple[int, ...] = (10, 20, 40)
    pilot: int = 8
    dry: int = 2
    aa: bool = True
    minutes: float = 60.0
    explain_every: int = 0
    duet: bool = False


@dataclass(frozen=True)
class Reject:
    """When a run does not count, whatever it measured. None and False: it counts."""

    swap: bool = True
    throttled: bool = True
    foreign_cpu: float | None = 0.10
    steal: float | None = 0.05


@dataclass(frozen=True)
class Case:
    """A workload with one value of each parameter."""

    case_id: int
    workload: Workload
    values: dict[str, Value]


@dataclass(frozen=True)
class Experiment:
    """A question, and all that it takes to answer it; `analysis` gives the table of results."""

    id: str
    path: Path
    title: str
    titles: Prose
    question: str
    questions: Prose
    analysis: str
    claim: Claim
    plan: Plan
    parameters: tuple[Parameter, ...]
    factors: tuple[Factor, ...]
    scenarios: tuple[Scenario, ...]
    prepare: tuple[Step, ...]
    # Set before each run, whatever its scenario.
    settings: dict[str, str]
    workloads: tuple[Workload, ...]
    reject: Reject = field(default_factory=Reject)

    @property
    def is_of_commands(self) -> bool:
        """Whether it only compares commands of a user, and changes and makes nothing itself."""
        plain = not self.prepare and not self.settings and not any(each.setting for each in self.factors)
        return plain and [each.run for each in self.workloads] == [ONE_COMMAND]

    def cases(self) -> list[Case]:
        """Every workload with every combination of the parameters' values; workloads change first."""
        names = [parameter.name for parameter in self.parameters]
        lists = [parameter.values for parameter in self.parameters]
        combined = itertools.product(itertools.product(*lists), self.workloads)
        return [
            Case(number, workload, dict(zip(names, values, strict=True)))
            for number, (values, workload) in enumerate(combined, 1)
        ]

    def scenario(self, name: str) -> Scenario:
        """The scenario of that name, which is there."""
        return next(each for each in self.scenarios if each.name == name)

    def levels(self, scenario: Scenario) -> dict[str, str]:
        """The level of each factor."""
        return {each.name: scenario.levels.get(each.name, each.levels[0]) for each in self.factors}

    def settings_of(self, scenario: Scenario, names: Mapping[str, object]) -> dict[str, str]:
        """The settings of a run in this scenario; `names` fill the placeholders."""
        levels = self.levels(scenario)
        found = {filled(key, names): filled(value, names) for key, value in self.settings.items()}
        for factor in self.factors:
            if factor.setting and levels[factor.name] != AS_IT_IS:
                found[filled(factor.setting, names)] = levels[factor.name]
        return found

    def with_blocks(self, blocks: int) -> Experiment:
        """The experiment with this many blocks, judged once."""
        return replace(self, plan=replace(self.plan, looks=(blocks,), pilot=min(self.plan.pilot, blocks)))

    def on_busy_machine(self) -> Experiment:
        """The experiment, in which runs count even if others on the CPUs disturbed them."""
        return replace(self, reject=replace(self.reject, foreign_cpu=None, steal=None))

    def explained(self) -> Experiment:
        """The experiment, in which each scenario also runs under the recorder in every block."""
        return replace(self, plan=replace(self.plan, explain_every=self.plan.explain_every or 1))

    def undeclared(self, chosen: Experiment) -> list[tuple[str, Value]]:
        """The values in `chosen`, this experiment with other values, that it does not itself declare."""
        pairs = zip(self.parameters, chosen.parameters, strict=True)
        return [
            (own.name, value) for own, other in pairs for value in other.values if not own.declares(value)
        ]

    def with_values(self, name: str, texts: Sequence[str]) -> Experiment:
        """The experiment with other values (as text) of a parameter; UserError if there is none of that
        name.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        if name not in known:
            hint = did_you_mean(name, known, f"the parameters are {', '.join(known)}")
            raise UserError(f"`{self.id}` has no parameter `{name}`", hint, "--set")
        of_numbers = isinstance(known[name].values[0], int)
        if wrong := [text for text in texts if of_numbers and not _NUMBER.fullmatch(text)]:
            raise UserError(f"{name}: `{wrong[0]}` is not a number", f"write `{name}=4096,16384`", "--set")
        values = tuple(int(text) if of_numbers else text for text in texts)
        changed = replace(known[name], values=values)
        return replace(self, parameters=tuple(changed if p.name == name else p for p in self.parameters))


def filled(text: str, names: Mapping[str, object]) -> str:
    """`text` with the value of each `{name}` that is known; others stay; `{{name}}` becomes `{name}`."""

    def value(found: re.Match[str]) -> str:
        return str(names[found[1]]) if found[1] in names else found[0]

    parts = re.split(r"(\{\{|\}\})", text)
    return "".join({"{{": "{", "}}": "}"}.get(part) or _PLACEHOLDER.sub(value, part) for part in parts)


def placeholders(text: str) -> set[str]:
    """The names in `{name}`."""
    return set(_PLACEHOLDER.findall(text.replace("{{", "").replace("}}", "")))


def parse_experiment(path: Path, id_: str) -> Experiment:
    """Reads one experiment; a UserError names the file and what is wrong in it."""
    return _Parser(path, _HINT).experiment(path, id_)


class _Parser(Entries):
    """Reads the parts of one file."""

    def experiment(self, path: Path, id_: str) -> Experiment:
        data = read_toml(path)
        self.closed("the experiment", data, _KEYS, _NEEDED)
        (title, titles), (question, questions) = self.both(data, "title"), self.both(data, "question")
        factors = tuple(self.factor(name, entry) for name, entry in self.tables(data, "factors"))
        scenarios = tuple(
            self.scenario(name, entry, factors) for name, entry in self.tables(data, "scenarios")
        )
        if not scenarios:
            raise self.wrong("it has no scenarios", "write [scenarios.NAME]")
        settings = data.get("settings", {})
        if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
            raise self.wrong("`settings` is not a table of texts")
        return Experiment(
            id=id_,
            path=path,
            title=title,
            titles=titles,
            question=question,
            questions=questions,
            analysis=self.text("analysis", data.get("analysis", "experiment/verdicts")),
            claim=self.claim(data.get("claim", {})),
            plan=self.plan(data.get("plan", {}), scenarios),
            parameters=tuple(self.parameter(name, entry) for name, entry in self.tables(data, "parameters")),
            factors=factors,
            scenarios=scenarios,
            prepare=tuple(self.step(entry) for entry in self.entries(data, "prepare")),
            settings=dict(settings),
            workloads=self.workloads(self.entries(data, "workloads")),
            reject=self.reject(data.get("reject", {})),
        )

    def claim(self, data: Any) -> Claim:
        keys = ("primary", "better", "margin_percent", "alpha", "detect_percent")
        self.closed("the claim", data, keys)
        return Claim(
            primary=self.text("primary", data.get("primary", "elapsed_s")),
            better=self.one_of("better", data.get("better", "lower"), BETTER),
            margin=self.number("margin_percent", data.get("margin_percent", 1), 0, 100) / 100,
            alpha=self.number("alpha", data.get("alpha", 0.01), 1e-6, 0.2),
            detect=self.number("detect_percent", data.get("detect_percent", 10), 0.01, 1000) / 100,
        )

    def plan(self, data: Any, scenarios: tuple[Scenario, ...]) -> Plan:
        keys = ("baseline", "blocks", "looks", "pilot", "dry", "aa", "minutes", "explain_every", "duet")
        self.closed("the plan", data, keys)
        names = [each.name for each in scenarios]
        looks = data.get("looks", [data["blocks"]] if "blocks" in data else [10, 20, 40])
        if not isinstance(looks, list) or not looks:
            raise self.wrong("`looks` is not a list of numbers", "looks = [10, 20, 40]")
        whole = [int(self.number("looks", look, 1, 1000)) for look in looks]
        if whole != sorted(set(whole)):
            raise self.wrong("`looks` do not grow", "looks = [10, 20, 40]")
        return Plan(
            baseline=self.one_of("baseline", data.get("baseline", names[0]), names),
            looks=tuple(whole),
            pilot=int(self.number("pilot", data.get("pilot", min(8, whole[-1])), 1, whole[-1])),
            dry=int(self.number("dry", data.get("dry", 2), 0, 10)),
            aa=self.flag("aa", data.get("aa", True)),
            minutes=self.number("minutes", data.get("minutes", 60), 0.1, 100_000),
            explain_every=int(self.number("explain_every", data.get("explain_every", 0), 0, 1000)),
            duet=self.flag("duet", data.get("duet", False)),
        )

    def reject(self, data: Any) -> Reject:
        self.closed("reject", data, ("swap", "throttled", "foreign_cpu_percent", "steal_percent"))
        parts = {}
        for key, default in (("foreign_cpu_percent", 10), ("steal_percent", 5)):
            percent = data.get(key, default)
            parts[key] = None if percent is False else self.number(key, percent, 0, 100) / 100
        return Reject(
            swap=self.flag("swap", data.get("swap", True)),
            throttled=self.flag("throttled", data.get("throttled", True)),
            foreign_cpu=parts["foreign_cpu_percent"],
            steal=parts["steal_percent"],
        )

    def parameter(self, name: str, entry: Any) -> Parameter:
        self.closed(f"parameter {name}", entry, _PARAMETER_KEYS, ("values", "text"))
        values = entry["values"]
        kinds = {type(value) for value in values} if isinstance(values, list) else set()
        if kinds not in ({int}, {str}):
            raise self.wrong(f"parameter {name} has no list of numbers or of texts", "values = [4096]")
        limits = self.range_of(name, entry["range"], kinds) if "range" in entry else None
        return Parameter(name, tuple(values), *self.both(entry), entry.get("unit"), limits)

    def range_of(self, name: str, value: Any, kinds: set[type]) -> tuple[int, int]:
        is_pair = isinstance(value, list) and len(value) == 2 and {type(each) for each in value} == {int}
        if kinds != {int} or not is_pair or not 0 <= value[0] <= value[1]:
            raise refusal(fact("experiment/wrong_range", name=name), place=str(self.path))
        return value[0], value[1]

    def factor(self, name: str, entry: Any) -> Factor:
        self.closed(f"factor {name}", entry, _FACTOR_KEYS, ("levels", "text"))
        levels = entry["levels"]
        if not isinstance(levels, list) or not levels or not all(isinstance(v, str) for v in levels):
            raise self.wrong(f"factor {name} has no list of texts", 'levels = ["noatime", "relatime"]')
        setting = entry.get("setting")
        return Factor(name, tuple(levels), setting and self.text("setting", setting), *self.both(entry))

    def scenario(self, name: str, entry: Any, factors: tuple[Factor, ...]) -> Scenario:
        known = {factor.name: factor for factor in factors}
        self.closed(f"scenario {name}", entry, (*_STEP_TEXTS, *known), ("text",))
        levels = {key: value for key, value in entry.items() if key not in _STEP_TEXTS}
        for key, value in levels.items():
            if value not in known[key].levels:
                fact = f"scenario {name}: `{value}` is not a level of {key}"
                raise self.wrong(fact, f"its levels are {', '.join(known[key].levels)}")
        return Scenario(name, levels, *self.both(entry))

    def step(self, entry: Any) -> Step:
        self.closed("a step of `prepare`", entry, None, ("text",))
        if ("do" in entry) == ("run" in entry):
            raise self.wrong(
                "a step of `prepare` has either `do` or `run`", 'run = ["mkdir", "{scratch}/data"]'
            )
        do = self.text("do", entry["do"]) if "do" in entry else None
        run = self.words("run", entry["run"]) if "run" in entry else None
        own = (*_STEP_TEXTS, "do", "run", "read")
        arguments = {key: value for key, value in entry.items() if key not in own}
        read = self.texts("read", entry.get("read", []))
        if read:
            texts = {name: self.file_of(name) for name in read}
            arguments["files"] = {**texts, **dict(self.tables(entry, "files"))}
        if run and arguments:
            raise self.wrong(f"a step with `run` has the unknown key `{next(iter(arguments))}`")
        return Step(do, run, arguments, *self.both(entry), read)

    def file_of(self, name: str) -> str:
        """The text of a file in the folder next to this file that has its name, without links.

        A recording of a stranger has such a folder too.
        """
        assert self.path
        folder = self.path.with_suffix("")
        if name != Path(name).name or folder.is_symlink():
            raise self.wrong(f"`{name}` is not a file of the folder {folder.name}/ next to this one")
        try:
            with open(os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise self.wrong(f"`{name}` is not a plain file")
                content = file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise self.wrong(f"`{folder.name}/{name}` cannot be read: {error.strerror}") from None
        if len(content) > _MOST_BYTES:
            raise self.wrong(f"`{name}` is larger than 1 MiB")
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise self.wrong(f"`{name}` is not UTF-8 text") from None

    def workloads(self, entries: list[Any]) -> tuple[Workload, ...]:
        found = tuple(self.workload(entry) for entry in entries)
        names = [each.name for each in found]
        if not found or len(set(names)) != len(names):
            raise self.wrong("it has no workloads, or two of one name", "write [[workloads]] with a name")
        return found

    def workload(self, entry: Any) -> Workload:
        self.closed("a workload", entry, _WORKLOAD_KEYS, ("name", "text", "run"))
        name = self.text("name", entry["name"])
        lists = {key: self.commands(key, entry.get(key, [])) for key in ("before", "after", "check")}
        measures = entry.get("measures", {})
        if not isinstance(measures, dict):
            raise self.wrong(f"workload {name}: `measures` is not a table", "write [workloads.measures.tps]")
        return Workload(
            name,
            *self.both(entry),
            run=self.words("run", entry["run"]),
            timeout_s=self.number("timeout_s", entry.get("timeout_s", 600), 0.001, 1_000_000),
            primary=self.text("primary", entry["primary"]) if "primary" in entry else None,
            measures=tuple(self.measure(key, value) for key, value in measures.items()),
            unit=self.text("unit", entry.get("unit", "run")),
            units=self.text("units", entry["units"]) if "units" in entry else None,
            methods=self.text("methods", entry["methods"], is_prose=False) if "methods" in entry else None,
            before=lists["before"],
            after=lists["after"],
            check=lists["check"],
        )

    def measure(self, name: str, entry: Any) -> Measure:
        self.closed(f"measure {name}", entry, _MEASURE_KEYS, _MEASURE_NEEDED)
        series = self.flag("series", entry.get("series", False))
        pattern = self.text("pattern", entry["pattern"], is_prose=False)
        if self.pattern(f"measure {name}", pattern).groups != 1:
            raise self.wrong(f"measure {name}: `pattern` has not one group", r"pattern = 'tps = ([0-9.]+)'")
        better = self.one_of("better", entry["better"], BETTER)
        return Measure(name, pattern, better, *self.both(entry), series)

    def commands(self, key: str, value: Any) -> tuple[Words, ...]:
        if not isinstance(value, list):
            raise self.wrong(f"`{key}` is not a list of commands", f'{key} = [["sync"]]')
        return tuple(self.words(key, each) for each in value)

    def words(self, key: str, value: Any) -> Words:
        if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
            raise self.wrong(
                f"`{key}` is not a list of words", f'{key} = ["dd", "if=/dev/zero", "of={{data}}/big"]'
            )
        return tuple(value)
