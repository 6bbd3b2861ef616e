#!/usr/bin/env python3
"""Checks the wording of public text: README, docs, and all text and names in include, python and src.

Each concept has one noun (docs/glossary.md). The words below hid it in the past; each match is printed as
`FILE:LINE: WORD -> what to say instead`. Sentences of README and docs are checked for their length, too.

    tools/check_words.py           everything
    tools/check_words.py --docs    README and docs only

Exceptions are in tools/allowed_words.txt.
"""

import argparse
import bisect
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = "tools/allowed_words.txt"
DOCS = ("README.md", "docs/")
EVERYTHING = (*DOCS, "examples/", "include/", "python/", "src/")
SUFFIXES = {".md", ".h", ".hpp", ".cpp", ".c", ".in", ".py", ".pyi", ".txt", ".json"}
SKIPPED = re.compile(r"^docs/glossary\.md$|/testdata/|CMakeLists\.txt$")

# pattern (lower case, names split into words) -> what to say instead
BANNED = {
    r"tell|tells|told|telling": "report, record, state, list; separate (tell apart)",
    r"beside": "overlapping, concurrent (of launches); with, in addition to, next to",
    r"sway|sways|swayed|swaying": "vary; maximum shift",
    r"wish|wishes|wished": "request",
    r"poke|pokes|poked|poking": "name the action",
    r"drown|drowns|drowned": "name the effect: is not significant, dominates",
    r"mind|minds": "name the effect: is affected by, depends on",
    r"goodbye|goodbyes": "end message",
    r"whoever": "name the actor",
    r"nobody": "name the actor: no process, no thread, no sensor",
    r"(?:is|are|was|were) off": "is wrong by, differs by, is invalid; is disabled",
    r"as they are": "unchanged; name the state",
    r"of which is": "make it two sentences",
}
# in Markdown only, outside of code
BANNED_IN_DOCS = {
    r"stretch|stretches": "interval",
    r"rerun|reruns": "repeatability; isolated re-run",
    r"kernel class|kernel classes|class of kernels|classes of kernels": "kernel signature",
    r"clock stamp|clock stamps|time stamp|time stamps": "timestamp",
    r"ran beside|run alone|runs alone": "overlapped; isolated re-run",
    r"whose rhythm|rhythm": "period",
    r"gain error": "calibration error",
    r"could be had|can be had|could not be had": "available, unavailable",
}
# How no comment of a header begins: it does not say what follows.
BEGINNINGS = re.compile(r"\s*// (Of|Those|As|The same)\b")
WORDS_WARNED = 25
WORDS_FAILED = 35


def compiled(table):
    return [(re.compile(rf"\b(?:{pattern})\b"), advice) for pattern, advice in table.items()]


def tracked(prefixes):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *prefixes],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return sorted(name for name in set(listed) if name and pathlib.Path(name).suffix in SUFFIXES
                  and not SKIPPED.search(name) and (ROOT / name).is_file())


def words_of(line):
    """A line in lower case, its comment marker gone and its names split into words."""
    line = re.sub(r"^\s*(?://+|#+|\*|>)?\s*", "", line)
    line = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", line)
    return line.replace("_", " ").lower()


def matches(lines, table):
    """(line number, word, advice) of each match; phrases may continue on the next line."""
    starts, text = [], ""
    for line in lines:
        starts.append(len(text))
        text += line + " "
    for pattern, advice in table:
        for match in pattern.finditer(text):
            yield bisect.bisect_right(starts, match.start()), match[0], advice


def without_code(lines):
    """A Markdown page's lines with code blocks, inline code and comments blanked."""
    fenced = False
    for line in lines:
        if line.lstrip().startswith("```"):
            fenced = not fenced
            yield ""
        else:
            yield "" if fenced else re.sub(r"`[^`]*`|<!--.*?-->", " ` ", line)


def sentences(lines):
    """(line number, sentence) of a Markdown page's prose and table cells."""
    block, first = [], 0
    for number, line in enumerate([*without_code(lines), ""], 1):
        stripped = line.strip()
        table = stripped.startswith("|")
        item = re.match(r"(?:[-*]|\d+\.)\s", stripped)
        if block and (not stripped or table or item or stripped.startswith("#")):
            yield from split_sentences(first, " ".join(block))
            block = []
        if table:
            for cell in stripped.strip("|").split("|"):
                yield from split_sentences(number, cell.strip())
        elif stripped and not stripped.startswith("#"):
            if not block:
                first = number
            block.append(stripped[item.end():] if item else stripped)


def split_sentences(number, text):
    text = re.sub(r"\]\([^)]*\)", "]", text)
    for sentence in re.split(r"(?<=[.!?:;])[\])*_\"']*\s+|\s·\s", text):
        yield number, sentence


def length(sentence):
    """Its words; what stands in brackets does not count, nor do bare numbers."""
    sentence = re.sub(r"\([^()]*\)", " ", sentence)
    return sum(1 for word in sentence.split() if re.search(r"[A-Za-z`]", word))


class Allowed:
    """The exceptions: lines `PATH WORD...`, comments after #."""

    def __init__(self):
        self.unused = {}
        page = ROOT / ALLOWED
        for number, line in enumerate(page.read_text().splitlines() if page.exists() else [], 1):
            entry = line.split("#")[0].split(None, 1)
            if len(entry) == 2:
                self.unused[(entry[0], entry[1].strip())] = number
        self.entries = set(self.unused)

    def __contains__(self, match):
        self.unused.pop(match, None)
        return match in self.entries


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="README and docs only")
    only_docs = parser.parse_args().docs
    allowed, banned, banned_in_docs = Allowed(), compiled(BANNED), compiled(BANNED_IN_DOCS)
    failures = warnings = 0

    def fail(name, number, text):
        nonlocal failures
        failures += 1
        print(f"{name}:{number}: {text}")

    for name in tracked(DOCS if only_docs else EVERYTHING):
        lines = (ROOT / name).read_text(encoding="utf-8", errors="replace").splitlines()
        found = list(matches([words_of(line) for line in lines], banned))
        if name.startswith(DOCS):
            found += matches([words_of(line) for line in without_code(lines)], banned_in_docs)
        for i, line in enumerate(lines if name.endswith(".h") else ()):
            begins = BEGINNINGS.match(line)
            if begins and not (i and lines[i - 1].lstrip().startswith("//")):
                found.append((i + 1, begins[1], "a comment that names what it describes"))
        for number, word, advice in sorted(found):
            if (name, word) not in allowed:
                fail(name, number, f"{word} -> {advice}")
        if not name.startswith(DOCS):
            continue
        for number, sentence in sentences(lines):
            count = length(sentence)
            if count > WORDS_FAILED:
                fail(name, number, f"a sentence of {count} words -> at most {WORDS_WARNED}: {sentence[:60]}...")
            elif count > WORDS_WARNED:
                warnings += 1
                print(f"{name}:{number}: warning: a sentence of {count} words: {sentence[:60]}...")
    if not only_docs:
        for (name, word), number in allowed.unused.items():
            fail(ALLOWED, number, f"{name} has no '{word}' any more -> remove the line")
    print(f"words: {failures} to change, {warnings} long sentences" if failures or warnings else "words: ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
