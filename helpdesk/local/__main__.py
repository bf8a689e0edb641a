"""`python -m helpdesk.local`: what the Makefile calls."""

import argparse
import sys
from pathlib import Path

from helpdesk.local.data import TEST_DATA, FolderInUse, data_folder, forget
from helpdesk.local.run import CannotRun, run, with_servers
from helpdesk.local.servers import ServerError


def main() -> int:
    """Returns the exit status. What a person can do something about is one line, not a traceback."""
    parser = argparse.ArgumentParser(prog="python -m helpdesk.local")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="run the helpdesk until Ctrl-C")
    commands.add_parser("reset", help="forget all local data")
    serve = commands.add_parser("with-servers", help="run a command with the private servers")
    serve.add_argument("--data", type=Path, default=data_folder(), help="the data folder")
    serve.add_argument("--fast", action="store_true", help="no durability: for tests")
    serve.add_argument("words", nargs=argparse.REMAINDER, metavar="-- command")
    arguments = parser.parse_args()
    try:
        match arguments.command:
            case "run":
                run()
            case "reset":
                forget(TEST_DATA, data_folder())
            case "with-servers":
                words = arguments.words[arguments.words[:1] == ["--"] :]
                if not words:
                    serve.error("which command?")
                return with_servers(words, arguments.data.resolve(), fast=arguments.fast)
    except (CannotRun, FolderInUse, ServerError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
