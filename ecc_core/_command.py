"""The entry point of ``ecc``, which reports an interrupt in one line even while it is imported."""

import os
import signal
import sys


def main() -> int:
    """Run ``ecc`` with the arguments of the process, and return its exit code."""
    # Some libraries swallow a KeyboardInterrupt while they are imported.
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, _stop)
    from ecc_core.cli import main as run

    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


def _stop(*_: object) -> None:
    """End the process at once, as a handler of SIGINT."""
    os.write(2, b"ecc: interrupted\n")
    os._exit(128 + signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
