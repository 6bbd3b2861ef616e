// One event of a trace that torch.profiler wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "jouleprof/units.h"
#include "model/activity/activity.h"

namespace jouleprof::importers {

struct TorchEvent {
  enum class Kind {
    kOther,
    kWork,    // of the GPU: a kernel, copy or set
    kLaunch,  // a call of CUDA's runtime or driver, which may have launched work
    kRange,   // on the CPU: an operator, a Python function or module, the user's own
  };

  Kind kind = Kind::kOther;
  Duration ts{};  // since the file's base time
  Duration duration{};
  std::string_view category;
  std::string_view name;  // as written: a JSON string with its quotes
  std::string_view pid;   // as written
  std::string_view tid;
  std::string_view args;  // as written; empty when there are none
  std::optional<std::int64_t> device;
  std::optional<std::int64_t> stream;
  std::optional<std::int64_t> correlation;
  std::string_view grid;  // as written
  std::string_view block;
  std::uint64_t bytes = 0;
};

// `text` is one event. Nothing when it has no time, as metadata may.
std::optional<TorchEvent> parse_torch_event(std::string_view text);

// What ran, of a kWork event.
model::KernelClass class_of(const TorchEvent& event);

}  // namespace jouleprof::importers
