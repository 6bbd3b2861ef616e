// One format's reader, and all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/import.h"
#include "importers/source_text.h"
#include "model/recording.h"

namespace jouleprof::importers {

struct Importer {
  Format format;
  bool several_files;  // whether read() takes more than one
  // Whether `text` is, or was meant to be, of this format. Linear in the text at worst.
  bool (*recognises)(std::string_view text);
  Result<model::Recording> (*read)(std::span<const SourceText> sources,
                                   const ImportOptions& options);
  // Whether a text that is recognised only adds to others of the format: it has no power of its
  // own.
  bool (*only_adds)(std::string_view text) = nullptr;
};

std::span<const Importer* const> importers();

// import_files for texts that are already in memory.
Result<model::Recording> import_texts(std::span<const SourceText> sources,
                                      const ImportOptions& options = {});

// Puts recordings of one experiment, each of another log, on one time line.

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
