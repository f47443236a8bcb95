"""Commands of `slope` on a GPU, in processes that stay: to open a GPU takes longer than most programs run. See tests/serve/serve.c."""
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from pathlib import Path

SEPARATOR = "\x1f"


class Process:
    def __init__(self, program, environment):
        self.folder = Path(tempfile.mkdtemp(prefix="slope-served-"))
        weakref.finalize(self, shutil.rmtree, self.folder, True)
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=dict(os.environ, LC_ALL="C", NO_COLOR="1", SLOPE_CACHE="", **environment))

    def run(self, words, folder, seconds):
        out, messages = self.folder / "out", self.folder / "messages"
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(SEPARATOR.join([str(folder), str(out), str(messages), "slope", *words]) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except OSError:
            answer = ""
        in_time = timer.is_alive()
        timer.cancel()
        if not in_time:
            raise subprocess.TimeoutExpired(words, seconds)
        status = int(answer) if answer.strip() else self.process.wait()
        return subprocess.CompletedProcess(words, status, self.read(out), self.read(messages))

    @staticmethod
    def read(path):
        return path.read_bytes() if path.exists() else b""


class Served:
    """As many processes as are used at the same time."""

    def __init__(self, build, environment=None):
        self.environment = environment or {}
        self.program, self.idle = Path(build).resolve() / "tests" / "serve", queue.SimpleQueue()

    def run(self, words, folder=".", seconds=120, is_last=False):
        """Like subprocess.run of slope with these words, in bytes. `is_last`: the process runs nothing else."""
        try:
            process = self.idle.get_nowait()
        except queue.Empty:
            process = Process(self.program, self.environment)
        result = process.run([str(word) for word in words], Path(folder).resolve(), seconds)
        if process.process.poll() is None and result.returncode >= 0 and not is_last and not self.is_lost(result):
            self.idle.put(process)
        else:
            process.process.send_signal(signal.SIGKILL)
        return result

    def run_on_gpu(self, words, folder=".", seconds=120, is_last=False):
        """The same on a GPU, whose memory others may have filled for a while: a process keeps what its kernels had on their stacks."""
        for pause in (0.5, 1, 2, 4, 8, 0):
            result = self.run(["run", "--device", "cuda", *words], folder, seconds, is_last)
            if b"CUDA_ERROR_OUT_OF_MEMORY" not in result.stderr:
                break
            time.sleep(pause)
        return result

    def close(self):
        """Ends those that are idle, and gives back what they hold."""
        while not self.idle.empty():
            process = self.idle.get_nowait().process
            process.kill()
            process.wait()

    @staticmethod
    def is_lost(result):
        """After some errors a GPU's context is of no more use."""
        return b"CUDA_ERROR" in result.stderr
