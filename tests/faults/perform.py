"""Performing one case, from an empty folder to the verdict."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from deployments.demo.script import Script
from deployments.server import started
from lifecycle.prompts import OUR_MARKERS
from lifecycle.settings import Settings
from lifecycle.value import Value
from tests.agents.dictated_model import DictatedModel
from tests.agents.hermes_stage import HermesStage
from tests.agents.stage import Stage
from tests.faults.case import Case
from tests.faults.play import Play, seconds_since, staged
from tests.faults.verdict import Verdict, judged
from tests.ports import free_port

PATIENT = {
    "delivery": 15,
    "handoff_answer": 60,
    "idle_before_stop": 30,
    "exit": 15,
    "term": 5,
    "ready": 90,
    "resume_answer": 60,
}
"""Deadlines in seconds for an agent of some hundred megabytes on a shared machine."""

MISSION = "Mission: keep the seed ledger of this folder, ledger.txt, one line an entry. Begin with entry 1."
"""The first order of a session is quoted in the handoffs of the scripted model."""

_PREFECT = {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_CLIENT_MAX_RETRIES": "10"}


class Result(Value):
    """A case and what it came to; the line of `faults.json`."""

    id: str
    fault: str
    phase: str
    end: str
    reason: str
    seconds: float
    source: str
    is_right: bool
    wrongs: dict[str, str] = {}


@contextmanager
def prefect_server(home: Path) -> Iterator[str]:
    """A server for many cases; this process and what it forks find it through the environment."""
    before = {name: value for name, value in os.environ.items() if name.startswith(("PREFECT_", "DO_NOT_TRACK"))}
    settings = Settings(home=home, hermes_root=home, memory_root=home)
    with started(settings, port=free_port("127.0.0.1"), password=None) as running:
        os.environ.update({**_PREFECT, "PREFECT_HOME": str(home / "prefect"), "PREFECT_API_URL": running.api})
        try:
            yield running.api
        finally:
            for name in [name for name in os.environ if name.startswith(("PREFECT_", "DO_NOT_TRACK"))]:
                del os.environ[name]
            os.environ.update(before)


def perform(case: Case, hermes: Path | None = None, keep_logs: Path | None = None) -> Result:
    """Play *case* and judge it."""
    began = time.monotonic()
    with ExitStack() as stack:
        stage = _stage(case, hermes, stack)
        within = 90 if case.face else 60
        deadlines = PATIENT if case.face else None
        play = stack.enter_context(staged(stage, deadlines=deadlines, within=within, **case.manners))
        play.expect, play.strike = case.expect(), case.strike
        play.set_up(case.config, MISSION if case.face else "", **case.worker)
        if case.later_manners:
            stage.behave(**case.later_manners)
        case.before(play)
        case.play(play)
        verdict = judged(play)
        result = _result(case, verdict, seconds_since(began))
        if keep_logs is not None and not result.is_right:
            _keep(play, keep_logs / f"{case.id}.log", result)
    return result


def _stage(case: Case, hermes: Path | None, stack: ExitStack) -> Stage:
    if case.face is None:
        return Stage()
    assert hermes is not None, "this case needs the real Hermes Agent"
    model = stack.enter_context(DictatedModel(Script(**case.model)))
    return HermesStage(hermes, model, case.face)


def _result(case: Case, verdict: Verdict, seconds: float) -> Result:
    return Result(
        id=case.id,
        fault=case.fault,
        phase=case.phase,
        end=verdict.end,
        reason=verdict.reason,
        seconds=seconds,
        source=case.source,
        is_right=not verdict.wrongs and bool({verdict.end, verdict.ending} & set(case.ends)),
        wrongs=verdict.wrongs,
    )


def broken(case: Case, words: str, seconds: float) -> Result:
    """A case that could not be played to its end counts as a silent one."""
    return Result(
        id=case.id,
        fault=case.fault,
        phase=case.phase,
        end="silent",
        reason=f"not played: {words}"[:500],
        seconds=seconds,
        source=case.source,
        is_right=False,
        wrongs={"silent": "not played to its end"},
    )


def _keep(play: Play, path: Path, result: Result) -> None:
    """What one needs to understand a case that went wrong."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if play.log.exists():
        shutil.copy(play.log, path)
    renewal = play.renewal
    texts = [text.splitlines()[0][:80] for text in play.texts() if text.startswith(OUR_MARKERS)]
    with path.open("a") as log:
        log.write(f"\n=== {result.model_dump_json(indent=1)}\n=== exit {play.exit_code}; our texts: {texts}\n")
        log.write(f"=== {renewal.model_dump_json(indent=1) if renewal else 'no renewal'}\n")
        log.write(f"=== screen\n{play.screen_of(f'={play.stage.session}:')}\n")
