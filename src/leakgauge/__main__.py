"""The entry point of ``leakgauge`` and of ``python -m leakgauge``."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # Python puts the working folder first, where a random.py would stand in for the library.
    sys.path.append(sys.path.pop(0))

import os
import signal

STOPPED = 130


def run() -> int:
    """Run the command line and return its exit code; Ctrl-C is told in one line from the first import on."""
    try:
        from leakgauge.cli.main import main

        code = main()
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        code = STOPPED
    if hasattr(signal, "pthread_sigmask"):  # nothing is left that a second Ctrl-C could stop
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if code == STOPPED:  # Python may end itself by the signal where Ctrl-C fell into an import, whatever is returned
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(STOPPED)
    return code


if __name__ == "__main__":
    sys.exit(run())
