#!/usr/bin/env python3
"""Makes share/slope.1, the manual page, and share/slope.bash, completion for bash, from the tables of the command line.

    scripts/command_pages.py            writes both
    scripts/command_pages.py --check    says which is not current
"""
import ast
import re
from pathlib import Path

import made

ROOT = Path(__file__).resolve().parent.parent
MANUAL, COMPLETION = ROOT / "share" / "slope.1", ROOT / "share" / "slope.bash"
STRING = r'"(?:[^"\\]|\\.)*"'
COMMAND = re.compile(rf"^COMMAND\((\w+), (\w+), ({STRING}), ({STRING})\)", re.MULTILINE)
OPTION = re.compile(rf"^OPTION\(\w+, ({STRING}), ([A-Z| ]+), (NULL|{STRING}), ({STRING})\)", re.MULTILINE)
TARGET = re.compile(r'^TARGET\(\w+, "([^"]+)"', re.MULTILINE)


def text_of(literal):
    return "" if literal == "NULL" else ast.literal_eval(literal)


def read():
    """Commands as (name, capitals, arguments, meaning), options as (flag, commands or None, argument, meaning), targets."""
    commands = [(name, capitals, text_of(after), text_of(meaning))
                for name, capitals, after, meaning in COMMAND.findall((ROOT / "src/cli/commands.def").read_text())]
    options = []
    for name, users, argument, meaning in OPTION.findall((ROOT / "src/cli/options.def").read_text()):
        flag = text_of(name)
        flag = f"-{flag}" if len(flag) == 1 else f"--{flag}"
        options.append((flag, None if "ANY" in users else set(users.split(" | ")), text_of(argument), text_of(meaning)))
    return commands, options, TARGET.findall((ROOT / "src/emit/targets.def").read_text())


def version():
    return re.search(r'#define SLOPE_VERSION "([^"]+)"', (ROOT / "include/slope.h").read_text())[1]


def roff(text):
    """Text as roff takes it."""
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))


def option_rows(options):
    for flag, _, argument, meaning in options:
        yield ".TP"
        yield f".B {roff(flag)}" + (f" \\fI{roff(argument)}\\fR" if argument else "")
        yield roff(meaning[0].upper() + meaning[1:]) + "."


def make_manual():
    commands, options, targets = read()
    lines = [f'.TH SLOPE 1 "" "Slope {version()}" "User commands"', ".SH NAME", "slope \\- compiler for differentiable programs in Slang",
             ".SH SYNOPSIS"]
    for name, _, after, _ in commands:
        lines += [f".B slope {name}", f"\\fI{roff(after)}\\fR [\\fIoption\\fR ...]", ".br"]
    lines += [".B slope help", "\\fIcommand\\fR", ".br", ".B slope version", ".SH DESCRIPTION",
              "Slope compiles and runs programs in Slang, and makes derivatives of functions that are marked [Differentiable]. A file named \\- is",
              "standard input.", ".SH COMMANDS"]
    for name, _, _, meaning in commands:
        lines += [".TP", f".B {name}", roff(meaning[0].upper() + meaning[1:]) + "."]
    lines += [".SH OPTIONS OF ALL COMMANDS", *option_rows(option for option in options if option[1] is None)]
    for name, capitals, _, _ in commands:
        own = [option for option in options if option[1] and capitals in option[1]]
        if own:
            lines += [f".SH OPTIONS OF {capitals}", *option_rows(own)]
    lines += [".SH TARGETS", roff(", ".join(targets)) + ".", ".SH EXIT STATUS",
              "0: all is well. 1: the program has errors. 2: the command was used wrongly. 3: a fault in Slope itself."]
    return "\n".join(lines) + "\n"


def flags_of(options, capitals):
    return " ".join(flag for flag, users, _, _ in options if users is None or capitals in users)


def make_completion():
    commands, options, targets = read()
    cases = "\n".join(f'    {name}) flags="{flags_of(options, capitals)}" ;;' for name, capitals, _, _ in commands)
    return f"""# Completion of slope for bash. Made by scripts/command_pages.py.
_slope() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} flags=
    if [ "$COMP_CWORD" = 1 ] || {{ [ "$COMP_CWORD" = 2 ] && [ "$before" = help ]; }}; then
        COMPREPLY=($(compgen -W "{" ".join(name for name, *_ in commands)} help version" -- "$word") $(compgen -f -X '!*.slang' -- "$word"))
        return
    fi
    case $before in
    -target | --target) COMPREPLY=($(compgen -W "{" ".join(targets)}" -- "$word")); return ;;
    --fp) COMPREPLY=($(compgen -W "strict contract fast" -- "$word")); return ;;
    -I) COMPREPLY=($(compgen -d -- "$word")); return ;;
    esac
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    case $word in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -X '!*.slang' -- "$word") $(compgen -d -- "$word")) ;;
    esac
}}
complete -o filenames -F _slope slope
"""


PAGES = {MANUAL: make_manual, COMPLETION: make_completion}


def check():
    return [f"{path.relative_to(ROOT)} is not current; run scripts/command_pages.py" for path, make in PAGES.items()
            if not path.exists() or path.read_text() != make()]


def write():
    for path, make in PAGES.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(make())


if __name__ == "__main__":
    made.run(write, check)
