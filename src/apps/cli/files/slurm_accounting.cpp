#include "apps/cli/files/slurm_accounting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::cli {
namespace {

constexpr std::uint64_t kMostJoules = 1'000'000'000'000;  // Slurm prints ~0 where it has none

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_all = error == std::errc{} && end == text.data() + text.size();
  return is_all && !text.empty() ? std::optional(value) : std::nullopt;
}

// Slurm's own numbers of jobs: "17", "17_3" of an array, "17+1" of a heterogeneous job.
bool is_job(std::string_view job) {
  return !job.empty() && job.find_first_not_of("0123456789_+") == std::string_view::npos;
}

// From lines of JobID|ConsumedEnergyRaw: that of the job, else the sum of its numbered steps, which
// are apart from each other. Steps `batch` and `extern` have their time once more.
report::SlurmEnergy slurm_energy_of(const std::string& job, std::string_view lines) {
  std::uint64_t of_job = 0;
  std::uint64_t of_steps = 0;
  bool any = false;
  for (const auto line : split(lines, '\n')) {
    const auto cells = split(line, '|');
    if (cells.size() < 2) continue;
    const auto id = trim(cells[0]);
    const auto joules = whole_number(trim(cells[1]));
    if (id != job && !id.starts_with(job + ".")) continue;
    any = true;
    if (!joules || *joules > kMostJoules) continue;
    if (id == job) {
      of_job = *joules;
    } else if (whole_number(id.substr(job.size() + 1))) {
      of_steps += *joules;
    }
  }
  const auto joules = static_cast<double>(of_job > 0 ? of_job : of_steps);
  if (joules > 0) return {job, Energy::joules(joules), ""};
  return {job, std::nullopt,
          any ? "Slurm recorded no energy: the site has no AcctGatherEnergyType, or the job runs on"
              : "sacct does not list the job"};
}

}  // namespace

std::vector<report::SlurmEnergy> slurm_energies(const std::vector<std::string>& jobs) {
  std::vector<std::string> known;
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(known), is_job);
  std::string lines;
  bool ran = known.empty();
  if (!known.empty()) {
    const auto command = fmt::format(
        "sacct --noheader --parsable2 --format=JobID,ConsumedEnergyRaw --jobs={} 2>/dev/null",
        fmt::join(known, ","));
    FILE* sacct = ::popen(command.c_str(), "r");
    std::array<char, 4096> buffer{};
    std::size_t read = 0;
    while (sacct != nullptr && (read = std::fread(buffer.data(), 1, buffer.size(), sacct)) > 0) {
      lines.append(buffer.data(), read);
    }
    ran = sacct != nullptr && ::pclose(sacct) == 0;
  }
  std::vector<report::SlurmEnergy> found;
  for (const auto& job : jobs) {
    if (!is_job(job)) {
      found.push_back({job, std::nullopt, "not a job of Slurm"});
    } else if (!ran) {
      found.push_back({job, std::nullopt,
                       "sacct is missing or failed; run this where it reaches Slurm's accounting"});
    } else {
      found.push_back(slurm_energy_of(job, lines));
    }
  }
  return found;
}

}  // namespace jouleprof::cli
