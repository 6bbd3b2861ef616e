#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "meters/hwmon/hwmon_meter.h"

namespace jouleprof::meters::hwmon {
namespace {

namespace fs = std::filesystem;

// Engines whose time is that of the multiprocessors: of amdgpu, i915 and xe.
constexpr std::array<std::string_view, 5> kEngines{"gfx", "compute", "render", "rcs", "ccs"};
// Memory on the board, the first that a driver has.
constexpr std::array<std::string_view, 5> kMemory{"drm-resident-vram", "drm-resident-vram0",
                                                  "drm-resident-local0", "drm-memory-vram",
                                                  "amd-memory-vram"};

bool is_engine(std::string_view name) {
  return std::ranges::find(kEngines, name) != kEngines.end();
}

// "12 KiB", "3 ns", "7".
std::optional<std::uint64_t> quantity(std::string_view text) {
  const auto words = split_blanks(text);
  if (words.empty()) return std::nullopt;
  const auto value = parse_integer(words[0]);
  if (!value || *value < 0) return std::nullopt;
  const std::string_view unit = words.size() > 1 ? words[1] : "";
  const int shift = unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : 0;
  return static_cast<std::uint64_t>(*value) << shift;
}

bool is_pid(std::string_view name) {
  return !name.empty() && name.front() >= '1' && name.front() <= '9' && parse_integer(name);
}

// kfd's own numbers of the boards, as its topology gives them.
std::map<std::string, model::DomainId> kfd_numbers(
    const fs::path& root, const std::map<std::string, model::DomainId>& domains) {
  std::map<std::string, model::DomainId> found;
  const auto nodes = root / "sys/class/kfd/kfd/topology/nodes";
  for (const auto& name : names_in(nodes)) {
    const auto id = read_attribute(nodes / name / "gpu_id");
    const auto text = read_file(nodes / name / "properties");
    if (!id || !text) continue;
    long long location = -1;
    long long segment = 0;
    for (const auto line : split(*text, '\n')) {
      const auto words = split_blanks(line);
      if (words.size() != 2) continue;
      if (words[0] == "location_id") location = parse_integer(words[1]).value_or(-1);
      if (words[0] == "domain") segment = parse_integer(words[1]).value_or(0);
    }
    if (location < 0) continue;
    const auto address = fmt::format("{:04x}:{:02x}:{:02x}.{}", segment, location >> 8 & 0xff,
                                     location >> 3 & 0x1f, location & 7);
    const auto domain = domains.find(address);
    if (domain != domains.end()) found.emplace(*id, domain->second);
  }
  return found;
}

}  // namespace

std::optional<GpuClient> parse_fdinfo(std::string_view text) {
  GpuClient client;
  bool has_id = false;
  std::map<std::string_view, std::uint64_t> busy;
  std::map<std::string_view, std::uint64_t> cycles;
  std::map<std::string_view, std::uint64_t> total;
  std::map<std::string_view, std::uint64_t> capacity;
  std::size_t memory_rank = kMemory.size();
  for (const std::string_view line : split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto key = line.substr(0, colon);
    const auto value = trim(line.substr(colon + 1));
    const auto after = [&](std::string_view prefix) {
      return key.starts_with(prefix) ? key.substr(prefix.size()) : std::string_view{};
    };
    if (key == "drm-pdev") client.bus_address = std::string(value);
    if (!key.starts_with("drm-") && !key.starts_with("amd-")) continue;
    const auto number = quantity(value);
    if (!number) continue;
    if (key == "drm-client-id") {
      client.id = *number;
      has_id = true;
    } else if (is_engine(after("drm-engine-capacity-"))) {
      capacity[after("drm-engine-capacity-")] = *number;
    } else if (is_engine(after("drm-engine-"))) {
      busy[after("drm-engine-")] = *number;
    } else if (is_engine(after("drm-cycles-"))) {
      cycles[after("drm-cycles-")] = *number;
    } else if (is_engine(after("drm-total-cycles-"))) {
      total[after("drm-total-cycles-")] = *number;
    }
    const auto rank = static_cast<std::size_t>(std::ranges::find(kMemory, key) - kMemory.begin());
    if (rank < memory_rank) {
      memory_rank = rank;
      client.memory_bytes = *number;
    }
  }
  if (client.bus_address.empty() || !has_id) return std::nullopt;
  const auto of_one = [&](std::string_view engine, std::uint64_t value) {
    const auto found = capacity.find(engine);
    return found == capacity.end() ? value : value / std::max<std::uint64_t>(found->second, 1);
  };
  for (const auto& [engine, time] : busy) {
    client.busy = client.busy.value_or(0) + of_one(engine, time);
  }
  if (client.busy) return client;
  for (const auto& [engine, count] : cycles) {
    const auto of = total.find(engine);
    if (of == total.end()) continue;
    client.busy = client.busy.value_or(0) + of_one(engine, count);
    client.total_cycles = std::max(client.total_cycles.value_or(0), of->second);
  }
  return client;
}

GpuClients::GpuClients(fs::path root, std::map<std::string, model::DomainId> domains)
    : root_(std::move(root)),
      domains_(std::move(domains)),
      kfd_ids_(kfd_numbers(root_, domains_)) {}

bool GpuClients::is_possible() const {
  return !domains_.empty() && list_folder(root_ / "proc").has_value();
}

// The part of the time since the last read that the client's engines were busy.
std::optional<double> GpuClients::share_of(const GpuClient& client, HostTime now) {
  if (!client.busy) return std::nullopt;
  const auto key = std::pair(client.bus_address, client.id);
  const auto [found, is_new] = counts_.try_emplace(key);
  Count& count = found->second;
  const Count before =
      std::exchange(count, Count{*client.busy, client.total_cycles.value_or(0), now});
  if (!last_) return std::nullopt;
  // One that was opened since has counted from zero.
  if (*client.busy < before.busy) return std::nullopt;
  const double busy = static_cast<double>(*client.busy - before.busy);
  double whole = 1e9 * seconds(now - *last_);
  if (client.total_cycles) {
    if (is_new || *client.total_cycles <= before.total_cycles) return std::nullopt;
    whole = static_cast<double>(*client.total_cycles - before.total_cycles);
  }
  return whole > 0 ? std::optional(std::min(busy / whole, 1.0)) : std::nullopt;
}

void GpuClients::add_kfd(Uses& uses) const {
  const auto folder = root_ / "sys/class/kfd/kfd/proc";
  for (const auto& name : names_in(folder)) {
    const auto pid = parse_integer(name);
    if (!pid || *pid <= 0) continue;
    for (const auto& [id, domain] : kfd_ids_) {
      const auto bytes = read_integer(folder / name / ("vram_" + id));
      // Every process with a queue has this file; without memory here it does not use the board.
      if (!bytes || *bytes <= 0) continue;
      Sum& sum = uses[{static_cast<pid_t>(*pid), domain}];
      sum.utilisation.reset();
      sum.memory_bytes = std::max(sum.memory_bytes.value_or(0), static_cast<std::uint64_t>(*bytes));
    }
  }
}

std::vector<model::GpuProcessUse> GpuClients::read(HostTime now) {
  Uses uses;
  std::set<std::pair<std::string, std::uint64_t>> seen;
  bool is_partial = false;
  const auto proc = root_ / "proc";
  for (const auto& name : names_in(proc)) {
    if (!is_pid(name)) continue;
    const auto pid = static_cast<pid_t>(*parse_integer(name));
    const auto files = list_folder(proc / name / "fd");
    if (!files) {
      is_partial = is_partial || files.error().code == Errc::kPermissionDenied;
      continue;
    }
    for (const auto& file : *files) {
      std::error_code err;
      const auto target = fs::read_symlink(proc / name / "fd" / file, err);
      if (err || !target.native().starts_with("/dev/dri/")) continue;
      const auto text = read_file(proc / name / "fdinfo" / file);
      const auto client = text ? parse_fdinfo(*text) : std::nullopt;
      if (!client) continue;
      const auto domain = domains_.find(client->bus_address);
      if (domain == domains_.end()) continue;
      if (!seen.emplace(client->bus_address, client->id).second) continue;
      const auto [found, is_first] = uses.try_emplace({pid, domain->second});
      Sum& sum = found->second;
      const auto share = share_of(*client, now);
      // A process is known where all of its files are.
      if (is_first) {
        sum.utilisation = share;
      } else if (sum.utilisation) {
        sum.utilisation =
            share ? std::optional(std::min(*sum.utilisation + *share, 1.0)) : std::nullopt;
      }
      if (client->memory_bytes) {
        sum.memory_bytes = sum.memory_bytes.value_or(0) + *client->memory_bytes;
      }
    }
  }
  add_kfd(uses);
  std::erase_if(counts_, [&](const auto& entry) { return !seen.contains(entry.first); });
  last_ = now;
  std::vector<model::GpuProcessUse> out;
  for (const auto& [key, sum] : uses) {
    out.push_back({key.first, key.second, now, sum.utilisation, sum.memory_bytes});
  }
  if (is_partial) {
    std::set<model::DomainId> all;
    for (const auto& [address, domain] : domains_) all.insert(domain);
    for (const auto domain : all) out.push_back({0, domain, now, std::nullopt, std::nullopt});
  }
  return out;
}

}  // namespace jouleprof::meters::hwmon
