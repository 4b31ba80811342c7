"""What makes results in the tests of `make_all`; light, since other processes import it."""

import os
import signal
import time


def write(path, value=""):
    path.mkdir()
    (path / "value").write_text(value, encoding="utf-8")


def fail(path):
    raise RuntimeError("out of memory")


def die(path):
    os.kill(os.getpid(), signal.SIGKILL)


def write_gpu_beside_another(path):
    """Wait until two processes are at work, and write which GPU this one has."""
    (path.parent / f"{os.getpid()}.here").touch()
    deadline = time.monotonic() + 120
    while len(list(path.parent.glob("*.here"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    write(path, os.environ.get("CUDA_VISIBLE_DEVICES", ""))


def write_while_another_begins(path):
    """Another call of `make_all` clears the logs of what is missing, this one's among them."""
    path.with_name(f"{path.name}.failed.log").unlink()
    write(path)


def write_slowly(path):
    time.sleep(0.2)
    write(path)
