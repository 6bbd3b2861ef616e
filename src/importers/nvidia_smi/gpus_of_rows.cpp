#include "importers/nvidia_smi/gpus_of_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace jouleprof::importers {
namespace {

LogDevice gpu(std::int64_t index) {
  return {model::DomainKind::kGpu, fmt::format("gpu{}", index), fmt::format("GPU {}", index)};
}

GpusOfRows by_key(const std::vector<GpuRow>& rows) {
  GpusOfRows result;
  const bool has_index = rows.front().index.has_value();
  const bool has_uuid = !rows.front().uuid.empty();
  std::map<std::string, std::size_t> places;
  for (const GpuRow& row : rows) {
    const std::string key = has_index  ? fmt::format("{}", *row.index)
                            : has_uuid ? row.uuid
                                       : row.bus;
    const auto [place, is_new] = places.try_emplace(key, result.devices.size());
    if (is_new) {
      result.devices.push_back(gpu(row.index.value_or(static_cast<std::int64_t>(place->second))));
      result.devices.back().uuid = row.uuid;
      if (!has_index) result.devices.back().name = fmt::format("GPU {}", key);
    }
    result.device_of_row.push_back(place->second);
  }
  if (!has_index) {
    result.warning =
        fmt::format("the log has no column index: its {} GPU{} numbered in the order of the rows",
                    result.devices.size(), result.devices.size() == 1 ? " is" : "s are");
  }
  return result;
}

// A distance that only two rows of one look have. The 95th percentile is between looks for up to
// 16 GPUs.
Duration longest_within_look(const std::vector<GpuRow>& rows) {
  std::vector<Duration> distances;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    distances.push_back(std::max(rows[i].stamp - rows[i - 1].stamp, Duration::zero()));
  }
  if (distances.empty()) return Duration::zero();
  const auto place =
      distances.begin() + static_cast<std::ptrdiff_t>((distances.size() - 1) * 95 / 100);
  std::nth_element(distances.begin(), place, distances.end());
  return *place / 5;
}

Result<GpusOfRows> by_place(const std::vector<GpuRow>& rows) {
  GpusOfRows result;
  const Duration within = longest_within_look(rows);
  std::map<std::size_t, std::size_t> looks_of_size;
  std::size_t in_look = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool new_look = i == 0 || rows[i].starts_section || rows[i].stamp < rows[i - 1].stamp ||
                          rows[i].stamp - rows[i - 1].stamp > within;
    if (new_look && i > 0) ++looks_of_size[in_look];
    in_look = new_look ? 1 : in_look + 1;
    result.device_of_row.push_back(in_look - 1);
  }
  // The last look may be cut off.
  const std::size_t most = looks_of_size.empty() ? in_look : looks_of_size.rbegin()->first;
  if (looks_of_size.size() > 1 || in_look > most) {
    return fail(
        Errc::kCorrupt,
        "the log does not say which GPU each row is of, and looks have different numbers of "
        "rows; log with --query-gpu=timestamp,index,power.draw");
  }
  for (std::size_t i = 0; i < most; ++i)
    result.devices.push_back(gpu(static_cast<std::int64_t>(i)));
  result.warning = most == 1
                       ? "the log does not say which GPU it is of: it is called gpu0"
                       : fmt::format(
                             "the log does not say which GPU each row is of: {} rows come at a "
                             "time, and are taken to be of gpu0 to gpu{}",
                             most, most - 1);
  return result;
}

}  // namespace

Result<GpusOfRows> gpus_of_rows(const std::vector<GpuRow>& rows, bool has_times) {
  const GpuRow& first = rows.front();
  if (first.index || !first.uuid.empty() || !first.bus.empty()) return by_key(rows);
  if (has_times) return by_place(rows);
  GpusOfRows one;
  one.devices.push_back(gpu(0));
  one.device_of_row.assign(rows.size(), 0);
  one.warning = "the log does not say which GPU its rows are of: all are taken to be of gpu0";
  return one;
}

}  // namespace jouleprof::importers
