#include "session/machine/daily_recordings.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <regex>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::session {
namespace {

namespace fs = std::filesystem;

constexpr Duration kRetry = std::chrono::minutes{1};
// A reading before the file that is older than this is no neighbour of the first one in it.
constexpr Duration kNeighbour = std::chrono::minutes{1};
constexpr std::uint64_t kPartsOfBound = 4;
// The rate is that of this time, from so long after the begin: what a file begins with is not its
// rate.
constexpr Duration kBegin = std::chrono::minutes{2};
constexpr Duration kRated = std::chrono::minutes{15};

std::string day_of(RealTime t) {
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(
      std::chrono::sys_time<std::chrono::nanoseconds>{t.time_since_epoch()})};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

struct File {
  std::string day;
  long long part = 1;
  fs::path path;
  std::uint64_t bytes = 0;
};

std::uint64_t size_of(const fs::path& path) {
  std::uint64_t sum = 0;
  for (const char* end : {"", "-wal", "-shm"}) {
    std::error_code err;
    const auto size = fs::file_size(path.string() + end, err);
    if (!err) sum += size;
  }
  return sum;
}

// Oldest first.
std::vector<File> recordings_in(const fs::path& folder) {
  static const std::regex pattern(R"((\d{4}-\d{2}-\d{2})(-(\d{1,9}))?\.jprof)");
  std::vector<File> out;
  const auto names = list_folder(folder);
  if (!names) return out;
  for (const auto& name : *names) {
    std::smatch match;
    if (!std::regex_match(name, match, pattern)) continue;
    const auto part = match[3].matched ? parse_integer(match[3].str()) : std::nullopt;
    out.push_back({match[1].str(), part.value_or(1), folder / name, size_of(folder / name)});
  }
  std::ranges::sort(out, [](const File& a, const File& b) {
    return std::pair(a.day, a.part) < std::pair(b.day, b.part);
  });
  return out;
}

}  // namespace

Result<std::unique_ptr<DailyRecordings>> DailyRecordings::open(DailyOptions options) {
  auto out = std::unique_ptr<DailyRecordings>(new DailyRecordings(std::move(options)));
  const auto now = out->options_.now();
  out->opened_ = now;
  out->remove_old(now);
  if (auto begun = out->begin_file(now); !begun) return forward_error(begun);
  return out;
}

Result<void> DailyRecordings::begin_file(const ClockPoint& now) {
  const auto day = day_of(now.real);
  std::error_code err;
  fs::create_directories(options_.folder, err);
  if (err) {
    return system_failure(fmt::format("cannot make {}", options_.folder.string()), err.value());
  }
  fs::path path = options_.folder / (day + ".jprof");
  for (int part = 2; fs::exists(path); ++part) {
    path = options_.folder / fmt::format("{}-{}.jprof", day, part);
  }
  auto writer = recording::Writer::create(path);
  if (!writer) return forward_error(writer);
  writer_ = std::make_unique<recording::Writer>(std::move(*writer));
  path_ = std::move(path);
  day_ = day;
  return describe(now);
}

Result<void> DailyRecordings::reopen() {
  domains_.clear();
  sensors_.clear();
  counters_.clear();
  powers_.clear();
  return begin_file(options_.now());
}

Result<void> DailyRecordings::describe(const ClockPoint& now) {
  Batch first;
  first.clock_points.push_back(now);
  if (!domains_.empty()) first.run = run_;
  first.domains = domains_;
  first.sensors = sensors_;
  for (const auto& [sensor, reading] : counters_) {
    if (now.host - reading.after < kNeighbour) first.readings.counters.push_back(reading);
  }
  for (const auto& [sensor, reading] : powers_) {
    if (now.host - reading.at < kNeighbour) first.readings.powers.push_back(reading);
  }
  return writer_->append(first);
}

// A file that cannot be written ends.
void DailyRecordings::check(const Result<void>& written) {
  if (written) return;
  if (options_.on_error) options_.on_error(written.error());
  writer_.reset();
  retry_ = options_.now().host + kRetry;
}

Result<void> DailyRecordings::append(const Batch& batch) {
  if (batch.run) run_ = *batch.run;
  std::ranges::copy(batch.domains, std::back_inserter(domains_));
  std::ranges::copy(batch.sensors, std::back_inserter(sensors_));
  for (const auto& reading : batch.readings.counters) counters_[reading.sensor] = reading;
  for (const auto& reading : batch.readings.powers) powers_[reading.sensor] = reading;
  if (writer_) check(writer_->append(batch));
  return {};
}

Result<void> DailyRecordings::commit() {
  if (writer_) check(writer_->commit());
  const auto now = options_.now();
  std::error_code err;
  if (writer_ && !fs::exists(path_, err) && !err) {
    check(fail(Errc::kNotFound, fmt::format("{} was removed or moved", path_.string())));
    retry_ = now.host;
  }
  note_rate(now.host);
  const bool is_full = writer_ && size_of(path_) >= options_.most_bytes / kPartsOfBound;
  if (writer_ && day_of(now.real) == day_ && !is_full) return {};
  if (!writer_ && now.host < retry_) return {};
  (void)finish();
  remove_old(now);
  check(begin_file(now));
  if (writer_) check(writer_->commit());
  return {};
}

Result<void> DailyRecordings::finish() {
  if (writer_) check(writer_->add(options_.now()));
  if (writer_) check(writer_->finish());
  writer_.reset();
  return {};
}

void DailyRecordings::note_rate(HostTime now) {
  if (!writer_ || has_rate_) return;
  if (path_ != rated_path_) {  // another file, which is measured from its begin
    rated_path_ = path_;
    rated_from_ = now + kBegin;
    rated_bytes_ = 0;
  }
  if (now < rated_from_) return;
  if (rated_bytes_ == 0) {
    rated_bytes_ = size_of(path_);
    rated_from_ = now;
    return;
  }
  if (now - rated_from_ < kRated) return;
  has_rate_ = true;
  const auto bytes = size_of(path_);
  if (!options_.on_rate || bytes <= rated_bytes_) return;
  options_.on_rate(static_cast<double>(bytes - rated_bytes_) * 86'400 / seconds(now - rated_from_));
}

void DailyRecordings::remove_old(const ClockPoint& now) const {
  auto files = recordings_in(options_.folder);
  // A wall clock that is set forward makes no file older.
  const RealTime lived =
      opened_.real + (now.host - opened_.host) + (now.suspended - opened_.suspended);
  const auto oldest = day_of(std::min(now.real, lived) - options_.longest);
  // One more file of a part of the bound follows.
  const auto room = options_.most_bytes - options_.most_bytes / kPartsOfBound;
  std::uint64_t sum = 0;
  for (const auto& file : files) sum += file.bytes;
  // Days to come were recorded before the wall clock was set back.
  std::ranges::stable_partition(
      files, [today = day_of(now.real)](const File& file) { return file.day > today; });
  for (const auto& file : files) {
    if (sum <= room && file.day >= oldest) continue;
    for (const char* end : {"", "-wal", "-shm"}) {
      std::error_code ignored;
      fs::remove(file.path.string() + end, ignored);
    }
    sum -= file.bytes;
  }
}

}  // namespace jouleprof::session
