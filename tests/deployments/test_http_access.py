"""Who may ask the HTTP service, how often and how much: always a token; from a browser, proof that it is the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deployments.http.access import SESSION_FOR, Access, kept_token, token_path
from deployments.http.guard import LONGEST_BODY
from deployments.http.pages import FILES
from deployments.http.rates import MOST_ADDRESSES, Rate
from lifecycle.errors import ConfigurationError
from lifecycle.settings import Settings, load_settings
from tests.deployments.api import PATH, Api, serving, with_ports
from tests.deployments.conftest import Operator


@pytest.fixture
def settings(afresh: Operator) -> Settings:
    assert afresh.toml.exists()
    return load_settings()


@pytest.fixture
def api(afresh: Operator) -> Iterator[Api]:
    with_ports(afresh)
    with serving() as api:
        yield api


@pytest.fixture
def page(api: Api) -> httpx.Client:
    """A browser that has logged in, as far as cookies go."""
    answer = api.stranger.post("/login", data={"token": api.token})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    return api.stranger


def csrf(page: httpx.Client) -> str:
    return str(page.get(f"{PATH}/session").json()["csrf"])


def test_without_the_token_nothing_is_told_and_nothing_is_done(api: Api, afresh: Operator) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic " + api.token}, {"Cookie": "x=1"}):
        for answer in (
            api.stranger.get(PATH, headers=headers),
            api.stranger.get("/openapi.json", headers=headers),
            api.stranger.get(f"{PATH}/events", headers=headers),
            api.stranger.post(PATH, json={"action": "hold", "workerId": "swarm1"}, headers=headers),
        ):
            assert (answer.status_code, answer.json()) == (401, {"ok": False, "error": "Unauthorized"})
            assert answer.headers["www-authenticate"].startswith("Bearer")
    with afresh.host() as host:
        assert not host.ledger.record("swarm1").is_held


def test_the_token_is_made_once_and_is_its_owners_alone(settings: Settings) -> None:
    token = kept_token(settings)

    assert kept_token(settings) == token
    assert len(token) >= 40
    assert token_path(settings).stat().st_mode & 0o777 == 0o600


def test_a_token_that_others_can_read_or_guess_is_refused(settings: Settings) -> None:
    kept_token(settings)
    token_path(settings).chmod(0o640)
    with pytest.raises(ConfigurationError, match="others can read the token"):
        kept_token(settings)

    token_path(settings).chmod(0o600)
    token_path(settings).write_text("secret\n")
    with pytest.raises(ConfigurationError, match="not a token"):
        kept_token(settings)


def test_a_page_without_a_session_leads_to_the_form_and_a_wrong_token_leads_back_to_it(api: Api) -> None:
    assert api.stranger.get("/").headers["location"] == "/login"
    wrong = api.stranger.post("/login", data={"token": "wrong"})
    assert (wrong.status_code, wrong.headers["location"]) == (303, "/login?wrong=1")
    assert "set-cookie" not in wrong.headers
    assert "not the token of this home" in api.stranger.get("/login?wrong=1").text
    assert "not the token of this home" not in api.stranger.get("/login").text


def test_the_cookie_goes_to_no_script_and_to_no_other_sites_request(api: Api) -> None:
    cookie = api.stranger.post("/login", data={"token": api.token}).headers["set-cookie"].lower()

    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert api.token.lower() not in cookie


def test_a_request_with_the_cookie_acts_only_where_it_shows_that_the_page_sent_it(api: Api, page: httpx.Client) -> None:
    order = {"action": "hold", "workerId": "swarm1"}
    good = {"Origin": api.url, "X-CSRF-Token": csrf(page)}
    refused = [
        {},
        {"Origin": api.url},
        {"X-CSRF-Token": good["X-CSRF-Token"]},
        {**good, "Origin": "http://evil.example"},
        {**good, "Origin": "null"},
        {**good, "Origin": "http://127.0.0.1:1"},
        {**good, "X-CSRF-Token": "0" * 64},
    ]

    assert page.get(PATH).status_code == 200
    for headers in refused:
        assert page.post(PATH, json=order, headers=headers).status_code == 403, headers
    assert page.post(PATH, json=order, headers=good).json()["change"] == "held"


def test_the_reference_scripts_cookie_carries_the_token_and_from_a_browser_it_does_not(api: Api) -> None:
    cookie = {"Cookie": f"claude-auth={api.token}"}

    assert api.stranger.get(PATH, headers=cookie).status_code == 200
    assert api.stranger.get(PATH, headers={"Cookie": "claude-auth=wrong"}).status_code == 401
    for sign in ({"Origin": "http://evil.example"}, {"Origin": api.url}, {"Sec-Fetch-Site": "cross-site"}):
        assert api.stranger.get(PATH, headers={**cookie, **sign}).status_code == 401


def test_logging_out_takes_the_cookie_back(api: Api, page: httpx.Client) -> None:
    page.post("/logout", json={}, headers={"Origin": api.url, "X-CSRF-Token": csrf(page)})

    assert page.get(PATH).status_code == 401


def test_a_session_ends_by_itself_and_with_its_token_and_cannot_be_made_up() -> None:
    now = 1_000_000.0
    access = Access("t" * 40, lambda: now)
    session = access.new_session()
    assert access.is_session(session)

    assert not access.is_session(session[:-1] + ("0" if session[-1] != "0" else "1"))
    assert not access.is_session("9" + session)
    assert not access.is_session(access.csrf_of(session))
    assert not access.is_session("é.é.é")
    assert not Access("u" * 40, lambda: now).is_session(session)
    now += SESSION_FOR.total_seconds()
    assert not access.is_session(session)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "10.0.0.1:80"])
def test_a_name_that_others_can_point_here_is_refused(api: Api, host: str) -> None:
    assert api.client.get("/health", headers={"Host": host}).status_code == 400


def test_a_proxy_in_front_is_known_by_its_configured_name(afresh: Operator) -> None:
    with_ports(afresh, http='hosts = ["fleet.example"]')
    with serving() as api:
        assert api.client.get(PATH, headers={"Host": "fleet.example"}).status_code == 200
        page = api.stranger
        login = page.post("/login", data={"token": api.token}, headers={"X-Forwarded-Proto": "https"})
        assert "secure" in login.headers["set-cookie"].lower()


def test_too_many_requests_of_a_kind_are_told_when_to_come_back(afresh: Operator) -> None:
    with_ports(afresh, http="reads_per_minute = 3\nacts_per_minute = 2")
    with serving() as api:
        reads = [api.get().status_code for _ in range(4)]
        acts = [api.post("hold", "swarm1") for _ in range(3)]

    assert reads == [200, 200, 200, 429]
    assert [answer.status_code for answer in acts] == [200, 200, 429]
    assert 0 < int(acts[-1].headers["retry-after"]) <= 60


def test_wrong_tokens_are_counted_and_the_right_one_is_let_in_all_the_same(api: Api) -> None:
    wrong = [api.stranger.get(PATH, headers={"Authorization": "Bearer no"}).status_code for _ in range(25)]

    assert set(wrong[:20]) == {401}
    assert set(wrong[20:]) == {429}
    assert api.get().status_code == 200


def test_a_minute_later_one_may_ask_again_and_the_memory_is_bounded() -> None:
    now = 0.0
    rate = Rate(2, lambda: now)
    rate.count("a")
    now = 10.0
    rate.count("a")
    assert (rate.wait("a"), rate.wait("b")) == (50, 0)
    now = 60.0
    assert rate.wait("a") == 0
    for number in range(2 * MOST_ADDRESSES):
        rate.count(str(number))
    assert len(rate._times) == MOST_ADDRESSES


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long_is_refused_unread(api: Api, chunked: bool) -> None:
    body = b'{"action": "hold", "why": "' + b"x" * LONGEST_BODY
    pieces = (body[at : at + 10_000] for at in range(0, len(body), 10_000))

    answer = api.client.post(PATH, content=pieces if chunked else body)

    assert (answer.status_code, answer.json()["ok"]) == (413, False)


def test_every_answer_forbids_foreign_and_inline_script(api: Api) -> None:
    answers = [
        api.get(),
        api.stranger.get(PATH),
        api.get("/nowhere"),
        api.get("/"),
        api.get("/docs"),
        api.stranger.get("/login"),
        api.stranger.get("/static/page.js"),
        api.client.get("/health", headers={"Host": "evil.example"}),
        api.client.request("DELETE", PATH),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


@pytest.mark.parametrize("file", sorted(FILES.iterdir()), ids=lambda path: path.name)
def test_the_pages_need_nothing_from_elsewhere_and_carry_no_inline_script(file: Path) -> None:
    text = file.read_text().replace("http://www.w3.org/2000/svg", "")

    assert not re.findall(r"https?:|[\"'(=]//|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
    if file.suffix == ".html":
        assert not re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=|javascript:", text)


def test_only_loopback_is_served(tmp_path: Path) -> None:
    path = tmp_path / "afresh.toml"
    path.write_text('[http]\nhost = "0.0.0.0"\n')
    path.chmod(0o600)
    with pytest.raises(ConfigurationError, match=r"http\.host: 0\.0\.0\.0: only loopback is served"):
        load_settings(path, {"AFRESH_HOME": str(tmp_path), "HOME": str(tmp_path)})


def test_without_a_port_of_its_own_the_service_stands_beside_the_prefect_server(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"home": tmp_path, "hermes_root": tmp_path, "memory_root": tmp_path, "server": {"port": 5000}}
    )
    assert settings.http_port == 5001


def test_a_port_that_is_taken_is_named(afresh: Operator) -> None:
    with_ports(afresh)
    with serving():
        refused = afresh("http").err.splitlines()[-1]

    assert refused.startswith(f"afresh: {afresh.toml}: http.port ")
    assert "Address already in use" in refused
