"""The data folder: who may use it, and the secrets kept in it."""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
TEST_DATA = CHECKOUT / ".local" / "test"  # Where the Makefile lets the suite's servers keep theirs.
# Everything that a data folder comes to hold, its lock last.
CONTENTS = ("postgres", "valkey", "secret-key*", "addresses*", "beat*", "tmp", "lock")


class FolderInUse(Exception):
    """Another process works with the same data folder."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is in use by another run. Stop that one, or choose another folder: HELPDESK_DATA=..."
        )


def data_folder() -> Path:
    """Where `make run` keeps its data: `HELPDESK_DATA`, or `.local` in the checkout."""
    return Path(os.environ.get("HELPDESK_DATA") or CHECKOUT / ".local").resolve()


@contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Make the folder and keep everybody else out of it. The lock dies with the process that holds it.

    Raises `FolderInUse`.
    """
    path.mkdir(parents=True, exist_ok=True)
    with (path / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUse(path) from None
        yield path


def secret(path: Path) -> str:
    """The secret kept in this file, made on first use; nobody else on the machine can read it."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(48))
    return path.read_text()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read; whole or not at all, whenever this is interrupted."""
    new = path.with_suffix(".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    new.replace(path)


def forget(*folders: Path) -> None:
    """Delete what these folders hold of ours, all of them or none. Raises `FolderInUse`.

    The folder is a person's choice and may hold other things: they stay, and so does a folder we never used.
    """
    with ExitStack() as stack:
        used = [folder for folder in folders if (folder / "lock").exists()]
        for folder in used:
            stack.enter_context(locked(folder))
        for folder in used:
            for path in (path for pattern in CONTENTS for path in folder.glob(pattern)):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            with suppress(OSError):  # Something else is in it.
                folder.rmdir()
