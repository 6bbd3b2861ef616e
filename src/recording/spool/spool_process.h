// The files of one traced process and how far they were read. Private to this folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "recording/spool/fields.h"
#include "recording/spool/frame.h"
#include "recording/spool/spool_reader.h"
#include "recording/spool/trace_check.h"

namespace jouleprof::spool {

struct SpoolReader::File {
  std::filesystem::path path;
  std::uint64_t taken = 0;  // bytes
  std::uint64_t size = 0;   // at the last poll
  bool begun = false;       // its head was read
  bool damaged = false;
  bool finished = false;  // nothing will be added to it
  bool removed = false;
};

struct SpoolReader::Process {
  SpoolProcess about;
  std::map<std::uint32_t, File> files;  // by segment
  bool ended = false;
  model::ActivitySink* sink = nullptr;
  TraceCheck check;
  model::SpoolPosition resumed;             // an earlier reader took what lies before
  std::set<std::string, std::less<>> said;  // complaints already made

  // Adds a file; again does nothing.
  void add_file(std::uint32_t segment, std::filesystem::path path);
  // Whether a file is missing that must have been made before one that is here.
  bool skips_files() const;

  // Takes one frame. False: its payload is invalid.
  bool take(const Frame& frame, const File& file, SpoolConsumer& consumer);
  // The file's first frame.
  bool begin(const Frame& frame, std::uint32_t segment, File& file, SpoolConsumer& consumer);

 private:
  template <class Part>
  bool define(FieldReader& in, std::string_view what, const File& file, SpoolConsumer& consumer);
  void complain(const File& file, std::string_view what, SpoolConsumer& consumer);
};

}  // namespace jouleprof::spool
