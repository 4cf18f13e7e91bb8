from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle.agents.kinds import agent_of_kind
from lifecycle.errors import ConfigurationError, Misuse
from lifecycle.settings import Settings, load_settings

Load = Callable[..., Settings]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "afresh"
    folder.mkdir()
    return folder


@pytest.fixture
def load(tmp_path: Path, home: Path) -> Load:
    """Write *text* as the home's configuration and load it in an environment of its own."""

    def loaded(text: str | None = None, *, explicit: Path | None = None, **environ: str) -> Settings:
        if text is not None:
            write(home / "afresh.toml", text)
        return load_settings(explicit, {"HOME": str(tmp_path), "AFRESH_HOME": str(home), **environ})

    return loaded


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def refusal(load: Load, text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        load(text)
    assert isinstance(refused.value, Misuse)
    return str(refused.value)


# Which file


def test_without_a_file_the_defaults_hold_and_say_that_there_is_none(load: Load, home: Path, tmp_path: Path) -> None:
    settings = load()
    assert (settings.path, settings.home) == (None, home)
    assert settings.hermes_root == tmp_path / ".hermes"
    assert settings.memory_root == tmp_path / "hermes-workspace"
    assert settings.ledger_path == home / "ledger.db"
    assert not settings.automatic
    assert settings.max_parallel_renewals == 2


def test_the_default_home_is_in_the_users_own(tmp_path: Path) -> None:
    assert load_settings(None, {"HOME": str(tmp_path)}).home == tmp_path / ".afresh"


def test_the_file_in_the_home_is_found(load: Load, home: Path) -> None:
    assert load("automatic = true").path == home / "afresh.toml"


def test_a_named_file_goes_before_the_environment_and_that_before_the_home(load: Load, tmp_path: Path) -> None:
    named = write(tmp_path / "named.toml", "max_parallel_renewals = 7")
    other = write(tmp_path / "other.toml", "max_parallel_renewals = 5")
    assert load("max_parallel_renewals = 3").max_parallel_renewals == 3
    assert load(AFRESH_CONFIG=str(other)).max_parallel_renewals == 5
    assert load(explicit=named, AFRESH_CONFIG=str(other)).max_parallel_renewals == 7


def test_a_file_in_the_working_folder_is_not_read(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "afresh.toml", "automatic = true")
    monkeypatch.chdir(tmp_path)
    assert load().path is None


def test_a_named_file_that_is_missing_is_an_error_that_names_it(load: Load, tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    with pytest.raises(ConfigurationError, match=str(missing)):
        load(explicit=missing)
    with pytest.raises(ConfigurationError, match=str(missing)):
        load(AFRESH_CONFIG=str(missing))


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_refused(load: Load, home: Path, mode: int) -> None:
    write(home / "afresh.toml", "automatic = true", mode)
    with pytest.raises(ConfigurationError, match="others can write it"):
        load()


def test_a_file_that_others_can_read_is_fine(load: Load, home: Path) -> None:
    write(home / "afresh.toml", "automatic = true", 0o644)
    assert load().automatic


def test_a_file_that_is_no_text_is_an_error_that_names_it(load: Load, home: Path) -> None:
    (home / "afresh.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load()


# What is in it


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colour = 1", "unknown key 'colour'"),
        ("home = '/tmp'", "unknown key 'home'"),
        ("path = '/tmp'", "unknown key 'path'"),
        ("[policy]\nsofd = 1", "unknown key 'policy.sofd'"),
        ("[workers.builder]\ncolour = 1", "unknown key 'workers.builder.colour'"),
        ("[workers.builder.policy]\nsofd = 1", "unknown key 'sofd'"),
        ("[models.'gpt-*']\nsofd = 1", "unknown key 'sofd'"),
        ("[policy]\nsoft = 'many'", "policy.soft"),
        ("[policy]\nsoft = 400_000", "limits must rise: soft = 400,000 is not below handoff = 400,000"),
        ("[policy]\nhandoff = 600_000", "limits must rise: handoff = 600,000 is not below hard = 500,000"),
        (
            '[workers.builder]\ncommand = "hermes -c"',
            'workers.builder.command: must be a list of words, e.g. ["hermes", "-c"]',
        ),
        ("[notify]\ncommand = 3", 'notify.command: must be a list of words, e.g. ["hermes", "chat"]'),
        ("pass_env = 'LANG TZ'", 'pass_env: must be a list of words, e.g. ["LANG", "TZ"]'),
        ("[workers.builder.policy]\nhard = 1", "limits must rise"),
        ("[models.'gpt-*']\nhard = 1", "limits must rise"),
        ("max_parallel_renewals = 0", "max_parallel_renewals"),
        ("[server]\nport = 70_000", "server.port"),
        ("automatic = ", "not valid TOML"),
        ("workers = 3", "workers"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(load: Load, home: Path, text: str, says: str) -> None:
    message = refusal(load, text)
    assert message.startswith(str(home / "afresh.toml"))
    assert says in message
    assert "\n" not in message


def test_a_mistake_in_a_workers_policy_names_the_worker(load: Load) -> None:
    assert "builder" in refusal(load, "[workers.builder.policy]\nsofd = 1")


def test_a_worker_table_whose_name_is_no_worker_id_is_refused(load: Load) -> None:  # W-12
    with pytest.raises(Misuse, match="not a worker id"):
        load("[workers.'../etc']\nautomatic = true")


@pytest.mark.parametrize("session", ["a.b", "a:b", "=a", "$1", "%1", "@1", "", "a\\tb"])
def test_a_session_name_that_tmux_would_change_or_misread_is_refused(load: Load, session: str) -> None:
    refusal(load, f'[workers.builder]\nsession = "{session}"')


def test_everything_about_a_worker_can_be_said_in_its_table(load: Load, tmp_path: Path) -> None:
    settings = load("""
        [workers.alice]
        profile = "~/profiles/alice"
        session = "alice-main"
        socket = "work"
        cwd = "~/src"
        command = ["hermes", "-p", "alice", "chat", "--cli"]
        automatic = true
    """)
    alice = settings.workers["alice"]
    assert alice.profile == tmp_path / "profiles" / "alice"
    assert alice.cwd == tmp_path / "src"
    assert alice.command == ("hermes", "-p", "alice", "chat", "--cli")
    assert (alice.session, alice.socket, alice.automatic) == ("alice-main", "work", True)


def test_durations_are_read_as_seconds_or_as_iso_text(load: Load) -> None:
    settings = load('sweep_interval = 60\n[deadlines]\nready = "PT3M"')
    assert settings.sweep_interval == timedelta(minutes=1)
    assert settings.deadlines.ready == timedelta(minutes=3)


def test_what_is_loaded_cannot_be_changed(load: Load) -> None:
    settings = load()
    with pytest.raises(ValueError, match="frozen"):
        settings.automatic = True  # type: ignore[misc]


# The policy in force


LAYERS = """
[policy]
soft = 100_000
[models."gpt-*"]
handoff = 200_000
[models."*-mini"]
handoff = 150_000
[workers.alice.policy]
hard = 450_000
"""


def test_the_workers_own_policy_goes_before_its_models_and_that_before_the_general_one(load: Load) -> None:
    settings = load(LAYERS)
    general, model = settings.policy_of("bob"), settings.policy_of("bob", "gpt-9")
    own = settings.policy_of("alice", "gpt-9-mini")
    assert (general.soft, general.handoff, general.hard) == (100_000, 400_000, 500_000)
    assert (model.soft, model.handoff) == (100_000, 200_000)
    assert (own.soft, own.handoff, own.hard) == (100_000, 150_000, 450_000)


def test_layers_that_clash_only_together_are_an_error_that_names_the_worker(load: Load) -> None:
    settings = load("[models.tiny]\nhandoff = 260_000\n[workers.alice.policy]\nsoft = 300_000")
    with pytest.raises(ConfigurationError, match="worker alice: limits must rise"):
        settings.policy_of("alice", "tiny")


# Roots


@pytest.mark.parametrize("where", ["", "profiles/alice", "profiles/alice/home"])
def test_the_root_is_found_also_from_inside_a_profile(load: Load, tmp_path: Path, where: str) -> None:
    assert load(HERMES_HOME=str(tmp_path / "hermes" / where)).hermes_root == tmp_path / "hermes"


def test_hermes_home_goes_before_claude_home(load: Load, tmp_path: Path) -> None:
    claude, hermes = str(tmp_path / "claude"), str(tmp_path / "hermes")
    assert load(CLAUDE_HOME=claude).hermes_root == tmp_path / "claude"
    assert load(CLAUDE_HOME=claude, HERMES_HOME=hermes).hermes_root == tmp_path / "hermes"


def test_the_file_goes_before_the_environment(load: Load, tmp_path: Path) -> None:
    settings = load(
        'hermes_root = "~/mine"\nsocket = "file"',
        HERMES_HOME=str(tmp_path / "theirs"),
        AFRESH_TMUX_SOCKET="environment",
    )
    assert settings.hermes_root == tmp_path / "mine"
    assert settings.socket == "file"


def test_the_memory_root_and_the_socket_come_from_the_environment(load: Load, tmp_path: Path) -> None:
    settings = load(HERMES_SWARM_MEMORY_ROOT=str(tmp_path / "memory"), AFRESH_TMUX_SOCKET="swarm")
    assert (settings.memory_root, settings.socket) == (tmp_path / "memory", "swarm")


def test_an_unknown_kind_of_agent_is_told_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="unknown kind of agent 'codex'; known: hermes"):
        agent_of_kind("codex")
