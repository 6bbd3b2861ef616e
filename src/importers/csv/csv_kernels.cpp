#include "importers/csv/csv_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/json/json_reader.h"
#include "base/text.h"
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
  auto start = file_.column(csv::kStart);
  if (!start) return forward_error(start);
  start_ = *start;
  const auto maybe = [&](std::optional<CsvColumn>& to,
                         std::span<const ColumnName> names) -> Result<void> {
    auto found = file_.optional_column(names);
    if (!found) return forward_error(found);
    to = std::move(*found);
    return {};
  };
  if (auto ok = maybe(duration_, csv::kDuration); !ok) return ok;
  if (auto ok = maybe(stop_, csv::kEnd); !ok) return ok;
  if (auto ok = maybe(id_, csv::kKernelId); !ok) return ok;
  if (auto ok = maybe(name_, csv::kName); !ok) return ok;
  if (auto ok = maybe(stream_, csv::kStream); !ok) return ok;
  if (duration_.has_value() == stop_.has_value()) {
    return fail(Errc::kCorrupt,
                fmt::format("{}, line 1: the header needs either a duration ('duration_ns', ...) "
                            "or an end ('end_ns', ...)",
                            file_.path()));
  }
  if (id_.has_value() == name_.has_value()) {
    return fail(
        Errc::kCorrupt,
        fmt::format("{}, line 1: the header needs either 'kernel_id' or 'name'", file_.path()));
  }
  return file_.no_others();
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

Result<std::uint32_t> CsvKernels::class_of_row() {
  if (name_) {
    const std::string_view name = trim(file_.field(*name_));
    if (name.empty()) return file_.fail_at(*name_, "a kernel without a name");
    const std::uint32_t found = class_of_name(name);
    if (found == model::kNone) ++left_out_[std::string(name)];
    return found;
  }
  const auto id = file_.integer(*id_);
  if (!id) return forward_error(id);
  if (*id < 0 || *id > kMostId) return file_.fail_at(*id_, fmt::format("{} is no kernel_id", *id));
  const auto named = names_.names.find(*id);
  if (const auto known = by_id_.find(*id); known != by_id_.end()) {
    if (known->second == model::kNone) ++left_out_[named->second];
    return known->second;
  }
  if (named == names_.names.end() && names_.given) {
    return file_.fail_all_at(*id_, fmt::format("there is no name for kernel {}", *id));
  }
  const std::uint32_t found =
      class_of_name(named == names_.names.end() ? fmt::format("kernel {}", *id) : named->second);
  if (found == model::kNone) ++left_out_[named->second];
  by_id_[*id] = found;
  return found;
}

Result<bool> CsvKernels::next_row() {
  return file_.next([this] { return take_row(); });
}

Result<void> CsvKernels::take_row() {
  Row& row = row_;
  const auto start = file_.integer(start_);
  if (!start) return forward_error(start);
  const std::int64_t base = names_.base_unix_ns.value_or(0);
  const auto instant = [&](std::int64_t t, const CsvColumn& column) -> Result<RealTime> {
    std::int64_t unix_ns = 0;
    if (__builtin_add_overflow(t, base, &unix_ns) || unix_ns < 0 ||
        unix_ns > csv::kLastUnixNanosecond) {
      return file_.fail_at(column, fmt::format("{} is no time", show(file_.field(column))));
    }
    return RealTime{Duration{unix_ns}};
  };
  auto begin = instant(*start, start_);
  if (!begin) return forward_error(begin);
  row.begin = *begin;
  const CsvColumn& last = duration_ ? *duration_ : *stop_;
  const auto stop = file_.integer(last);
  if (!stop) return forward_error(stop);
  if (duration_) {
    if (*stop < 0 || *stop > csv::kLongestKernel.count()) {
      return file_.fail_at(last, fmt::format("{} is no duration of a kernel: check the unit",
                                             show(file_.field(last))));
    }
    row.end = row.begin + Duration{*stop};
  } else {
    auto end = instant(*stop, last);
    if (!end) return forward_error(end);
    row.end = *end;
    if (row.end < row.begin || row.end - row.begin > csv::kLongestKernel) {
      return file_.fail_at(last, "the kernel ends before it begins, or hours later");
    }
  }
  if (stream_) {
    const auto stream = file_.integer(*stream_);
    if (!stream) return forward_error(stream);
    if (*stream < 0 || *stream >= model::kNone) return file_.fail_at(*stream_, "no stream");
    row.stream = static_cast<std::uint32_t>(*stream);
  }
  if (!limit_.add(row.end - row.begin)) return file_.fail_all_at(last, limit_.message());
  auto kernel_class = class_of_row();
  if (!kernel_class) return forward_error(kernel_class);
  row.kernel_class = *kernel_class;
  return {};
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
