// The name of a recording with what differs among the processes of a job.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "apps/cli/measuring.h"
#include "base/result.h"
#include "model/process/process.h"

namespace jouleprof::cli {

// `pattern` with %h (host), %p (process id of the tool), %j (Slurm's number of the job), %r (rank)
// and %% replaced. Errors: invalid_argument for another letter, and where job or rank are not
// known.
Result<std::string> output_name(const std::string& pattern, const std::string& host,
                                const model::Rank& rank);

// The option --append: the recording becomes a further part of a file.

// Where a recording is kept.
struct KeptRecording {
  std::filesystem::path path;  // empty: nowhere
  std::size_t run = 0;         // its number in the file; 0: it is all of it

  // " train.jprof --run 3", for a command line; empty where it is not kept.
  std::string words() const;
};

class AppendChoice {
 public:
  std::string file;  // as given; empty: not chosen

  // Where to write meanwhile: `file`, where it does not exist yet; else a new name next to it.
  // Errors: as recording::check_appendable's.
  Result<std::string> output() const;

  // Moves what was recorded into `file`. Where that fails, it stays under its own name, and stderr
  // has the reason and how to merge it.
  KeptRecording conclude(const Destination& destination, bool quiet) const;
};

}  // namespace jouleprof::cli
