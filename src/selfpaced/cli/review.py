"""``selfpaced review``: decide about the listed rows in the browser, by a local server that saves the decisions."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shlex
import threading
import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfpaced.assessment import LEVELS

from .console import UsageError
from .output import DECISIONS

if TYPE_CHECKING:
    from .console import Console

USAGE = "selfpaced review [RUN] [--no-browser] [--port N]"
DESCRIPTION = """\
Open the page of a run in the browser and decide about its rows. Every decision
is saved in RUN/decisions.csv at once.

The page is served to this machine only (127.0.0.1), and only with the token in
the address. Press Ctrl-C to stop.
"""
EPILOG = """\
examples:
  selfpaced fit data.csv --target label --out run
  selfpaced review run
  selfpaced clean data.csv --decisions run/decisions.csv
  selfpaced fit data.csv --decisions run/decisions.csv --out run2
"""
LOOPBACK = "127.0.0.1"
DECISION_BYTES = 10_000  # convention: size of one decision
POLICY = "default-src &#39;none&#39;; "  # how the page's policy begins; served, it may talk to where it came from
COLUMNS = ("row", "line", "given", "expected", "decision", "target", "fingerprint")


def run(args: argparse.Namespace, console: Console) -> int:
    """Serve until Ctrl-C."""
    server, address = serve(args.run_folder, args.port)
    console.output(f"{address}\n")
    console.say("Every decision is saved at once. Press Ctrl-C to stop.")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        if not args.no_browser:
            webbrowser.open(address)
        while True:
            thread.join(0.5)
    except KeyboardInterrupt:
        console.signal = None  # the normal way to stop
    finally:
        server.shutdown()
        server.server_close()
    _tell(args.run_folder, server.RequestHandlerClass.file, console)  # type: ignore[attr-defined]
    return 0


def _next(name: str) -> str:
    """A name for the next run.

    >>> _next("run"), _next("run2")
    ('run2', 'run3')
    """
    stem = name.rstrip("0123456789")
    return f"{stem}{int(name[len(stem) :] or 1) + 1}"


def _data(metrics: Path) -> str:
    """Return the table of a run as a word of a command, or DATA if it is not a file here."""
    named = json.loads(metrics.read_text(encoding="utf-8")).get("data", "") if metrics.is_file() else ""
    return shlex.quote(named) if named and Path(named).is_file() else "DATA"


def _tell(folder: Path, file: object, console: Console) -> None:
    assert isinstance(file, DecisionFile)
    decided, total = len(file.decisions()), len(file.suspects)
    console.say(f"\n{decided:,} of {total:,} rows decided, {total - decided:,} undecided.")
    if decided:
        data = _data(folder / "metrics.json")
        console.say(f"Next: selfpaced clean {data} --decisions {file.path}")
        console.say(f"  or: selfpaced fit {data} --decisions {file.path} --out {_next(folder.name)}")
    console.result({"decided": decided, "suspects": total, "file": str(file.path) if decided else None})


class DecisionFile:
    """The file of decisions in a run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path, self._lock = folder, folder / DECISIONS, threading.Lock()
        self._written = self._when()
        listed = _records(folder / "suspects.csv")
        self.suspects = {row: record for row, record in listed.items() if record.get("level", "") in LEVELS}

    def _when(self) -> tuple[int, int]:
        """Identify the present version of the list."""
        found = os.stat(self.folder / "suspects.csv")
        return found.st_ino, found.st_mtime_ns

    def read(self) -> dict[str, dict[str, str]]:
        """Return the records of the file by row; none if there is no file yet."""
        found = _records(self.path) if self.path.exists() else {}
        return {row: record for row, record in found.items() if record.get("decision", "").strip()}

    def decisions(self) -> dict[str, str]:
        """Return the decisions about rows of this run, by row."""
        return {row: record["decision"] for row, record in self.read().items() if self._same(row, record)}

    def _same(self, row: str, record: dict[str, str]) -> bool:
        """Whether the record is about a row of this run, and not about that row of another table."""
        suspect = self.suspects.get(row)
        return suspect is not None and record.get("fingerprint", "") in ("", suspect["fingerprint"])

    def decide(self, row: str, decision: str) -> dict[str, str]:
        """Save one decision (empty: remove it) and return all of them."""
        from selfpaced.tables import read_answers

        if row not in self.suspects:
            raise ValueError(f"row must be in the list of this run, got {row!r}")
        record = {name: self.suspects[row].get(name, "") for name in COLUMNS} | {"decision": decision}
        if decision:
            read_answers([record])  # raises an error if it is not a decision
        with self._lock:
            if self._when() != self._written:
                raise ValueError("the run was repeated since this review was started: start selfpaced review again")
            records = self.read()
            records.pop(row, None)
            if decision:
                records[row] = record
            self._write(list(records.values()))
            return self.decisions()

    def _write(self, records: list[dict[str, str]]) -> None:
        import pandas as pd

        from .output import write_frame

        if records:
            write_frame(pd.DataFrame(records, columns=list(COLUMNS)).fillna(""), self.path)
        else:
            self.path.unlink(missing_ok=True)


def _records(path: Path) -> dict[str, dict[str, str]]:
    """Return the records of a table of rows by their number."""
    from selfpaced.tables import written_cells

    return {record["row"]: record for record in written_cells(path)[0].to_dict("records")}


def serve(folder: Path, port: int = 0) -> tuple[ThreadingHTTPServer, str]:
    """Return a server on the loopback address, not yet running, and the address to open."""
    from selfpaced.tables import TableError

    page = folder / "report.html"
    for needed in (page, folder / "suspects.csv"):
        if not needed.is_file():
            raise UsageError(f"{str(needed)!r} does not exist; run selfpaced fit --out {str(folder)!r} first")
    try:
        decisions, token = DecisionFile(folder), secrets.token_urlsafe(24)
    except TableError as error:  # a header without rows
        raise UsageError(f"there is nothing to decide: the list in {str(folder)!r} is empty ({error})") from error

    class Handler(_ReviewHandler):
        pass

    Handler.page, Handler.file, Handler.token = page, decisions, token
    try:
        server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    except OSError as error:
        raise UsageError(f"port {port} cannot be used: {error.strerror}; without --port, a free one is used") from error
    server.daemon_threads = True
    return server, f"http://{LOOPBACK}:{server.server_port}/?token={token}"


class _ReviewHandler(BaseHTTPRequestHandler):
    """Two addresses, ``/`` and ``/decisions``, for requests with the token that come from the page itself."""

    page: Path
    file: DecisionFile
    token: str
    server_version, sys_version = "selfpaced", ""
    timeout = 30

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        given = query.removeprefix("token=") if path == "/" else self.headers.get("X-Token", "")
        if not self._allowed(given):
            return
        if path == "/":
            text = self.page.read_text(encoding="utf-8")
            self._answer(text.replace(POLICY, f"{POLICY}connect-src &#39;self&#39;; ", 1), "text/html")
        elif path == "/decisions":
            self._answer(json.dumps(self.file.decisions()), "application/json")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        if not self._allowed(self.headers.get("X-Token", "")):
            return
        if self.path != "/decisions":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            row, decision = self._sent()
            self._answer(json.dumps(self.file.decide(row, decision)), "application/json")
        except ValueError as error:
            self._answer(str(error), "text/plain", HTTPStatus.BAD_REQUEST)
        except OSError as error:
            self._answer(f"{self.file.path}: {error.strerror}", "text/plain", HTTPStatus.INTERNAL_SERVER_ERROR)

    def _sent(self) -> tuple[str, str]:
        if self.headers.get_content_type() != "application/json":
            raise ValueError("a decision must be sent as JSON")
        length = int(self.headers.get("Content-Length") or -1)
        if not 0 < length <= DECISION_BYTES:
            raise ValueError(f"a decision must have at most {DECISION_BYTES:,} bytes, got {length:,}")
        sent = json.loads(self.rfile.read(length))
        if not isinstance(sent, dict) or not all(isinstance(sent.get(key), str) for key in ("row", "decision")):
            raise ValueError("a decision must have the texts row and decision")
        return sent["row"], sent["decision"].strip()

    def _allowed(self, given: str) -> bool:
        """Whether the request comes from the page itself: by its token, and by the headers of browsers."""
        here = {f"{name}:{self.server.server_port}" for name in (LOOPBACK, "localhost")}  # type: ignore[attr-defined]
        origin = self.headers.get("Origin")
        own = (
            self.headers.get("Host") in here  # a foreign name for this address is an attack
            and (origin is None or origin.removeprefix("http://") in here)
            and self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
            and secrets.compare_digest(given.encode(), self.token.encode())
        )
        if not own:
            self.send_error(HTTPStatus.FORBIDDEN)
        return own

    def _answer(self, text: str, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        body = text.encode()
        self.send_response(status)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
        }
        headers |= {"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""
