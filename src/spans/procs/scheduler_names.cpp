#include "spans/procs/scheduler_names.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::spans {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 1024;
constexpr std::size_t kLongestFile = 65536;
constexpr std::size_t kLongestJob = 128;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 6 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<GpuJobs> parse_name(std::string_view name) {
  GpuJobs out;
  const auto dot = name.find('.');
  const auto gpu = name.substr(0, dot);
  if (!is_number(gpu) && !gpu.starts_with("GPU-") && !gpu.starts_with("MIG-")) return std::nullopt;
  if (dot != std::string_view::npos) {
    if (!is_number(name.substr(dot + 1))) return std::nullopt;
    out.instance = static_cast<unsigned>(*parse_integer(name.substr(dot + 1)));
  }
  out.gpu = gpu;
  return out;
}

bool is_job(std::string_view text) {
  return !text.empty() && text.size() <= kLongestJob &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

void add_once(std::string_view job, std::vector<std::string>& to) {
  if (std::find(to.begin(), to.end(), job) == to.end()) to.emplace_back(job);
}

}  // namespace

Result<void> JobMapping::read(const fs::path& folder) {
  all_.clear();
  by_gpu_.clear();
  const auto names = list_folder(folder);
  if (!names) return forward_error(names);
  for (const auto& name : *names) {
    if (all_.size() == kMostFiles) break;
    auto entry = parse_name(name);
    std::error_code err;
    if (!entry || !fs::is_regular_file(folder / name, err)) continue;
    const auto text = read_file(folder / name, kLongestFile);
    if (!text) continue;
    for (const auto line : split(*text, '\n')) {
      if (is_job(trim(line))) add_once(trim(line), entry->jobs);
    }
    if (entry->jobs.empty()) continue;
    for (const auto& job : entry->jobs) add_once(job, by_gpu_[entry->gpu]);
    all_.push_back(std::move(*entry));
  }
  return {};
}

std::optional<std::string> JobMapping::only_job(std::optional<unsigned> index,
                                                std::string_view uuid) const {
  auto found = by_gpu_.find(uuid);
  if (found == by_gpu_.end() && index) found = by_gpu_.find(std::to_string(*index));
  if (found == by_gpu_.end() || found->second.size() != 1) return std::nullopt;
  return found->second.front();
}

namespace {

constexpr std::size_t kMostNames = 10'000;
constexpr std::size_t kContainerId = 64;
constexpr std::string_view kLog = ".log";

// Kubernetes' names: no underscore, so that one separates them here.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

bool is_container_id(std::string_view text) {
  return text.size() == kContainerId && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9');
         });
}

void add_pod(std::string_view folder, model::KubeNames& names) {
  const auto parts = split(folder, '_');
  if (parts.size() != 3 || !std::all_of(parts.begin(), parts.end(), is_name)) return;
  names.pods[std::string(parts[2])] = {std::string(parts[0]), std::string(parts[1])};
}

void add_container(std::string_view file, model::KubeNames& names) {
  if (!file.ends_with(kLog) || file.size() < kContainerId + kLog.size() + 2) return;
  file.remove_suffix(kLog.size());
  const auto id = file.substr(file.size() - kContainerId);
  file.remove_suffix(kContainerId);
  if (!is_container_id(id) || !file.ends_with('-')) return;
  file.remove_suffix(1);
  const auto parts = split(file, '_');
  if (parts.size() != 3 || !std::all_of(parts.begin(), parts.end(), is_name)) return;
  names.containers[std::string(id)] = parts[2];
}

// When the list of a folder's files changed last; absent where there is none.
fs::file_time_type changed(const fs::path& folder) {
  std::error_code error;
  const auto time = fs::last_write_time(folder, error);
  return error ? fs::file_time_type::min() : time;
}

}  // namespace

Result<void> KubeNameFolder::read() {
  const fs::path pods = folder_ / "pods";
  const fs::path containers = folder_ / "containers";
  const auto pods_now = changed(pods);
  const auto containers_now = changed(containers);
  if (pods_now != fs::file_time_type::min() && pods_now == pods_changed_ &&
      containers_now == containers_changed_) {
    return {};
  }
  names_ = {};
  const auto listed = list_folder(pods);
  if (!listed) return forward_error(listed);
  for (std::size_t i = 0; i < std::min(listed->size(), kMostNames); ++i) {
    add_pod((*listed)[i], names_);
  }
  if (const auto files = list_folder(containers)) {
    for (std::size_t i = 0; i < std::min(files->size(), kMostNames); ++i) {
      add_container((*files)[i], names_);
    }
  }
  pods_changed_ = pods_now;
  containers_changed_ = containers_now;
  return {};
}

}  // namespace jouleprof::spans
