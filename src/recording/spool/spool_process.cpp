#include "recording/spool/spool_process.h"

#include <fmt/format.h>

#include <utility>

namespace jouleprof::spool {

// Each complaint once for each process: a whole file can be full of one.
void SpoolReader::Process::complain(const File& file, std::string_view what,
                                    SpoolConsumer& consumer) {
  if (said.contains(what)) return;
  said.emplace(what);
  consumer.warn(
      fmt::format("{}: {}; this part of the trace is left out", file.path.string(), what));
}

void SpoolReader::Process::add_file(std::uint32_t segment, std::filesystem::path path) {
  if (segment < resumed.file) return;
  const bool within = segment == resumed.file && resumed.bytes > 0;
  files.try_emplace(
      segment, File{.path = std::move(path), .taken = within ? resumed.bytes : 0, .begun = within});
}

bool SpoolReader::Process::skips_files() const {
  return !files.empty() && files.size() <= files.rbegin()->first - resumed.file;
}

bool SpoolReader::Process::begin(const Frame& frame, std::uint32_t segment, File& file,
                                 SpoolConsumer& consumer) {
  FieldReader in(frame.payload);
  Header header;
  fields(header, in);
  if (frame.type != static_cast<std::uint8_t>(FrameType::kHeader) || !in.ok() ||
      header.process.pid != about.pid || header.start != about.start || header.segment != segment) {
    return false;
  }
  file.begun = true;
  if (sink != nullptr) return true;
  static_cast<model::TracedProcess&>(about) = std::move(header.process);
  sink = &consumer.process(about);
  return true;
}

template <class Part>
bool SpoolReader::Process::define(FieldReader& in, std::string_view what, const File& file,
                                  SpoolConsumer& consumer) {
  std::uint32_t id = 0;
  in.get(id);
  Part part;
  fields(part, in);
  if (!in.ok()) return false;
  if (const auto problem = check.define(id, part); !problem.empty()) {
    complain(file, fmt::format("{} {}", what, problem), consumer);
  } else {
    sink->define(id, part);
  }
  return true;
}

bool SpoolReader::Process::take(const Frame& frame, const File& file, SpoolConsumer& consumer) {
  FieldReader in(frame.payload);
  switch (FrameType{frame.type}) {
    case FrameType::kHeader:
      return false;
    case FrameType::kDevice:
      return define<model::TracedDevice>(in, "a device", file, consumer);
    case FrameType::kClass:
      return define<model::KernelClass>(in, "a kernel signature", file, consumer);
    case FrameType::kLayer:
      return define<model::Layer>(in, "a layer", file, consumer);
    case FrameType::kRange:
      return define<model::Range>(in, "a range", file, consumer);
    case FrameType::kScope:
      return define<model::Scope>(in, "a scope", file, consumer);
    case FrameType::kChunk: {
      model::ActivityChunk chunk;
      fields(chunk, in);
      if (!in.ok()) return false;
      if (const auto problem = check.add(chunk, about.bin); !problem.empty()) {
        complain(file, fmt::format("a chunk {}", problem), consumer);
      } else {
        sink->add(chunk);
      }
      return true;
    }
    case FrameType::kStatus: {
      model::TraceStatus status;
      fields(status, in);
      if (in.ok()) sink->status(status);
      return in.ok();
    }
    case FrameType::kEnd:
      ended = true;
      return true;
  }
  complain(
      file,
      fmt::format("frame type {} is unknown: a newer version of the library wrote it", frame.type),
      consumer);
  return true;
}

}  // namespace jouleprof::spool
