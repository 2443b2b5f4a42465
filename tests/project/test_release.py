"""What a release needs: metadata that PyPI takes, a conda recipe, and one version."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
PYTHON = PROJECT["requires-python"].removeprefix(">=")


def text_of(*path: str) -> str:
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


def test_the_citation_names_the_same_repository():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert citation.get("repository-code") == PROJECT.get("urls", {}).get("Source")


def test_the_version_is_written_once():
    """Metadata, the citation and the recipe would have to agree at each release."""
    version = re.compile(rf"version\S*\s+\S*{re.escape(PROJECT['version'])}", re.IGNORECASE)
    assert not version.search(text_of("CITATION.cff"))
    assert not version.search(text_of("conda", "recipe.yaml"))


def test_the_conda_recipe_is_rendered_and_declares_the_same():
    source = Stage0Recipe.from_file(str(ROOT / "conda" / "recipe.yaml"))
    reads_files = PlatformConfig(experimental=True)
    (variant,) = source.render(VariantConfig(), RenderConfig(reads_files))
    recipe = variant.recipe.to_dict()
    assert recipe["build"]["noarch"] == "python"
    assert recipe["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    python = f"python >={PYTHON}"
    spaced = [re.sub(r"(?<=\w)(?=>=)", " ", line) for line in PROJECT["dependencies"]]
    assert recipe["requirements"]["run"] == [python, *spaced]
    (backend,) = PYPROJECT["build-system"]["requires"]
    assert recipe["requirements"]["host"] == [python, "pip", backend.replace(">=", " >=")]
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]


def test_texts_name_the_oldest_python():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile"]
    pages += [*ROOT.glob("docs/*.md"), *ROOT.glob("tools/*.sh")]
    told = {
        (page.name, version)
        for page in pages
        for version in re.findall(r"Python (\d\.\d+)(?= or\s(?:# )?newer)", page.read_text("utf-8"))
    }
    assert {version for _, version in told} == {PYTHON}
    assert {"README.md", "CONTRIBUTING.md", "start.md", "Makefile"} <= {name for name, _ in told}


def test_the_table_of_versions_is_that_of_the_metadata():
    rows = re.findall(r"^\| (\w+) \| ([^|]+) \|", text_of("docs", "support.md"), re.MULTILINE)
    versions = {name.lower(): version for name, version in rows}
    lines = chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    least = {at.name: str(at.specifier).removeprefix(">=") for at in map(Requirement, lines)}
    assert versions.pop("python") == PYTHON
    cupy = f"{least['cupy-cuda12x']} (CUDA 12), {least['cupy-cuda13x']} (CUDA 13)"
    assert versions.pop("cupy") == cupy
    assert versions
    assert versions == {name: least[name] for name in versions}


def test_workflows_name_commits_of_actions():
    """A tag can be moved to other code. The branch is what the authors of that action ask for."""
    used = {
        place
        for workflow in ROOT.joinpath(".github", "workflows").glob("*.yml")
        for place in re.findall(r"uses: (\S+)", workflow.read_text(encoding="utf-8"))
    }
    moving = {place for place in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", place)}
    assert used
    assert moving == {"pypa/gh-action-pypi-publish@release/v1"}


def test_fragments_of_the_changelog_have_names_that_towncrier_takes():
    kinds = {kind["directory"] for kind in PYPROJECT["tool"]["towncrier"]["type"]}
    names = {path.name for path in (ROOT / "changelog.d").iterdir()} - {"README.md"}
    assert {name for name in names if name.split(".")[-2] not in kinds} == set()
    assert PYPROJECT["tool"]["towncrier"]["start_string"] in text_of("CHANGELOG.md")
