"""The command of a script that makes files from the source: without arguments it writes them, with --check it says what is wrong."""
import sys


def run(write, check):
    """`write` and `check` return lines about what is wrong; the exit status is 1 if there are any."""
    problems = check() if "--check" in sys.argv[1:] else write()
    for line in problems or []:
        print(line)
    sys.exit(1 if problems else 0)
