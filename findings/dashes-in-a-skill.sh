#!/usr/bin/env bash
# A SKILL.md whose description has `---` inside a line, which is plain text in YAML.
# Guess: every reader ends the front matter at the first line that is `---`, so the description is whole.
# Seen: skills-ref 0.1.1 ends it at the first `---` anywhere. It gives the description up to there, loses the fields after it, and
# calls the skill valid. If the name comes after the description, it refuses the skill for having no name. So does agno 3.1.10, whose
# check does the same, while its own reader has all fields. python-frontmatter 1.3.0 reads both skills whole.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check skills-ref==0.1.1 agno==3.1.10 python-frontmatter==1.3.0
cat >seen.py <<'PY'
import pathlib

import frontmatter
import skills_ref
from agno.skills import LocalSkills

NAME = "name: tables\n"
DESCRIPTION = "description: Draw tables with --- between rows. Use when someone asks for a table.\n"
skill = pathlib.Path("tables")
skill.mkdir()


def by_skills_ref():
    read = skills_ref.read_properties(skill)
    return read.description, read.license, skills_ref.validate(skill) or "valid"


def by_agno():
    (read,) = LocalSkills(str(skill)).load()
    return read.description, read.license, "valid"


def by_frontmatter():
    read = frontmatter.load(skill / "SKILL.md")
    return read["description"], read["license"], "read"


for order, fields in (("name first", NAME + DESCRIPTION), ("description first", DESCRIPTION + NAME)):
    (skill / "SKILL.md").write_text(f"---\n{fields}license: MIT\n---\n\nUse pipes.\n")
    for read in (by_skills_ref, by_agno, by_frontmatter):
        try:
            description, license, state = read()
            print(f"{order}, {read.__name__}: {state}, ends with {description[-9:]!r}, license {license}")
        except Exception as error:
            print(f"{order}, {read.__name__}: {' '.join(str(error).splitlines())}")
PY
env/bin/python seen.py 2>&1 | tee seen
diff seen - <<'END'
name first, by_skills_ref: valid, ends with 'bles with', license None
name first, by_agno: valid, ends with ' a table.', license MIT
name first, by_frontmatter: read, ends with ' a table.', license MIT
description first, by_skills_ref: Missing required field in frontmatter: name
description first, by_agno: Missing required field in frontmatter: name
description first, by_frontmatter: read, ends with ' a table.', license MIT
END
