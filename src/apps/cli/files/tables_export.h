// `export --format parquet`: the tables of a recording, written by the Python package.
#pragma once

#include <string>

namespace jouleprof::cli {

struct TablesExport {
  std::string file;
  unsigned run = 0;    // of a sweep or a merged file; 0: not given
  std::string folder;  // to write into
  std::string tables;  // separated by commas; empty: all
  std::string python;
};

// Becomes the Python process. Returns, with an exit status, only where that cannot be started.
int export_tables(const TablesExport& wanted);

}  // namespace jouleprof::cli
