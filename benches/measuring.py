"""What the benches share: running a command as a child and accounting for it, and saying what machine this is."""

import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def run(command):
    """Runs a command to its end: what it wrote on standard output, and its wall, user and system seconds and
    peak memory, from the kernel's own account of it. A command that fails ends the bench."""
    words = [os.fspath(word) for word in command]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        child = subprocess.Popen(words, stdout=output, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        child.returncode = 0
        output.seek(0)
        if status != 0:
            errors.seek(0)
            sys.exit(f"{' '.join(words)} failed ({status}): {errors.read().decode(errors='replace')}")
        return output.read(), {"wall_s": wall, "user_s": usage.ru_utime, "system_s": usage.ru_stime,
                               "rss_bytes": usage.ru_maxrss * 1024}


def machine():
    """Processor, cores, system and load, as results name them."""
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.processor())
    return {"cpu": model, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.release()}",
            "load": [round(load, 2) for load in os.getloadavg()]}
