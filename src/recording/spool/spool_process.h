// One traced process's files, as far as they were read. Private to this folder.
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
  std::uint64_t size = 0;   // when last looked at
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
  model::SpoolPosition resumed;             // what lies before was taken by another reader
  std::set<std::string, std::less<>> said;  // complaints that were made

  // Notes that this file exists; again does nothing.
  void add_file(std::uint32_t segment, std::filesystem::path path);
  // Whether a file is not known that must have been there before a known one.
  bool skips_files() const;

  // Takes one frame. False: it does not mean what it should.
  bool take(const Frame& frame, const File& file, SpoolConsumer& consumer);
  // The file's first frame.
  bool begin(const Frame& frame, std::uint32_t segment, File& file, SpoolConsumer& consumer);

 private:
  template <class Part>
  bool define(FieldReader& in, std::string_view what, const File& file, SpoolConsumer& consumer);
  void complain(const File& file, std::string_view what, SpoolConsumer& consumer);
};

}  // namespace jouleprof::spool
