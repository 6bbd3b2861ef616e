#include "spans/procs/job_mapping.h"

#include <algorithm>

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

}  // namespace jouleprof::spans
