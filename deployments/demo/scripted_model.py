"""A language model that does what it is told: an OpenAI-compatible server on loopback.

In a process: `with ScriptedModel() as model: … model.base_url`. By itself: `python -m deployments.demo.scripted_model
--port 18080`, and `POST /script` with the knobs of `Script` as JSON changes it while it runs.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from deployments.demo.answers import Answer, answer
from deployments.demo.script import Kind, Prompt, Script, read_prompt
from deployments.demo.wire import completion, events

_LONGEST_HOLD = 3600.0


class ScriptedModel:
    """The server. Binds to loopback when it is made, serves between `start` and `stop`, keeps every prompt it saw."""

    def __init__(self, script: Script | None = None, *, port: int = 0) -> None:
        self._script = script or Script()
        self._seen: dict[tuple[Kind, str], str] = {}
        self._requests: list[Prompt] = []
        self._lock = threading.Lock()
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", port), _Exchange)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def base_url(self) -> str:
        """What an agent's `base_url` is set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def script(self) -> Script:
        return self._script

    @property
    def requests(self) -> tuple[Prompt, ...]:
        """Every completion asked for so far, oldest first."""
        with self._lock:
            return tuple(self._requests)

    def change(self, **knobs: Any) -> Script:
        """Set knobs of the script; the others stay.

        Raises:
            pydantic.ValidationError: no such knob, or not such a value; nothing changed.
        """
        with self._lock:
            self._script = Script.model_validate({**self._script.model_dump(), **knobs})
            return self._script

    def say(self, *texts: str) -> None:
        """Queue the answers of the next ordinary turns, one for each text."""
        self.change(say=(*self._script.say, *texts))

    def complete(self, body: dict[str, Any]) -> tuple[Prompt, Answer]:
        """Take one request and decide its answer."""
        with self._lock:
            prompt = self._measured(body)
            self._requests.append(prompt)
            if prompt.kind is Kind.MISSION and self._script.say and self._script.fault is None:
                text, *rest = self._script.say
                self._script = self._script.model_copy(update={"say": tuple(rest)})
                return prompt, Answer(text=text, delay=self._script.delay)
            return prompt, answer(prompt, self._script, first=self._is_first(prompt))

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port and let go of every held answer."""
        self.closing.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _measured(self, body: dict[str, Any]) -> Prompt:
        """Count characters; `[[tokens N]]` in what a person said says how many came up to there."""
        messages = body.get("messages") or []
        system = [message for message in messages if message.get("role") == "system"]
        # A handoff that is read quotes what was said in another session.
        talk = ", ".join(
            json.dumps(message)
            if message.get("role") == "user"
            else json.dumps(message).replace("[[tokens", "[(tokens")
            for message in messages
            if message.get("role") != "system"
        )
        fixed = len(json.dumps([body.get("tools") or [], system])) / self._script.chars_per_token
        for told in re.finditer(r"\[\[tokens (\d+)\]\]", talk):
            fixed, talk = float(told.group(1)), told.string[told.end() :]
        tokens = int(fixed + len(talk) * self._script.weight / self._script.chars_per_token)
        return read_prompt(body, tokens=tokens)

    def _is_first(self, prompt: Prompt) -> bool:
        """Whether no other text of this kind came for this renewal; a turn's later calls repeat its own text."""
        return self._seen.setdefault((prompt.kind, prompt.renewal_id), prompt.text) == prompt.text


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    model: ScriptedModel


class _Exchange(BaseHTTPRequestHandler):
    """One connection to an agent, or to whoever changes the script."""

    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Keep quiet: what matters is in `ScriptedModel.requests`."""

    def do_GET(self) -> None:
        script = self.server.model.script
        if self.path == "/script":
            self._send(200, script.model_dump())
        elif self.path.rstrip("/") == "/v1/models":
            entry = {"id": script.model, "object": "model", "context_length": script.context_length}
            self._send(200, {"object": "list", "data": [entry]})
        else:
            self._refuse(404, f"nothing at {self.path}")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw)
            if self.path == "/script":
                self._send(200, self.server.model.change(**body).model_dump())
                return
            if self.path != "/v1/chat/completions":
                self._refuse(404, f"nothing at {self.path}")
                return
            prompt, decided = self.server.model.complete(body)
        except ValidationError as error:
            self._refuse(400, "; ".join(f"{entry['loc'][0]}: {entry['msg']}" for entry in error.errors()))
            return
        except (ValueError, TypeError) as error:
            self._refuse(400, str(error))
            return
        self._answer(body, prompt, decided)

    def _answer(self, body: dict[str, Any], prompt: Prompt, decided: Answer) -> None:
        hold = _LONGEST_HOLD if decided.never else decided.delay
        if hold and self.server.model.closing.wait(hold):
            self.close_connection = True
            return
        if decided.fault is not None:
            words = {401: "invalid API key", 429: "rate limit reached"}.get(decided.fault, "the scripted model failed")
            self._refuse(decided.fault, self.server.model.script.fault_words or words)
            return
        reply = completion(self.server.model.script.model, prompt, decided)
        pace = self.server.model.script.pace
        if pace is not None and self.server.model.closing.wait(reply["usage"]["completion_tokens"] / pace):
            self.close_connection = True
            return
        try:
            if body.get("stream"):
                self._stream(reply)
            else:
                self._send(200, reply)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the agent was interrupted or stopped

    def _stream(self, reply: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events(reply):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def _refuse(self, status: int, why: str) -> None:
        self._send(status, {"error": {"message": why, "type": "scripted", "code": status}})

    def _send(self, status: int, body: dict[str, Any]) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if status == 429:
            self.send_header("Retry-After", f"{self.server.model.script.retry_after:g}")
        self.end_headers()
        self.wfile.write(payload)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m deployments.demo.scripted_model")
    parser.add_argument("--port", type=int, default=18080)
    parser.add_argument("--context-length", type=int, default=200_000)
    chosen = parser.parse_args()
    with ScriptedModel(Script(context_length=chosen.context_length), port=chosen.port) as model:
        print(model.base_url, flush=True)
        try:
            model.closing.wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
