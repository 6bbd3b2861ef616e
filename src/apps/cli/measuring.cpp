#include "apps/cli/measuring.h"

#include <fmt/format.h>

#include "base/text.h"
#include "recording/reader.h"

namespace jouleprof::cli {

Result<Destination> Destination::file(const std::filesystem::path& path, bool overwrite) {
  if (!overwrite && std::filesystem::is_regular_file(path)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} exists; choose another name or use --force", path.string()));
  }
  auto writer = recording::Writer::create(path, {.overwrite = overwrite});
  if (!writer) return forward_error(writer);
  Destination destination;
  destination.path_ = path;
  destination.writer_ = std::make_unique<recording::Writer>(std::move(*writer));
  destination.sink_ =
      std::make_unique<session::WriterSink<recording::Writer>>(*destination.writer_);
  return destination;
}

session::Sink& Destination::sink() {
  if (sink_) return *sink_;
  if (!memory_) memory_ = std::make_shared<session::MemorySink>();
  return *memory_;
}

Result<model::Recording> Destination::recording() const {
  if (!path_.empty()) return recording::read_recording(path_);
  return memory_ ? memory_->recording : model::Recording{};
}

void Destination::remove() {
  sink_.reset();
  writer_.reset();
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

std::filesystem::path default_recording_name(const std::vector<std::string>& command) {
  std::string stem = "jouleprof";
  if (!command.empty()) {
    std::filesystem::path named = command.front();
    // `python train.py`: the script says more than the interpreter.
    for (std::size_t i = 1; i < command.size(); ++i) {
      const std::filesystem::path word = command[i];
      if (word.extension() == ".py" || word.extension() == ".sh") {
        named = word;
        break;
      }
    }
    if (!named.stem().empty()) stem = named.stem().string();
  }
  std::filesystem::path path = stem + ".jprof";
  for (int n = 2; std::filesystem::exists(path); ++n) path = fmt::format("{}-{}.jprof", stem, n);
  return path;
}

Result<std::optional<Power>> parse_cpu_tdp(const std::string& text) {
  if (text.empty()) return std::optional<Power>{};
  const auto watts = parse_number(text);
  if (!watts || *watts <= 0 || *watts > 1e6) {
    return fail(Errc::kInvalidArgument,
                fmt::format("--cpu-tdp {}: give watts, such as --cpu-tdp 105", text));
  }
  return std::optional<Power>{Power::watts(*watts)};
}

}  // namespace jouleprof::cli
