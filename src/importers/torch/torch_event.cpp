#include "importers/torch/torch_event.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/decimal.h"
#include "base/json/json_view.h"

namespace jouleprof::importers {
namespace {

using Kind = TorchEvent::Kind;

Kind kind_of(std::string_view phase, std::string_view category) {
  if (phase != "X") return Kind::kOther;
  for (const auto word : {"kernel", "gpu_memcpy", "gpu_memset"}) {
    if (category == word) return Kind::kWork;
  }
  for (const auto word : {"cuda_runtime", "cuda_driver"}) {
    if (category == word) return Kind::kLaunch;
  }
  for (const auto word : {"cpu_op", "user_annotation", "python_function"}) {
    if (category == word) return Kind::kRange;
  }
  return Kind::kOther;
}

std::optional<std::int64_t> whole(std::string_view value) { return scaled_integer(value, 0); }

std::array<std::uint32_t, 3> triple(std::string_view value) {
  std::array<std::uint32_t, 3> out{};
  if (value.size() < 2 || value.front() != '[') return out;
  value = value.substr(1, value.size() - 2);
  for (std::uint32_t& number : out) {
    value.remove_prefix(json_space(value));
    const auto size = std::min(value.find_first_of(", \n\r\t"), value.size());
    const auto n = whole(value.substr(0, size));
    if (!n || *n < 0 || *n >= model::kNone) return {};
    number = static_cast<std::uint32_t>(*n);
    value.remove_prefix(size);
    value.remove_prefix(json_space(value));
    if (value.starts_with(',')) value.remove_prefix(1);
  }
  return out;
}

}  // namespace

std::optional<TorchEvent> parse_torch_event(std::string_view text) {
  TorchEvent event;
  std::string_view phase;
  std::optional<std::int64_t> ts;
  JsonMembers members(text);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "ph") {
      phase = plain_json_string(value);
    } else if (key == "cat") {
      event.category = plain_json_string(value);
    } else if (key == "name") {
      event.name = value;
    } else if (key == "ts") {
      ts = scaled_integer(value, 3);
    } else if (key == "dur") {
      event.duration = Duration{std::max<std::int64_t>(scaled_integer(value, 3).value_or(0), 0)};
    } else if (key == "pid") {
      event.pid = value;
    } else if (key == "tid") {
      event.tid = value;
    } else if (key == "args" && value.starts_with('{')) {
      event.args = value;
    }
  }
  if (!ts) return std::nullopt;
  event.ts = Duration{*ts};
  event.kind = kind_of(phase, event.category);
  if (event.kind != Kind::kWork && event.kind != Kind::kLaunch) return event;
  JsonMembers args(event.args);
  while (args.next()) {
    if (args.key() == "device") event.device = whole(args.value());
    if (args.key() == "stream") event.stream = whole(args.value());
    if (args.key() == "correlation") event.correlation = whole(args.value());
    if (args.key() == "grid") event.grid = args.value();
    if (args.key() == "block") event.block = args.value();
    if (args.key() == "bytes") {
      event.bytes =
          static_cast<std::uint64_t>(std::max<std::int64_t>(whole(args.value()).value_or(0), 0));
    }
  }
  return event;
}

model::KernelClass class_of(const TorchEvent& event) {
  model::KernelClass kernel;
  kernel.name = json_string(event.name);
  if (event.category == "gpu_memcpy") kernel.kind = model::ActivityKind::kMemcpy;
  if (event.category == "gpu_memset") kernel.kind = model::ActivityKind::kMemset;
  if (kernel.kind == model::ActivityKind::kKernel) {
    kernel.grid = triple(event.grid);
    kernel.block = triple(event.block);
  } else {
    kernel.bytes = std::bit_floor(event.bytes);
  }
  return kernel;
}

}  // namespace jouleprof::importers
