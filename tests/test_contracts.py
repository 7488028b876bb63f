"""Promises about the package as a whole: imports, names, configuration."""

import ast
import importlib
import inspect
import pathlib
import subprocess
import sys
import textwrap
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import arborax as abx


ROOT = pathlib.Path(__file__).parents[1]
SOURCE = ROOT / "src" / "arborax"
LABORATORY = ROOT / "src" / "arborax_experiments"

# The interface that other rooms and users rely on.
PUBLIC = """
    Shuffle GrossmanLarson MuntheKaasWright Ito BranchedWords MultiIndex
    AbstractHopfAlgebra AbstractGeometry AbstractSolver
    signature log_signature combine signature_from_increments rough_path
    selected_signature
    Euclidean SO SE SPD Sphere Hyperbolic Product
    solve CFEES25 CFEES27 LieEuler Magnus RKMK RoughTerm LogODE LinearFields
    signature_tree merge_channels
    CheckpointedAdjoint ReversibleAdjoint
    signature_kernel mmd signature_score
    fit save load register export
    citation
""".split()


def _run(code):
    """Run Python code in a process that has not imported anything yet."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
    )


def _callables():
    """Public functions and methods of the rooms, with their parameters."""
    rooms = "paths signatures geometry lifts solvers kernels models training datasets"
    rooms += " estimators plots"
    for room in rooms.split():
        for name, value in vars(importlib.import_module(f"arborax.{room}")).items():
            home = getattr(value, "__module__", None) or ""
            if name.startswith("_") or not home.startswith("arborax."):
                continue
            if inspect.isclass(value) and issubclass(value, Exception):
                continue
            found = {name: value} if callable(value) else {}
            if inspect.isclass(value):
                found |= {
                    f"{name}.{method}": function
                    for method, function in vars(value).items()
                    if inspect.isfunction(function) and not method.startswith("_")
                }
            for title, function in found.items():
                yield f"{room}.{title}", inspect.signature(function).parameters


def test_keys_by_keyword_and_algebras_after_data():
    checked = 0
    for name, parameters in _callables():
        if "key" in parameters:
            key = parameters["key"]
            assert key.kind is key.KEYWORD_ONLY, f"{name}: `key` must be by keyword"
            checked += 1
        function = name.rpartition(".")[2][0].islower()
        if function and "alg" in parameters:
            first, *more = (p for p in parameters if p != "self")
            assert first != "alg" or not more, f"{name}: data come before the algebra"
            checked += 1
    assert checked > 30


def test_import_contracts():
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from importlinter.cli import lint_imports_command as c; c()",
            "--no-cache",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_exists_and_is_documented(name):
    assert inspect.getdoc(getattr(abx, name))


def test_core_imports_without_extras():
    result = _run(
        """
        import sys
        for name in ("matplotlib", "narwhals", "optax", "optuna", "orbax", "sklearn",
                     "tqdm", "tyro"):
            sys.modules[name] = None
        before = dict(__import__("jax").config.values)
        import arborax
        after = dict(__import__("jax").config.values)
        assert before == after, "importing arborax changed the configuration of JAX"
        """
    )
    assert result.returncode == 0, result.stderr


def test_import_is_light_and_lazy_names_are_the_typed_ones():
    """What costs time or is optional waits for its first use."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    (branch,) = (node for node in tree.body if isinstance(node, ast.If))
    names, rooms = set(), set()
    for node in branch.body:
        assert isinstance(node, ast.ImportFrom)
        found = {alias.asname for alias in node.names}
        names |= found if node.module else set()
        rooms |= {node.module} if node.module else found
    result = _run(
        """
        import sys
        import arborax
        heavy = {"diffrax", "optimistix", "optax", "matplotlib", "sklearn", "pandas"}
        print(*(heavy & set(sys.modules)))
        before = set(vars(arborax))
        lazy = set(dir(arborax)) - before
        assert all(getattr(arborax, name) is not None for name in lazy)
        assert not hasattr(arborax, "no_such_name")
        print(*lazy)
        """
    )
    assert result.returncode == 0, result.stderr
    heavy, lazy = result.stdout.splitlines()
    assert not heavy.split()
    assert set(lazy.split()) == names | rooms


@pytest.mark.parametrize(
    "path", sorted((SOURCE / "algebra").glob("*.py")), ids=lambda path: path.name
)
def test_algebra_does_not_import_jax(path):
    """Also inside functions, where import-linter looks but readers may not."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        assert not any(name.split(".")[0] == "jax" for name in names), path


def _imports(path):
    """Modules that a file imports, with the names taken from them; relative ones as
    they are written."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            yield "." * node.level + (node.module or ""), names


@pytest.mark.parametrize(
    "path",
    sorted(LABORATORY.rglob("*.py")),
    ids=lambda path: str(path.relative_to(LABORATORY)),
)
def test_laboratory_imports_public_names(path):
    """Nothing private of the library, and no experiment imports another one."""
    experiments = {p.parent.name for p in LABORATORY.glob("*/task.py")} - {"harness"}
    assert {"recovery", "rotations", "rough_bergomi", "spd"} <= experiments
    for module, names in _imports(path):
        parts = [*module.lstrip(".").split("."), *names]
        if module.split(".")[0] in ("arborax", "arborax_experiments"):
            assert not any(part.startswith("_") for part in parts), f"{module}: {names}"
        if path.parent.name in experiments | {"harness"} and module.startswith(".."):
            assert not experiments & set(parts), f"{module}: {names}"


ROOMS = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE]


def test_rooms_import_public_names_of_each_other():
    for path in ROOMS:
        for module, names in _imports(path):
            if module.startswith("..") or module.split(".")[0] == "arborax":
                parts = module.lstrip(".").removeprefix("arborax.").split(".")
                private = [part for part in (*parts, *names)[1:] if part[0] == "_"]
                assert not private, f"{path}: {module} {names}"


def test_primitives_are_in_the_cellar():
    places = [p for p in SOURCE.rglob("*.py") if "= Primitive(" in p.read_text()]
    assert {path.parent.name for path in places} == {"_xla"}
    assert sum(path.read_text().count("= Primitive(") for path in places) <= 6


def test_no_room_asks_which_algebra_or_geometry_it_has():
    """What differs between them is a method; only their own rooms know the classes."""
    kinds = {
        name: {
            n
            for n in vars(getattr(abx, name))
            if n[0].isupper() and n[:8] != "Abstract"
        }
        for name in ("algebra", "geometry")
    }
    for path in ROOMS:
        others = set().union(*(k for n, k in kinds.items() if n != path.parent.name))
        for node in ast.walk(ast.parse(path.read_text())):
            call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if call and node.func.id in ("isinstance", "issubclass"):
                asked = {
                    n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)
                }
                assert not asked & others, f"{path}, line {node.lineno}"


def test_harness_names_no_model_and_no_experiment():
    from arborax_experiments import tasks

    words = {name for task in tasks().values() for name in (task.name, *task.models)}
    # The default of `--model`, which the command line has too.
    words -= {"bnrde"}
    for path in (LABORATORY / "harness").glob("*.py"):
        strings = {
            node.value
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not strings & words, path


def _pins(name):
    lines = (ROOT / name).read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): number for name, number in pairs}


def _requirements():
    """Of the core and of each extra, with the extra's name; `bench` and `rivals` pin
    their own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {"": project["dependencies"]} | project["optional-dependencies"]
    del extras["bench"], extras["rivals"]
    for extra, texts in extras.items():
        for text in texts:
            requirement = Requirement(text)
            yield extra, canonicalize_name(requirement.name), requirement.specifier


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-lowest.txt"])
def test_constraints_hold_names_and_numbers_only(name):
    for line in (ROOT / name).read_text().splitlines():
        if line and not line.startswith("#"):
            package, _, number = line.partition("==")
            assert package and number and not set("/@: ") & set(line), line


def test_constraints_allow_every_extra():
    """The job `installs` tries it; this finds a forgotten line sooner."""
    pins = _pins("constraints.txt")
    for extra, name, wanted in _requirements():
        assert name in pins and pins[name] in wanted, f"{extra}: {name}{wanted}"


def test_lower_bounds_are_the_tested_ones():
    pins = _pins("constraints-lowest.txt")
    stated = {
        name: str(wanted).removeprefix(">=")
        for extra, name, wanted in _requirements()
        if extra not in ("docs", "lint")
    }
    assert {n: Version(v) for n, v in pins.items()} == {
        n: Version(v) for n, v in stated.items()
    }
