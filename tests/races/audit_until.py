"""One audit in a process of its own that dies at a named step: `python audit_until.py module name before|after`."""

import importlib
import os
import signal
import sys
from typing import Any

import django

django.setup()

from reminders.audit import runner  # noqa: E402  Django first
from reminders.states import Trigger  # noqa: E402

module_name, name, when = sys.argv[1:]
owner = importlib.import_module(module_name)
original = getattr(owner, name)


def deadly(*args: Any, **kwargs: Any) -> Any:
    if when == "after":
        original(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)


setattr(owner, name, deadly)
runner.audit(trigger=Trigger.COMMAND)
