"""Merged recordings: src/recording/merge/FORMAT.md."""

import os
import sqlite3

_APPLICATION = 0x4A504D47


def count_of_parts(path):
    """How many recordings a merged file holds; 0: it is none."""
    try:
        uri = f"file:{os.path.abspath(path).replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=ro"
        db = sqlite3.connect(uri, uri=True)
        try:
            if db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
                return 0
            return db.execute("SELECT count(*) FROM part").fetchone()[0]
        finally:
            db.close()
    except sqlite3.Error:
        return 0  # the tool says what is wrong
