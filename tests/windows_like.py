"""Python without what Windows lacks, for tests on other systems.

A process that is started with these variables of the environment has no ``fcntl``, ``resource`` or
``fork``, its locale and its console are not UTF-8, and kgwb may not rely on the locale. So have the
processes that it starts. The names of files and the ends of lines stay those of this system.
"""

from __future__ import annotations

import os
from pathlib import Path

WITHOUT_WINDOWS_LACKS = '''
import os, signal, subprocess, sys, warnings

for name in ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None
for name in """
    chown fchmod fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid
    initgroups killpg lchown mkfifo mknod nice openpty posix_spawn pread pwrite register_at_fork
    sched_getaffinity setpgid setsid setuid sync sysconf tcgetpgrp wait wait3 wait4
    O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK
""".split():
    vars(os).pop(name, None)
for name in ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGXCPU", "alarm"):
    vars(signal).pop(name, None)
warnings.filterwarnings("error", category=EncodingWarning, module=r"kgwb\\b")
'''


def environment(folder: Path) -> dict[str, str]:
    """Write the module that Python imports when it starts, and return the variables that name it."""
    start = folder / "start"
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text(WITHOUT_WINDOWS_LACKS, encoding="utf-8")
    inherited = os.environ.get("PYTHONPATH", "")
    return dict(os.environ) | {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(start), inherited))),
        "PYTHONWARNDEFAULTENCODING": "1",
        "PYTHONIOENCODING": "cp1252",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "LC_ALL": "C",
        "KGWB_EMBEDDINGS": "",
    }
