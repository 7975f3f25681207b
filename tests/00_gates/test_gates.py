"""The gates hold on this tree, and each refuses what it is there to refuse.

What is planted is planted in a copy under a temporary folder.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
RELEASE = ROOT / "build" / "release"


def run(*argv: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in argv], cwd=cwd, capture_output=True, text=True, check=False)


def gate(name: str, *options: str | Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, TOOLS / name, *options)


def accepts(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, result.stdout + result.stderr


def refuses(result: subprocess.CompletedProcess[str], *words: str) -> None:
    output = result.stdout + result.stderr
    assert result.returncode == 1, output
    for word in words:
        assert word in output, output


def names_without_meaning(*folders: Path) -> list[str]:
    """Where Python code uses a name that nothing has given a value yet."""
    found = run(sys.executable, "-m", "pyflakes", *folders)
    assert not found.stderr, found.stderr
    return [line for line in found.stdout.splitlines() if "undefined name" in line or "referenced before assignment" in line]


# The tree as it stands.


def test_names_in_python_code_mean_something() -> None:
    folders = ("backends", "bindings", "examples", "tests", "tools")
    assert names_without_meaning(*(ROOT / folder for folder in folders)) == []


def test_a_name_that_hides_a_function_is_refused(tmp_path: Path) -> None:
    (tmp_path / "load.py").write_text("def run():\n    return 1\n\n\ndef twice():\n    first = run()\n    run = first + run()\n    return run\n")
    assert len(names_without_meaning(tmp_path)) == 1


def test_layers_hold() -> None:
    accepts(gate("check_layers.py"))


def test_symbols_hold() -> None:
    accepts(gate("check_symbols.py", "--build", RELEASE))


def test_tidy_holds() -> None:
    accepts(gate("tidy.py"))


def test_c_files_are_formatted() -> None:
    accepts(run(TOOLS / "format.sh", "--check"))


def test_each_room_can_be_taken_out() -> None:
    """That the rest builds and works then, is what the script shows without the option."""
    accepts(gate("without.py", "--unbuilt"))


def test_pages_are_what_their_tables_say() -> None:
    accepts(gate("pages.py", "--check"))


def test_pages_differ_from_a_changed_table(tmp_path: Path) -> None:
    for name in ("src/server/options/options.def", "src/metrics/metric.def", "docs/user/command-line.md", "docs/user/metrics.md",
                 "bindings/python/nereid/_options.py"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    accepts(gate("pages.py", "--check", "--root", tmp_path))
    for name in ("src/server/options/options.def", "src/metrics/metric.def"):
        table = tmp_path / name
        text = table.read_text()
        table.write_text(text.replace("Serve HTTP.", "Serve it.").replace("Open connections", "All connections"))
    refuses(gate("pages.py", "--check", "--root", tmp_path), "command-line.md", "metrics.md")


def test_shell_scripts_parse() -> None:
    for script in sorted(TOOLS.glob("*.sh")):
        accepts(run("bash", "-n", script))


# A wrong include.


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the layer gates read; test_layers_hold says that nothing is found in it."""
    for name in ("src", "include", "backends", "proto", "cmake", "web"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("CMakeLists.txt", "LICENSE", "THIRD_PARTY"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def plant(tree: Path, name: str, text: str) -> None:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("name", "include", "what"),
    [
        ("src/base/planted.c", '"os/clock.h"', "no edge base -> os"),
        ("src/codec/planted.h", '"model/datatype.h"', "no edge codec -> model"),
        ("src/model/planted.c", '"infer/planted.h"', "no edge model -> infer"),
        ("src/codec/planted.c", '"base/planted_priv.h"', "private to src/base"),
        ("src/codec/planted.c", '"planted.h"', "not written from src/"),
        ("src/codec/planted.c", '"../os/clock.h"', "not written from src/"),
        ("src/codec/planted.c", '"nereid_private.h"', "not written from src/"),
        ("src/codec/planted.c", "<pthread.h>", "is for src/os"),
        ("src/codec/planted.c", "<os/no_such_header.h>", "does not exist"),
        ("src/planted/planted.c", "<stdio.h>", "src/planted has no line"),
        ("src/server/planted/planted.c", "<stdio.h>", "src/server/planted has no line"),
        ("src/server/options/planted.c", '"server/server.h"', "no edge server/options -> server"),
        ("src/main.c", '"base/err.h"', "main.c sees public headers"),
        ("backends/planted/planted.c", '"base/err.h"', "a backend may not include"),
        ("backends/planted/planted.c", '"../../src/base/err.h"', "a backend may not include"),
        ("bindings/planted/planted.c", '"base/err.h"', "the package may not include"),
    ],
)
def test_planted_include_is_refused(tree: Path, name: str, include: str, what: str) -> None:
    plant(tree, name, f"#include {include}\n")
    result = gate("check_layers.py", "--root", tree)
    assert result.returncode == 1
    assert any(line.startswith(f"{name}:1: ") and what in line for line in result.stdout.splitlines()), result.stdout


# A cycle.


def edit_layers(tree: Path, line: str, instead: str) -> None:
    path = tree / "src" / "LAYERS"
    text = path.read_text()
    assert text.count(line + "\n") == 1
    path.write_text(text.replace(line + "\n", instead + "\n"))


def configure(tree: Path) -> subprocess.CompletedProcess[str]:
    options = [f"-DNEREID_DEPS={ROOT / 'build' / 'deps'}", f"-DNEREID_VENV={ROOT / 'build' / 'venv'}", "-DNEREID_TESTS=OFF"]
    return run("cmake", "-G", "Ninja", "-S", tree, "-B", tree / "build" / "planted", *options)


def test_planted_cycle_fails_generation(tree: Path) -> None:
    accepts(configure(tree))
    edit_layers(tree, "0 base:", "0 base: os")
    result = configure(tree)
    assert result.returncode != 0
    for word in ("strongly connected component", '"nereid_base"', '"nereid_os"', "GLOBAL_DEPENDS_NO_CYCLES"):
        assert word in result.stderr, result.stderr


def test_planted_cycle_is_refused_by_the_layer_check(tree: Path) -> None:
    edit_layers(tree, "0 base:", "0 base: os")
    refuses(gate("check_layers.py", "--root", tree), "the edge base -> os does not go down", "cycle: base -> os -> base")


def test_edge_that_nothing_uses_is_refused(tree: Path) -> None:
    edit_layers(tree, "1 codec: base os", "1 codec: base os proto")
    refuses(gate("check_layers.py", "--root", tree), "nothing in codec includes anything of proto: the edge is not used")


def test_level_out_of_order_is_refused(tree: Path) -> None:
    edit_layers(tree, "0 base:", "3 base:")
    refuses(gate("check_layers.py", "--root", tree), "os on level 0 stands after a higher level")


# An export.


def compile_shared(path: Path, source: str, *options: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_suffix(".c")
    file.write_text(source)
    accepts(run("gcc", "-shared", "-fPIC", *options, "-o", path, file))


def compile_archive(path: Path, stem: str, source: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file, obj = path.parent / f"{stem}.c", path.parent / f"{stem}.c.o"
    file.write_text(source)
    accepts(run("gcc", "-c", "-o", obj, file))
    path.unlink(missing_ok=True)
    accepts(run("ar", "rcs", path, obj))


LIBRARY = "int TRITONSERVER_ApiVersion(void) { return 0; }\nint nereid_private_v1;\n"
BACKEND = "int TRITONBACKEND_ApiVersion(void);\nint TRITONBACKEND_Initialize(void) { return TRITONBACKEND_ApiVersion(); }\n"


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build tree in miniature that the symbol check accepts."""
    build = tmp_path / "build"
    compile_shared(build / "lib" / "libtritonserver.so", LIBRARY)
    compile_archive(build / "libnereid_batching.a", "batcher", "int batcher_take(void) { return 0; }\n")
    compile_shared(build / "backends" / "x" / "libtriton_x.so", BACKEND)
    accepts(gate("check_symbols.py", "--build", build))
    return build


def test_planted_export_is_refused(build: Path) -> None:
    compile_shared(build / "lib" / "libtritonserver.so", LIBRARY + "int planted_export(void) { return 0; }\n")
    refuses(gate("check_symbols.py", "--build", build), "libtritonserver.so exports planted_export")


def test_second_private_symbol_is_refused(build: Path) -> None:
    compile_shared(build / "lib" / "libtritonserver.so", LIBRARY + "int nereid_private_v2;\n")
    refuses(gate("check_symbols.py", "--build", build), "exports nereid_private_v2")


def test_missing_private_symbol_is_refused(build: Path) -> None:
    compile_shared(build / "lib" / "libtritonserver.so", "int TRITONSERVER_ApiVersion(void) { return 0; }\n")
    refuses(gate("check_symbols.py", "--build", build), "exactly one nereid_private_v1")


def test_many_thread_local_variables_are_refused(build: Path) -> None:
    compile_shared(build / "lib" / "libtritonserver.so", LIBRARY + "static _Thread_local char planted[512];\n")
    accepts(gate("check_symbols.py", "--build", build))
    compile_shared(build / "lib" / "libtritonserver.so", LIBRARY + "static _Thread_local char planted[513];\n")
    refuses(gate("check_symbols.py", "--build", build), "libtritonserver.so has 513 bytes of thread-local variables")


def test_version_script_hides_a_planted_export(build: Path) -> None:
    library = build / "lib" / "libtritonserver.so"
    script = f"-Wl,--version-script={ROOT / 'src' / 'libtritonserver.map'}"
    compile_shared(library, LIBRARY + "int planted_export(void) { return 0; }\n", script)
    accepts(gate("check_symbols.py", "--build", build))


def test_symbol_without_its_files_stem_is_refused(build: Path) -> None:
    compile_archive(build / "libnereid_batching.a", "batcher", "int planted_take(void) { return 0; }\n")
    refuses(gate("check_symbols.py", "--build", build), "batching/batcher.c: global planted_take does not begin with batcher_")


def test_public_name_outside_abi_file_is_refused(build: Path) -> None:
    source = "int TRITONSERVER_Planted(void) { return 0; }\n"
    compile_archive(build / "libnereid_abi.a", "server_abi", source)
    accepts(gate("check_symbols.py", "--build", build))
    compile_archive(build / "libnereid_abi.a", "server", source)
    refuses(gate("check_symbols.py", "--build", build), "TRITONSERVER_Planted does not begin with server_")


def test_backend_with_a_needed_entry_is_refused(build: Path) -> None:
    compile_shared(build / "lib" / "libtritonserver.so", LIBRARY, "-Wl,-soname,libtritonserver.so")
    needs = ["-Wl,--no-as-needed", f"-L{build / 'lib'}", "-ltritonserver"]
    compile_shared(build / "backends" / "x" / "libtriton_x.so", BACKEND, *needs)
    refuses(gate("check_symbols.py", "--build", build), "libtriton_x.so has a NEEDED entry for libtritonserver.so")


def test_backend_with_a_planted_export_is_refused(build: Path) -> None:
    compile_shared(build / "backends" / "x" / "libtriton_x.so", BACKEND + "int nereid_planted;\n")
    refuses(gate("check_symbols.py", "--build", build), "libtriton_x.so exports nereid_planted")


@pytest.mark.parametrize(
    ("place", "function"),
    [
        ("caches/x/libtritoncache_x.so", "TRITONCACHE_CacheLookup"),
        ("repoagents/x/libtritonrepoagent_x.so", "TRITONREPOAGENT_ModelAction"),
    ],
)
def test_cache_and_agent_with_a_planted_export_are_refused(build: Path, place: str, function: str) -> None:
    source = f"int {function}(void) {{ return 0; }}\n"
    compile_shared(build / place, source)
    accepts(gate("check_symbols.py", "--build", build))
    compile_shared(build / place, source + "int TRITONBACKEND_Planted;\n")
    refuses(gate("check_symbols.py", "--build", build), f"{Path(place).name} exports TRITONBACKEND_Planted")


# What tidy sees. The words are put together here, so that this file does not hold them.


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("src/codec/x.c", "void f(char *a) { str" + 'cpy(a, "b"); }\n', ["src/codec/x.c:1", "is banned"]),
        ("src/codec/x.c", "void *f(void) { return mal" + "loc(1); }\n", ["outside base/ and os/"]),
        ("src/codec/x.c", "void f(void) { pthread_self(); }\n", ["outside base/ and os/"]),
        ("src/codec/x.c", "void f(void)\n{\n" + "    g();\n" * 71 + "}\n", ["src/codec/x.c:2", "function of 71 lines"]),
        ("src/codec/x.c", "int a;\n" * 801, ["801 lines"]),
        ("src/codec/x.c", "\n/* " + "a" * 95 + " */\n", ["src/codec/x.c:2", "101 columns"]),
        ("src/codec/x.h", "struct x {\n    struct y\n        *y; /* why */\n};\n", ["src/codec/x.h:2", "a declaration in two lines"]),
        ("src/codec/x.h", "struct x {\n    bool (*f)(\n        int a); /* why */\n};\n", ["src/codec/x.h:2", "a declaration in two lines"]),
        ("src/codec/x.h", "int a;\n", ["nobody includes it"]),
        ("tests/00_unit/x.c", "void f(void) { usle" + "ep(1); }\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "import time\ntime.sle" + "ep(1)\n", ["test_x.py:2", "a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "time.sle" + "ep(1)  # allowed: because\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "select.sele" + "ct([], [], [], 1)\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "threading.Eve" + "nt().wa" + "it(0.5)\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "process.wa" + "it(0.5)\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "process.wa" + "it(timeout=2.5)\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "thread.jo" + "in(0.02)\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "process.ended_with" + "in(0.05)\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "select.sel" + "ect([x], [], [], t)\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "select.sel" + "ect([x, y], [z], [], 0.5)\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "assert got.sta" + "tus in (200, 404)\n", ["test_x.py:1", "content with one of several"]),
        ("tests/40_e2e/test_x.py", "    assert done.returncod" + "e in (0, 3), done.stderr\n", ["content with one of several"]),
        ("tests/40_e2e/test_x.py", "assert got.sta" + "tus == 200 or name in got.body\n", ["content with one of several"]),
        ("tests/40_e2e/test_x.py", "assert all(sta" + "tus == 200 or error for status, error in found)\n", ["content with one of several"]),
        ("tests/40_e2e/test_x.py", "assert sta" + "tus in MEASURED  # allowed: because\n", ["content with one of several"]),
        ("tests/40_e2e/plugins/x.c", "void f(void) { po" + "ll(NULL, 0, 100); }\n", ["a test that sleeps"]),
        ("tests/40_e2e/test_x.py", "@pytest.mark.sk" + "ip\ndef test_x(): ...\n", ["test_x.py:1", "left out and counts as passed"]),
        ("tests/40_e2e/test_x.py", "pytest.sk" + "ip('no')\n", ["left out and counts as passed"]),
        ("tests/40_e2e/test_x.py", "@pytest.mark.xf" + "ail\n", ["left out and counts as passed"]),
        ("tests/40_e2e/test_x.py", "x = pytest.importorsk" + "ip('x')\n", ["left out and counts as passed"]),
        ("tests/00_unit/x.c", "void f(void) { sk" + "ip(); }\n", ["left out and counts as passed"]),
        ("tests/40_e2e/test_x.py", "def test_x(): ...\n\ndef test_y(): ...\n\ndef test_x(): ...\n", ["test_x.py:5", "a second test_x: the one of line 1"]),
        ("tests/40_e2e/test_x.py", "class TestX:\n    def test_x(self): ...\n    async def test_x(self): ...\n", ["test_x.py:3", "a second test_x"]),
        ("cmake/x.cmake", "set_tests_properties(x PROPERTIES SKIP_RETURN_" + "CODE 77)\n", ["left out and counts as passed"]),
        ("tests/CMakeLists.txt", "set_tests_properties(x PROPERTIES DISAB" + "LED TRUE)\n", ["left out and counts as passed"]),
        ("tools/x.sh", "cd /wor" + "k/main\n", ["path of one machine"]),
        ("tools/x.sh", 'cd "$(dirname "$0")/.."\ncat "$0"\n', ["tools/x.sh:2", "$0 after cd"]),
        ("README.md", "see https://py" + "pi.org/x\n", ["package registry"]),
        ("src/codec/x.c", "/* TO" + "DO */\n", ["unfinished"]),
    ],
)
def test_tidy_refuses(tmp_path: Path, name: str, text: str, words: list[str]) -> None:
    accepts(gate("tidy.py", "--root", tmp_path))
    plant(tmp_path, name, text)
    refuses(gate("tidy.py", "--root", tmp_path), *words)


def test_two_static_functions_of_one_name_are_refused(tmp_path: Path) -> None:
    function = "static int take(struct x *x,\n                int (*fn)(int))\n{\n    return fn(1);\n}\n"
    plant(tmp_path, "src/codec/x.c", "int take(void);\n" + function)
    plant(tmp_path, "src/codec/y.c", "/* static int take(int a)\n{ */\nstatic int take_all(int a)\n{\n    return take(a);\n}\n")
    accepts(gate("tidy.py", "--root", tmp_path))
    plant(tmp_path, "backends/x/y.c", "\n" + function)
    refuses(gate("tidy.py", "--root", tmp_path), "src/codec/x.c:2", "take is a function of backends/x/y.c too")


def test_tidy_leaves_alone_what_is_fine(tmp_path: Path) -> None:
    fine = '/* str' + 'cpy() in a comment */\nvoid f(void)\n{\n    g("mal' + 'loc(1)", x->free(1), yyjson_doc_free(d));\n' + "    h();\n" * 69 + "}\n"
    fine += 'const char *reason_of_501 = "Not Imple' + 'mented";\n'  # the name of the status
    plant(tmp_path, "src/codec/x.c", fine)
    plant(tmp_path, "src/os/x.c", "void *f(void) { return mal" + "loc(1); }\n")
    plant(tmp_path, "tests/40_e2e/test_x.py", "time.sle" + "ep(1)  # allowed: the property is that time passes\n")
    plant(tmp_path, "tests/40_e2e/y.py", "class A:\n    @property\n    def x(self): ...\n    @x.setter\n    def x(self, to): ...\n\n\nclass B:\n    def x(self): ...\n")
    waits = "process.wait(60)\nthread.join()\nprocess.wait(0)\n', '.join(names)\n"
    waits += "select.select([x], [], [], max(0, until - now))\nselect.select([x], [], [])\n"
    plant(tmp_path, "tests/40_e2e/z.py", waits)
    exact = 'assert got.status == (404 if cloud else 400)\nassert "in" in error and got.status == 400\nassert status not in (500, 503)\n'
    exact += "assert got.sta" + "tus in (500, 503)  # allowed: the process may end at any time\nif got.status in (200, 404): ...\n"
    plant(tmp_path, "tests/40_e2e/w.py", exact)
    plant(tmp_path, "tests/00_unit/x.c", "void f(void) { sk" + "ip(); } /* allowed: only for this very test */\n")
    accepts(gate("tidy.py", "--root", tmp_path))


def test_seeds_are_the_same_whenever_they_are_written(tmp_path: Path) -> None:
    """Dictionaries of messages have no order of their own."""
    corpora = []
    for name in ("one", "two"):
        program = f"import make_seeds, pathlib; make_seeds.CORPUS = pathlib.Path({str(tmp_path / name)!r}); make_seeds.main()"
        result = subprocess.run([sys.executable, "-c", program], cwd=ROOT / "fuzz", capture_output=True, text=True, check=False)
        accepts(result)
        corpora.append({path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()})
    assert corpora[0] and corpora[0] == corpora[1]
