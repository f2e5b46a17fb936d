"""Stands in for pip: fake_pip.py SHELF download ... -d FOLDER -r REQUIREMENTS; SHELF/modes.json says how it behaves."""

import json
import os
import signal
import sys
import time
from pathlib import Path


def say(text: str) -> None:
    print(text, flush=True)


def meet(log: Path, name: str) -> None:
    """Go on only when two processes have asked for this part."""
    while log.read_text().count(f"{name} ") < 2:
        time.sleep(0.01)


def serve(mode: str, wheel: Path, folder: Path) -> int:
    content = wheel.read_bytes()
    target = folder / wheel.name
    half = len(content) // 2
    say(f"Progress 0 of {len(content)}")
    if mode == "interrupt":
        os.kill(os.getppid(), signal.SIGINT)
        mode = "hang"
    if mode in {"half", "hang"}:
        target.write_bytes(content[:half])
        say(f"Progress {half} of {len(content)}")
        while mode == "hang":
            time.sleep(60)
        say("WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)': /simple/")
        say("ERROR: No matching distribution found for it")
        return 1
    failures = {
        "missing": "ERROR: No matching distribution found for it",
        "full": "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "hashes": "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
        "certificate": "WARNING: Retrying (...) after connection broken by 'SSLError(CERTIFICATE_VERIFY_FAILED)': /",
        "escape": "ERROR: \x1b[2J\x1b]52;c;AAAA\x07 gone wrong",
    }
    if mode in failures:
        say(failures[mode])
        return 1
    if mode == "nothing":
        return 0
    damaged = {"short": content[:half], "wrong": content[:half] + b"?" + content[half + 1 :], "long": content + b"?"}
    target.write_bytes(damaged.get(mode, content))
    say(f"Progress {len(content)} of {len(content)}")
    return 0


def main() -> int:
    shelf, arguments = Path(sys.argv[1]), sys.argv[2:]
    folder = Path(arguments[arguments.index("-d") + 1])
    requirement = Path(arguments[arguments.index("-r") + 1]).read_text().split()[0]
    name, version = requirement.split("==")
    log = shelf / "calls.log"
    with log.open("a") as file:
        file.write(f"{name} {os.getpid()}\n")
    (shelf / "last.json").write_text(json.dumps({"arguments": arguments, "environment": dict(os.environ)}))
    modes = shelf / "modes.json"
    script = json.loads(modes.read_text()).get(name, []) if modes.exists() else []
    turn = log.read_text().count(f"{name} ") - 1
    mode = script[turn] if turn < len(script) else "well"
    if mode == "meet":
        meet(log, name)
    return serve(mode, shelf / f"{name}-{version}.whl", folder)


sys.exit(main())
