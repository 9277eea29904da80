"""Stands in for VS Code: starts a configuration of launch.json as its Run button does, and debugs what it starts.

Runs inside the container that the editor would be attached to, with debugpy's own adapter, which VS Code's Python
extension brings along: the same requests over the Debug Adapter Protocol, the same reverse request for a terminal, and
a session of its own for every child process that the adapter tells of. At --break all of them stop once and go on.

Usage: editor.py LAUNCH_JSON NAME --debugpy FOLDER [--break FILE:LINE]
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any


def say(text: str) -> None:
    print(f"editor: {text}", flush=True)


class Editor:
    """What all sessions share: the breakpoint, the terminal, and who else is debugged."""

    def __init__(self, stop_at: str) -> None:
        self.file, _colon, self.line = stop_at.rpartition(":")
        self.terminals: list[subprocess.Popen[bytes]] = []
        self.children: list[threading.Thread] = []

    def terminal(self, requested: dict[str, Any]) -> int:
        """Run a command as an integrated terminal would; what it prints comes out here."""
        changed = {name: value for name, value in requested.get("env", {}).items() if value is not None}
        process = subprocess.Popen(requested["args"], cwd=requested["cwd"], env={**os.environ, **changed})
        self.terminals.append(process)
        return process.pid

    def attach(self, requested: dict[str, Any]) -> None:
        """Debug a child process, as the adapter asks for."""
        connection = socket.create_connection((requested["connect"]["host"], requested["connect"]["port"]))
        session = Session(self, connection.makefile("rb"), connection.makefile("wb"), "attach", requested)
        self.children.append(threading.Thread(target=session.run))
        self.children[-1].start()


class Session:
    """One debug session: DAP over a pair of streams, to the end of its process."""

    def __init__(
        self, editor: Editor, reads: IO[bytes], writes: IO[bytes], how: str, requested: dict[str, Any]
    ) -> None:
        self.editor, self.reads, self.writes, self.how, self.requested = editor, reads, writes, how, requested
        self.sent, self.exit_code = 0, None

    def send(self, **message: Any) -> None:
        self.sent += 1
        body = json.dumps({"seq": self.sent, **message}).encode()
        self.writes.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.writes.flush()

    def request(self, command: str, **arguments: Any) -> None:
        self.send(type="request", command=command, arguments=arguments)

    def read(self) -> dict[str, Any] | None:
        length = 0
        while line := self.reads.readline().strip():
            length = int(line.rpartition(b":")[2])
        body = self.reads.read(length)
        return json.loads(body) if body else None

    def run(self) -> None:
        self.request(
            "initialize",
            adapterID="debugpy",
            clientID="vscode",
            pathFormat="path",
            linesStartAt1=True,
            columnsStartAt1=True,
            supportsRunInTerminalRequest=True,
        )
        while (message := self.read()) is not None:
            getattr(self, "on_" + message["type"])(message)
            if message.get("event") == "terminated":
                break

    def on_request(self, message: dict[str, Any]) -> None:
        assert message["command"] == "runInTerminal", message
        pid = self.editor.terminal(message["arguments"])
        self.send(
            type="response", request_seq=message["seq"], command="runInTerminal", success=True, body={"processId": pid}
        )

    def on_response(self, message: dict[str, Any]) -> None:
        if not message["success"]:
            say(f"{message['command']} was refused: {message.get('message')}")
        elif message["command"] == "initialize":
            self.request(self.how, **self.requested)
        elif message["command"] == "stackTrace":
            frame = message["body"]["stackFrames"][0]
            say(f"stopped in {self.requested['name']} at {frame['source']['path']}:{frame['line']}")
            self.request("setBreakpoints", source={"path": self.editor.file}, breakpoints=[])
            self.request("continue", threadId=self.stopped)

    def on_event(self, message: dict[str, Any]) -> None:
        body = message.get("body", {})
        if message["event"] == "initialized":
            if self.editor.file:
                where = [{"line": int(self.editor.line)}]
                self.request("setBreakpoints", source={"path": self.editor.file}, breakpoints=where)
            self.request("configurationDone")
        elif message["event"] == "process":
            say(f"debugging {body.get('name')}, process {body.get('systemProcessId')}")
        elif message["event"] == "debugpyAttach":
            self.editor.attach(body)
        elif message["event"] == "stopped":
            self.stopped = body["threadId"]
            self.request("stackTrace", threadId=self.stopped)
        elif message["event"] == "exited":
            self.exit_code = body["exitCode"]


def configuration(file: str, name: str) -> dict[str, Any]:
    """Return what the editor hands to the adapter: one configuration, with its envFile read into env."""
    found = next(one for one in json.loads(Path(file).read_text())["configurations"] if one["name"] == name)
    lines = Path(found["envFile"]).read_text().splitlines() if "envFile" in found else []
    given = dict(line.split("=", 1) for line in lines if "=" in line)
    return {**found, "env": {**given, **found.get("env", {})}}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("name")
    parser.add_argument("--debugpy", required=True)
    parser.add_argument("--break", dest="stop_at", default="")
    args = parser.parse_args()
    requested = configuration(args.file, args.name)
    adapter = subprocess.Popen(
        [requested["python"], f"{args.debugpy}/debugpy/adapter"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert adapter.stdin and adapter.stdout
    editor = Editor(args.stop_at)
    session = Session(editor, adapter.stdout, adapter.stdin, "launch", requested)
    session.run()
    for child in editor.children:
        child.join()
    codes = [terminal.wait() for terminal in editor.terminals]
    adapter.terminate()
    say(f"ended with {session.exit_code}, terminal with {codes}")
    return session.exit_code if session.exit_code is not None else 1


if __name__ == "__main__":
    sys.exit(main())
