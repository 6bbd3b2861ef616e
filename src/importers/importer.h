// One format's reader, and all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "importers/import.h"
#include "importers/source_text.h"

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

extern const Importer kNamedCsvImporter;  // not among importers(): chosen by its options
extern const Importer kOwnCsvImporter;
extern const Importer kTegrastatsImporter;
extern const Importer kPerunImporter;
extern const Importer kNvidiaSmiImporter;
extern const Importer kDmonImporter;
extern const Importer kPmonImporter;
extern const Importer kDcgmImporter;
extern const Importer kOmegaWattImporter;
extern const Importer kCodeCarbonImporter;
extern const Importer kGpuppImporter;
extern const Importer kAiPowerMeterImporter;
extern const Importer kZeusMonitorImporter;
extern const Importer kZeusWindowsImporter;
extern const Importer kZeusSweepImporter;
extern const Importer kZeusProfileImporter;
extern const Importer kGpuTuneImporter;

std::span<const Importer* const> importers();

// import_files for texts that are already in memory.
Result<model::Recording> import_texts(std::span<const SourceText> sources,
                                      const ImportOptions& options = {});

}  // namespace jouleprof::importers
