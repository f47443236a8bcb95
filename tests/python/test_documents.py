"""What docs/python.md shows is what happens; the examples find what they look for."""
import contextlib
import doctest
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import zlib

import numpy as np
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
    return importlib.util.find_spec(module) is not None


def test_pictures_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "python"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # cannot be imported
    import gallery
    gallery.plot(str(tmp_path / "a.png"), {"one": np.eye(4), "other": np.ones((2, 3, 3))}, [3.0, 1.0, 0.1])
    data = (tmp_path / "a.png").read_bytes()
    assert data[16:24] == bytes([0, 0, 504 >> 8, 504 & 255, 0, 0, 0, 168])  # width and height
    pixels = zlib.decompress(data[data.index(b"IDAT") + 4:data.index(b"IEND") - 8])
    assert len(pixels) == 168 * (1 + 3 * 504)


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


EXAMPLES = [path for path in sorted((ROOT / "examples" / "python").glob("*.py")) if "# prints:" in path.read_text()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples(example, tmp_path):
    text = example.read_text()
    if "import torch" in text and not has("torch"):
        pytest.skip("needs PyTorch")
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    result = subprocess.run([sys.executable, "-B", str(example)], env=environment, capture_output=True, text=True, timeout=180,
                            cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for picture in re.findall(r'plot\("(\w+\.png)"', text):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    wanted = re.search(r'^# prints:\n((?:# .*\n)+)', text, re.MULTILINE)
    assert wanted and result.stdout == re.sub(r"^# ", "", wanted[1], flags=re.MULTILINE)
