"""What the site prints about requests: a line each, with no one-time link in it."""

from __future__ import annotations

import copy
import logging
import re

# whoever reads the log must not be able to use a link that was not used yet
_LINK = re.compile(r"(/setup/)[^\s/?#'\"]+")


class Line(logging.Formatter):
    """One line for what was the visitor's fault; where and why for what was ours."""

    def format(self, record: logging.LogRecord) -> str:
        status = getattr(record, "status_code", None)
        if isinstance(status, int) and status < 500:
            record = copy.copy(record)  # other handlers get it as it is
            record.exc_info = record.exc_text = record.stack_info = None
        return _LINK.sub(r"\1…", super().format(record))
