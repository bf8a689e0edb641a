"""`make run`: web, worker and beat as children of one command, with readable logs and a clean end."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from types import FrameType

from helpdesk.local.data import (
    CHECKOUT,
    FolderInUse,
    data_folder,
    locked,
    secret,
    write_private,
)
from helpdesk.local.servers import Postgres, Valkey, dying_with_parent

READY_TIMEOUT = 60.0
# Where a command finds the servers of a helpdesk that is running.
ADDRESSES = "addresses.json"
# For every command on one's own machine, unless the environment says otherwise.
DEFAULTS = {"DEBUG": "true", "PYTHONUNBUFFERED": "1"}
GRACE = 20.0  # Seconds a child has to end by itself; a worker may be in the middle of a set.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

BANNER = """
  The helpdesk runs at  {url}

  Sign in as            admin, agent1, agent2, customer1 or customer2
  Password              demo

  Stop it with Ctrl-C. The data stays; `make reset` forgets it.
"""


class CannotRun(Exception):
    """Said in one line, with what to do."""


@dataclass(frozen=True, slots=True)
class Process:
    """A child: its name before each line it prints, its command, and what only it finds in its environment."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


def run() -> None:
    """Run everything until a signal; one during the set-up raises `KeyboardInterrupt`.

    Raises `CannotRun`, `FolderInUse` or `ServerError` with one clear message.
    """
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)
    port = web_port()
    require_free(port)
    with locked(data_folder()) as data, environment(data) as env:
        django = [sys.executable, "manage.py"]
        _do([*django, "migrate", "--verbosity=0"], env)
        if env.get("HELPDESK_DEMO", "1") != "0":
            _do([*django, "demo"], env)
        Supervisor(processes(port, data), env, port=port).run()


def web_port() -> int:
    value = os.environ.get("PORT") or "8000"
    if not value.isdecimal() or not 0 < int(value) < 65536:
        raise CannotRun(f"PORT={value} is no port. Choose one: make run PORT=8001")
    return int(value)


def require_free(port: int) -> None:
    """Raises `CannotRun` if somebody listens there already: better now than after the set-up."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CannotRun(
                f"Port {port} cannot be used ({error.strerror}). "
                f"Stop what uses it or choose another: make run PORT={port + 1}"
            ) from None


@contextmanager
def environment(data: Path, *, fast: bool = False) -> Iterator[dict[str, str]]:
    """The environment for everything that runs on this data folder. Starts the servers it does not name itself."""
    env = {**DEFAULTS, **os.environ}
    with ExitStack() as stack:
        if "DATABASE_URL" not in env:
            env["DATABASE_URL"] = stack.enter_context(Postgres(data / "postgres", fast=fast)).url
        if "REDIS_URL" not in env:
            env["REDIS_URL"] = stack.enter_context(Valkey(data / "valkey")).url
        if "SECRET_KEY" not in env:
            env["SECRET_KEY"] = secret(data / "secret-key")
        addresses = {name: env[name] for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY")}
        write_private(data / ADDRESSES, json.dumps(addresses))
        stack.callback((data / ADDRESSES).unlink, missing_ok=True)
        yield env


def processes(port: int, data: Path) -> list[Process]:
    """What makes up the helpdesk, in the order it is started; it is stopped in the opposite one."""
    python = [sys.executable, "-m"]
    celery = [*python, "celery", "--quiet", "-A", "helpdesk"]
    return [
        Process(
            "worker",
            [
                *celery, "worker", "--queues=reminders,dispatch,audit", "--concurrency=2",
                "--without-gossip", "--without-mingle", "--loglevel=INFO",
            ],
        ),
        Process(
            "beat",
            [*celery, "beat", f"--schedule={data / 'beat'}", "--pidfile=", "--loglevel=INFO"],
        ),
        Process(
            "web",
            [
                *python, "gunicorn", "helpdesk.wsgi:application", f"--bind=127.0.0.1:{port}",
                "--worker-class=gthread", "--threads=8", "--no-control-socket", "--access-logfile=-",
                "--access-logformat=%(m)s %(U)s %(s)s %(M)sms",
            ],
            {"DATABASE_POOL": "true"},
        ),
    ]  # fmt: skip


class Supervisor:
    """Starts the processes, prints what they say, and ends them all when one ends or a signal comes."""

    def __init__(
        self,
        processes: Sequence[Process],
        env: Mapping[str, str],
        *,
        port: int | None = None,
        banner: str = BANNER,
    ) -> None:
        self._processes = processes
        self._env = env
        self._port = port
        self._banner = banner
        # Signal numbers, and names of children that have ended.
        self._news: SimpleQueue[int | str] = SimpleQueue()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._readers: list[Thread] = []
        self._width = max(len(process.name) for process in processes)

    def run(self) -> None:
        """Returns after a signal. Raises `CannotRun` if a child ended by itself."""
        previous = {number: signal.signal(number, self._note_signal) for number in SIGNALS}
        try:
            for process in self._processes:
                self._start(process)
            news = self._wait_until_ready()
            while news is None:
                news = self._next_news(timeout=0.5)
            if isinstance(news, str):
                raise CannotRun(f"{news} has ended with status {self._children[news].wait()}.")
        finally:
            self._stop()
            for number, handler in previous.items():
                signal.signal(number, handler)
        _say("stopped")

    def _note_signal(self, number: int, _frame: FrameType | None) -> None:
        self._news.put(number)

    def _start(self, process: Process) -> None:
        child = subprocess.Popen(
            process.command,
            cwd=CHECKOUT,
            env={**self._env, **process.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A session of its own: Ctrl-C comes to us, and we end the children in order.
            start_new_session=True,
            preexec_fn=dying_with_parent(signal.SIGTERM),  # noqa: PLW1509  prctl alone, looked up before
        )
        self._children[process.name] = child
        reader = Thread(target=self._print, args=(process.name, child), daemon=True)
        self._readers.append(reader)
        reader.start()

    def _print(self, name: str, child: "subprocess.Popen[bytes]") -> None:
        colour = 31 + list(self._children).index(name) % 6
        prefix = f"{name:<{self._width}} | "
        if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
            prefix = f"\033[{colour}m{prefix}\033[0m"
        assert child.stdout is not None
        for line in child.stdout:
            sys.stdout.write(f"{prefix}{line.decode(errors='replace').rstrip()}\n")
            sys.stdout.flush()
        self._news.put(name)

    def _wait_until_ready(self) -> int | str | None:
        """Until the web answers, then says so. Returns earlier with the news if there is any."""
        if self._port is None:
            return None
        deadline = monotonic() + READY_TIMEOUT
        while monotonic() < deadline:
            if not self._web_answers(self._port):
                if (news := self._next_news(timeout=0.1)) is not None:
                    return news
                continue
            _say(self._banner.format(url=f"http://localhost:{self._port}/"))
            return None
        raise CannotRun(f"The web did not answer on port {self._port} within {READY_TIMEOUT:g} s.")

    @staticmethod
    def _web_answers(port: int) -> bool:
        """Whatever it answers. A connection says nothing: the port is open before the application is loaded."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request("HEAD", "/")
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        return True

    def _next_news(self, *, timeout: float) -> int | str | None:
        """Never one endless wait: Python notices a signal that came just before it only when it wakes up."""
        try:
            return self._news.get(timeout=timeout)
        except Empty:
            return None

    def _stop(self) -> None:
        """The last started first. A second signal, or too long a wait, ends the rest by force."""
        impatient = False
        for child in reversed(self._children.values()):
            child.terminate()
            deadline = monotonic() + GRACE
            while child.poll() is None and monotonic() < deadline and not impatient:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(0.1)
                impatient = self._signalled_again()
            # Also what it has forked and not waited for.
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        for reader in self._readers:
            reader.join(timeout=2)

    def _signalled_again(self) -> bool:
        while (news := self._next_news(timeout=0)) is not None:
            if isinstance(news, int):
                return True
        return False


def with_servers(command: Sequence[str], data: Path, *, fast: bool) -> int:
    """Run a command with the servers of this data folder, started for it or running already. Returns its exit status.

    `fast` servers are for one suite alone: if they run already, this raises `FolderInUse`.
    """
    try:
        with locked(data), environment(data, fast=fast) as env:
            return _obey(command, env)
    except FolderInUse:
        # A suite makes and drops its databases: two of them on one server would be in each other's way.
        if fast or not (data / ADDRESSES).exists():
            raise
        addresses = json.loads((data / ADDRESSES).read_text())
        return _obey(command, {**DEFAULTS, **addresses, **os.environ})


def _obey(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run the command as if it had been called itself: signals reach it, its exit status is ours."""
    try:
        child = subprocess.Popen(
            command,
            env=env,
            preexec_fn=dying_with_parent(signal.SIGTERM),  # noqa: PLW1509  as above
        )
    except OSError as error:
        raise CannotRun(f"{command[0]} cannot be run ({error.strerror}).") from None
    # Ctrl-C reaches it by itself, through the terminal; what comes to us alone is handed on.
    signal.signal(signal.SIGINT, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: child.send_signal(number))
    while child.poll() is None:
        # Not one endless wait, for the same reason as in `_next_news`.
        with suppress(subprocess.TimeoutExpired):
            child.wait(0.5)
    status = child.returncode
    return status if status >= 0 else 128 - status  # Ended by a signal: as a shell tells it.


def _do(command: Sequence[str], env: Mapping[str, str]) -> None:
    if subprocess.run(command, cwd=CHECKOUT, env=env, check=False).returncode != 0:
        raise CannotRun(f"{' '.join(command[1:3])} failed; see above.")


def _say(text: str) -> None:
    print(text, flush=True)
