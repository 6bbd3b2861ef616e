// Puts recordings of one experiment, each of another log, on one time line.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/recording.h"

namespace jouleprof::importers {

struct ImportedPart {
  std::string path;  // of its first file, for messages
  model::Recording recording;
};

// Joins the parts by the wall clock. Domains of one device are one; a sensor that two parts have is
// one as well. Pauses in which no log has a reading are cut out, as in a single log. A domain of
// all GPUs together contains the single ones. Warnings name their file.
// Errors: unavailable for a part without wall-clock times; corrupt where its clock goes back, or
// where two parts have readings of one sensor at the same time.
Result<model::Recording> combine(std::vector<ImportedPart> parts);

}  // namespace jouleprof::importers
