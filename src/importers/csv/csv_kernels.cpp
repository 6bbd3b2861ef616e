#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "importers/csv/csv_recording.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

constexpr std::int64_t kMostId = 1'000'000'000;
constexpr std::size_t kMaxNamesBytes = std::size_t{64} << 20;

// Rows of profilers that are no kernels: their own and the driver's overhead on the host.
bool is_overhead(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames{
      "Command Buffer Full",   "Buffer Flush",           "Instrumentation", "Resource",
      "Lazy Function Loading", "Activity Buffer Request"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

model::ActivityKind kind_of(std::string_view name) {
  if (name.starts_with("Memcpy ")) return model::ActivityKind::kMemcpy;
  if (name.starts_with("Memset ")) return model::ActivityKind::kMemset;
  return model::ActivityKind::kKernel;
}

}  // namespace

Result<CsvKernelNames> read_kernel_names(const std::filesystem::path& path) {
  const auto source = read_source(path, kMaxNamesBytes);
  if (!source) return forward_error(source);
  const auto json = parse_json(source->text, path.string(), Errc::kCorrupt);
  if (!json) return forward_error(json);
  JsonErrors errors{.file = path.string(), .code = Errc::kCorrupt};
  JsonReader document(*json, "", errors);
  CsvKernelNames out;
  out.given = true;
  document.read("base_unix_ns", out.base_unix_ns, {0, double{csv::kLastUnixNanosecond}});
  document.object("kernels", [&](JsonReader& kernels) {
    for (const auto& [key, name] : kernels.value().items()) {
      const auto id = parse_integer(key);
      if (!id) kernels.error(key, "is not a kernel_id");
      if (id) kernels.read(key.c_str(), out.names[*id]);
    }
  });
  if (errors.first) return tl::unexpected(std::move(*errors.first));
  return out;
}

Result<CsvKernels> CsvKernels::open(const std::filesystem::path& path, CsvKernelNames names) {
  auto file = CsvFile::open(path);
  if (!file) return forward_error(file);
  CsvKernels kernels(std::move(*file), std::move(names));
  if (auto ok = kernels.find_columns(); !ok) return forward_error(ok);
  auto more = kernels.next_row();
  if (!more) return forward_error(more);
  if (!*more) {
    std::vector<std::string> none;
    if (auto why = kernels.file_.check_left_out(none); !why) return forward_error(why);
    return fail(Errc::kUnavailable,
                fmt::format("{}: a header, and no row under it", path.string()));
  }
  kernels.first_ = kernels.row_.begin;
  return kernels;
}

Result<void> CsvKernels::find_columns() {
  start_ = file_.column(csv::kStart);
  duration_ = file_.optional_column(csv::kDuration);
  stop_ = file_.optional_column(csv::kEnd);
  id_ = file_.optional_column(csv::kKernelId);
  name_ = file_.optional_column(csv::kName);
  stream_ = file_.optional_column(csv::kStream);
  if (bool(duration_) == bool(stop_)) {
    file_.fail_header(
        "the header needs either a duration ('duration_ns', ...) or an end ('end_ns', ...)");
  }
  if (bool(id_) == bool(name_)) {
    file_.fail_header("the header needs either 'kernel_id' or 'name'");
  }
  return file_.check_header();
}

std::uint32_t CsvKernels::class_of_name(std::string_view name) {
  if (is_overhead(name)) return model::kNone;
  const auto [it, is_new] =
      by_name_.try_emplace(std::string(name), static_cast<std::uint32_t>(trace_.classes.size()));
  if (is_new) {
    model::KernelClass kernel;
    kernel.kind = kind_of(name);
    kernel.name = it->first;
    trace_.classes.push_back(std::move(kernel));
  }
  return it->second;
}

std::uint32_t CsvKernels::class_of_row() {
  if (name_) {
    const std::string_view name = trim(file_.field(name_));
    if (name.empty()) file_.fail_at(name_, "a kernel without a name");
    if (name.empty()) return model::kNone;
    const std::uint32_t found = class_of_name(name);
    if (found == model::kNone) ++left_out_[std::string(name)];
    return found;
  }
  const std::int64_t id = file_.integer(id_);
  if (id < 0 || id > kMostId) file_.fail_at(id_, fmt::format("{} is no kernel_id", id));
  if (file_.failed()) return model::kNone;
  const auto named = names_.names.find(id);
  if (const auto known = by_id_.find(id); known != by_id_.end()) {
    if (known->second == model::kNone) ++left_out_[named->second];
    return known->second;
  }
  if (named == names_.names.end() && names_.given) {
    file_.fail_all_at(id_, fmt::format("there is no name for kernel {}", id));
    return model::kNone;
  }
  const std::uint32_t found =
      class_of_name(named == names_.names.end() ? fmt::format("kernel {}", id) : named->second);
  if (found == model::kNone) ++left_out_[named->second];
  by_id_[id] = found;
  return found;
}

Result<bool> CsvKernels::next_row() {
  return file_.next([this] { return take_row(); });
}

void CsvKernels::take_row() {
  Row& row = row_;
  const std::int64_t base = names_.base_unix_ns.value_or(0);
  const auto instant = [&](const CsvColumn& column) {
    std::int64_t unix_ns = 0;
    if (__builtin_add_overflow(file_.integer(column), base, &unix_ns) || unix_ns < 0 ||
        unix_ns > csv::kLastUnixNanosecond) {
      file_.fail_at(column, fmt::format("{} is no time", show(file_.field(column))));
      return RealTime{};
    }
    return RealTime{Duration{unix_ns}};
  };
  row.begin = instant(start_);
  const CsvColumn& last = duration_ ? duration_ : stop_;
  if (duration_) {
    const Duration run_time{file_.integer(last)};
    const bool is_possible = run_time >= Duration{} && run_time <= csv::kLongestKernel;
    if (!is_possible) {
      file_.fail_at(last, fmt::format("{} is no duration of a kernel: check the unit",
                                      show(file_.field(last))));
    }
    row.end = row.begin + (is_possible ? run_time : Duration{});
  } else {
    row.end = instant(last);
    if (row.end < row.begin || row.end - row.begin > csv::kLongestKernel) {
      file_.fail_at(last, "the kernel ends before it begins, or hours later");
    }
  }
  if (stream_) {
    const std::int64_t stream = file_.integer(stream_);
    if (stream < 0 || stream >= model::kNone) file_.fail_at(stream_, "no stream");
    row.stream = static_cast<std::uint32_t>(stream);
  }
  if (file_.failed()) return;
  if (!limit_.add(row.end - row.begin)) return file_.fail_all_at(last, limit_.message());
  row.kernel_class = class_of_row();
}

Result<model::Trace> CsvKernels::read(RealTime origin, bool events) {
  model::ActivityBins::Options options;
  options.bin = trace_.bin;
  options.events = events;
  model::ActivityBins bins(options,
                           [&](model::ActivityChunk chunk) { trace_.chunks.push_back(chunk); });
  begin_ = RealTime::max();
  end_ = RealTime::min();
  for (;;) {
    if (row_.kernel_class != model::kNone) {
      begin_ = std::min(begin_, row_.begin);
      end_ = std::max(end_, row_.end);
      bins.add({HostTime{row_.begin - origin}, HostTime{row_.end - origin}, row_.kernel_class,
                model::kNone, row_.stream});
    }
    const auto more = next_row();
    if (!more) return forward_error(more);
    if (!*more) break;
  }
  if (auto right = file_.check_left_out(warnings_); !right) return forward_error(right);
  bins.finish();
  if (bins.launches() == 0) {
    return fail(Errc::kUnavailable, fmt::format("{}: there is no kernel in it", file_.path()));
  }
  trace_.status.activities = bins.launches();
  trace_.status.late = bins.late();
  trace_.status.dropped = file_.left_out();
  trace_.status.ended = !file_.cut_off();
  return std::move(trace_);
}

}  // namespace jouleprof::importers
