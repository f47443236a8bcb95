"""What docs/python.md shows is what happens; the examples find what they look for."""
import contextlib
import doctest
import io
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_the_page_is_true():
    text = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```\n", text, re.MULTILINE | re.DOTALL)
    parser, runner, names = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=FLAGS), {}
    said = []
    for number, block in enumerate(blocks):
        if "import torch" in block and not has("torch"):
            continue
        test = parser.get_doctest(block, names, f"block {number}", "docs/python.md", 0)
        runner.run(test, out=said.append, clear_globs=False)
        names = test.globs
    assert runner.tries > 15 and not runner.failures, "".join(said)


def test_the_front_page_is_true(tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spring.slang").write_text(re.search(r"^\$ cat spring.slang\n(.*?)^\$", text, re.MULTILINE | re.DOTALL)[1])
    block = re.search(r"^```python\n(.*?)^```\n", text, re.MULTILINE | re.DOTALL)[1]
    test, said = doctest.DocTestParser().get_doctest(block, {}, "README.md", "README.md", 0), []
    found = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
    assert found.attempted == 3 and not found.failed, "".join(said)


def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


@pytest.mark.parametrize("notebook", sorted((ROOT / "examples" / "python").glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks(notebook):
    """Every cell prints what is kept in it."""
    names, checked = {}, 0
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), notebook.name, "exec"), names)
        kept = "".join("".join(output.get("text", [])) for output in cell["outputs"])
        assert printed.getvalue() == kept
        checked += bool(kept)
    assert checked


@pytest.mark.parametrize("example", sorted((ROOT / "examples" / "python").glob("*.py")), ids=lambda path: path.name)
def test_examples(example):
    text = example.read_text()
    needs = re.findall(r"^(?:import|from) (torch|matplotlib)", text, re.MULTILINE)
    if not all(map(has, needs)):
        pytest.skip(f"needs {needs}")
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    result = subprocess.run([sys.executable, "-B", str(example)], env=environment, capture_output=True, text=True, timeout=180)
    assert result.returncode == 0, result.stderr
    wanted = re.search(r'^# prints:\n((?:# .*\n)+)', text, re.MULTILINE)
    assert wanted and result.stdout == re.sub(r"^# ", "", wanted[1], flags=re.MULTILINE)
