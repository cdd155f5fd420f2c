#!/usr/bin/env bash
# A conversation as Markdown has blocks of code in three kinds of fences, as CommonMark allows: three backquotes, four backquotes around
# three, and tildes. Four programs split it at its two headings, `# Session` and `## Next`.
# Guess: two pieces, with the code unchanged; a comment in a block of code is no heading.
# Seen: langchain-text-splitters 1.1.3 takes the indentation from code and lists, ends the block with four backquotes at the three inside,
# drops the comment there as a heading, and gives all that follows this heading. LlamaIndex 0.14.25 also splits at a comment between
# tildes. Only Haystack 3.4.1 does as guessed.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check langchain-text-splitters==1.1.3 llama-index-core==0.14.25 haystack-ai==3.4.1
cat >session.md <<'END'
# Session

```python
for line in lines:
    total(line)
```

~~~sh
# run the tests
pytest
~~~

````markdown
```sh
# build
make
```
````

- a list
  - in a list

## Next

Done.
END
cat >seen.py <<'PY'
import logging

from haystack import Document as Page
from haystack.components.preprocessors import MarkdownHeaderSplitter
from langchain_text_splitters import ExperimentalMarkdownSyntaxTextSplitter, MarkdownHeaderTextSplitter
from llama_index.core import Document
from llama_index.core.node_parser import MarkdownNodeParser

TEXT = open("session.md").read()
HEADINGS = [("#", "first"), ("##", "second")]
CODE = "for line in lines:\n    total(line)\n"


def show(program, pieces):
    """Print the pieces' headings, and what is left of the code, the comment and the list."""
    whole = "\n".join(text for _, text in pieces)
    kept = [name for name, part in (("code", CODE), ("comment", "# build\n"), ("list", "\n  - in")) if part in whole]
    print(f"{program}: {'; '.join(heading for heading, _ in pieces)} - keeps {', '.join(kept) or 'neither code, comment nor list'}")


def heading(text):
    return text.lstrip().partition("\n")[0]


logging.disable()
show("LangChain", [(c.metadata.get("second") or c.metadata["first"], c.page_content) for c in MarkdownHeaderTextSplitter(HEADINGS).split_text(TEXT)])
pieces = ExperimentalMarkdownSyntaxTextSplitter(HEADINGS).split_text(TEXT)
show("LangChain, experimental", [(c.metadata.get("second") or c.metadata["first"], c.page_content) for c in pieces])
nodes = MarkdownNodeParser().get_nodes_from_documents([Document(text=TEXT)])
show("LlamaIndex", [(heading(node.get_content()), node.get_content()) for node in nodes])
pages = MarkdownHeaderSplitter().run([Page(content=TEXT)])["documents"]
show("Haystack", [(heading(page.content), page.content) for page in pages])
PY
env/bin/python seen.py 2>/dev/null | tee seen
diff seen - <<'END'
LangChain: Session; build; Next - keeps neither code, comment nor list
LangChain, experimental: Session; Session; Session; build; build; build; Next - keeps code, list
LlamaIndex: # Session; # run the tests; # build; ## Next - keeps code, comment, list
Haystack: # Session; ## Next - keeps code, comment, list
END
