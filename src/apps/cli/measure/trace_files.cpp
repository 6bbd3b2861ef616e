#include "apps/cli/measure/trace_files.h"

#include <chrono>
#include <filesystem>

#include "apps/cli/installed_files.h"
#include "base/text.h"

namespace jouleprof::cli {
namespace {

constexpr Duration kLayersOnCpu = std::chrono::milliseconds{100};

}  // namespace

bool may_use_cuda(const meters::MeterSet& found) {
  for (const auto& meter : found.meters) {
    for (const auto& domain : meter->domains()) {
      if (domain.kind == model::DomainKind::kGpu && domain.unavailable_reason.empty()) return true;
    }
  }
  std::error_code ignored;
  return std::filesystem::exists("/dev/nvidiactl", ignored) ||
         std::filesystem::exists("/dev/dxg", ignored);
}

Result<double> parse_replay(const std::string& text) {
  const bool bare = parse_number(text).has_value();
  const auto each = parse_duration(bare ? text + "s" : text);
  if (!each) return forward_error(each);
  if (*each < std::chrono::milliseconds{100} || *each > std::chrono::minutes{1}) {
    return fail(Errc::kInvalidArgument, "--replay must be from 100ms to 60s");
  }
  return seconds(*each);
}

Result<void> find_trace_files(session::TraceOptions& trace) {
  auto library = find_inject_library();
  if (!library) return forward_error(library);
  trace.inject_library = std::move(*library);
  auto hook = find_python_hook();
  if (!hook && trace.layers) return forward_error(hook);
  if (hook) trace.python_hook = std::move(*hook);
  return {};
}

void choose_clock_of_layers(const meters::MeterSet& found, session::SessionOptions& options) {
  auto& trace = options.trace;
  if (trace.kernels && trace.layers && !may_use_cuda(found)) {
    trace.kernels = trace.events = false;
    trace.remark =
        "this machine has no NVIDIA GPU: kernels are not traced, and layers share energy by "
        "their time "
        "on the CPU";
  }
  // What the processes used in a second is too coarse for that.
  if (trace.any() && !trace.kernels) options.process_period = kLayersOnCpu;
}

}  // namespace jouleprof::cli
