from __future__ import annotations

import string

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lifecycle.checkpoint import Checkpoint, State, parse_checkpoint, render_checkpoint
from lifecycle.errors import CheckpointRefused
from tests.lifecycle.checkpoint_cases import REQUEST, SHAPES, TEMPLATE, VALUES, block

REASONS = {
    "checkpoint_missing",
    "checkpoint_incomplete",
    "checkpoint_state_unknown",
    "checkpoint_template",
    "checkpoint_next_action",
    "checkpoint_wrong_worker",
    "checkpoint_wrong_renewal",
    "checkpoint_fenced_example",
}
WORDS = st.text(string.ascii_letters + string.digits + " .,;/()=äß中", min_size=1, max_size=60).map(
    lambda text: f"w {text}".strip()
)
PROSE = st.lists(st.one_of(WORDS, st.just("")), max_size=6).map("\n".join)
CHECKPOINTS = st.builds(
    Checkpoint,
    state=st.sampled_from(State),
    files_changed=WORDS,
    commands_run=WORDS,
    result=WORDS,
    blocker=WORDS,
    next_action=WORDS.map(lambda text: f"fix {text}"),
    renewal_id=st.one_of(st.none(), st.from_regex(r"r-[0-9a-f]{4,12}", fullmatch=True)),
)
ONE_LINE = [name for name in SHAPES if not {"above", "table", "blank"} & {*name.split()}]
MARKS = [
    *(": ", "：", "|", "\n", "\r\n", "\n\n", "```", "~~~~", "> ", "- ", "1. ", "# ", "**", "_", "  ", "{", '"', "\\"),
    *("\x1b[1m", "\x00", "\u200b", "\ud800", "log", "(x)", "HANDOFF", "DONE", "none", "STATE: ", "NEXT_ACTION: "),
    *("RENEWAL_ID: r-1\n", "WORKER: bob\n", "\n# Handoff — bob — m\n", "\n---\n", "\n```bash\n", "\n```\n"),
]
FRAGMENTS = st.one_of(
    st.sampled_from(MARKS),
    st.sampled_from([block(), TEMPLATE, REQUEST]).map("{}\n".format),
    st.builds(
        lambda shape, label: SHAPES[shape](label, VALUES[label]) + "\n",
        st.sampled_from(sorted(SHAPES)),
        st.sampled_from(sorted(VALUES)),
    ),
)


def lines(checkpoint: Checkpoint) -> dict[str, str]:
    fields = checkpoint.model_dump(exclude={"note", "renewal_id"})
    return {label.upper(): str(value) for label, value in fields.items()}


@settings(deadline=None)
@given(CHECKPOINTS, PROSE, PROSE, st.sampled_from(sorted(SHAPES)))
def test_a_checkpoint_survives_prose_around_it_and_decoration(
    checkpoint: Checkpoint, before: str, after: str, shape: str
) -> None:
    text = f"{before}\n\n{block(SHAPES[shape], **lines(checkpoint))}\n\n{after}"

    read = parse_checkpoint(text, purpose="handoff")

    assert read == checkpoint.model_copy(update={"renewal_id": None})


@settings(deadline=None)
@given(CHECKPOINTS, st.permutations(list(VALUES)), st.lists(st.sampled_from(ONE_LINE), min_size=6, max_size=6))
def test_a_checkpoint_survives_any_order_with_every_line_decorated_in_its_own_way(
    checkpoint: Checkpoint, order: list[str], shapes: list[str]
) -> None:
    values = lines(checkpoint)
    text = "\n".join(SHAPES[shape](label, values[label]) for label, shape in zip(order, shapes, strict=True))

    read = parse_checkpoint(text)

    assert read.state is checkpoint.state
    assert read.renewal_id is None


@settings(deadline=None)
@given(CHECKPOINTS)
def test_rendering_and_reading_are_inverse(checkpoint: Checkpoint) -> None:
    assert parse_checkpoint(render_checkpoint(checkpoint), purpose="handoff") == checkpoint


@settings(deadline=None)
@given(CHECKPOINTS, st.lists(CHECKPOINTS, max_size=3), st.sets(st.sampled_from(list(VALUES)), min_size=1))
def test_the_last_complete_block_counts_and_none_is_mixed(
    last: Checkpoint, earlier: list[Checkpoint], lacking: set[str]
) -> None:
    whole = [render_checkpoint(checkpoint) for checkpoint in [*earlier, last]]
    values = lines(last.model_copy(update={"result": "of the half"}))
    half = block(SHAPES["plain"], order=[label for label in VALUES if label not in lacking], **values)

    assert parse_checkpoint("\n\n".join([*whole, half])) == last
    assert parse_checkpoint("\n\n".join([half, *whole])) == last


@settings(deadline=None)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    check(text)


@settings(deadline=None)
@given(st.lists(FRAGMENTS, max_size=60).map("".join))
@example("[" * 100_000)
@example('"\\ud800STATE: DONE"')
@example("\ud800" + block())
@example('{"n": ' + "9" * 10_000 + "}")
def test_any_mixture_of_labels_and_marks_is_read_or_refused(text: str) -> None:
    check(text)


def check(text: str) -> None:
    read = read_or_refused(text)
    if isinstance(read, CheckpointRefused):
        assert read.reason in REASONS
        assert read.detail.isprintable()
        assert read.reason == "checkpoint_incomplete" or not read.missing
    else:
        assert read.renewal_id in (None, "r-1")
        assert read.state in State


def read_or_refused(text: str) -> Checkpoint | CheckpointRefused:
    try:
        return parse_checkpoint(text, worker_id="alice", renewal_id="r-1", purpose="handoff")
    except CheckpointRefused as refused:
        return refused
