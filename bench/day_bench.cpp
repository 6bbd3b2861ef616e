// The cost of tracing a busy program for a day, run as fast as possible, as a Markdown table.
//
//     day_bench [--hours H] [--kernels-per-second N] [--folder DIR]
//
// One process stands for the traced program: the tracer's own reader, aggregator and spool process
// buffers of fabricated records; each buffer has been used once before. The other process is the
// tool: it reads the spool once a simulated second and commits it, with 50 power samples a second,
// five gauges every 4 s and a counter read every 10 s. No power is measured.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "recording/spool/spool_reader.h"
#include "recording/spool/spool_writer.h"
#include "recording/writer.h"
#include "spans/cupti/cupti_fixture.h"
#include "spans/cupti/records.h"
#include "spans/scopes/scopes.h"

namespace {

using namespace jouleprof;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::uint32_t kClasses = 40;
constexpr std::uint32_t kScopes = 100;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr HostTime kBegin{1000s};

struct Day {
  double hours = 24;
  std::int64_t kernels_per_second = 35'000;
  fs::path folder = fs::temp_directory_path();

  std::int64_t seconds() const { return static_cast<std::int64_t>(hours * 3600); }
};

double megabytes(std::uintmax_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::uintmax_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uintmax_t>(usage.ru_maxrss) * 1024;
}

// Ends the program: a benchmark that fails has no result.
template <typename T>
T must(Result<T> result) {
  if (result) {
    if constexpr (!std::is_void_v<T>) return std::move(*result);
    if constexpr (std::is_void_v<T>) return;
  }
  fmt::print(stderr, "day_bench: {}\n", result.error().message);
  std::exit(1);
}

// The traced program, as the tracer observes it.
class Target {
 public:
  Target(const Day& day, const fs::path& spool) : day_(day) {
    model::Trace header;
    header.pid = getpid();
    header.program = "day_bench";
    writer_ = must(spool::SpoolWriter::open(spool, header));
    classes_.emplace(*writer_);
    aggregator_.emplace(*writer_);
    reader_.emplace(api_, launches_, nodes_, *classes_, *aggregator_);
    aggregator_->device({0, "GPU-0", "fabricated"});
    for (std::uint32_t i = 0; i != kClasses; ++i) {
      names_.push_back(fmt::format("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_{}", i));
    }
    for (std::uint32_t i = 0; i != kScopes; ++i) {
      model::Layer layer;
      layer.name = fmt::format("blocks.{}.attn.qkv", i);
      layers_.push_back(scopes::add(layer));
    }
    use_all_buffers();
  }

  // One second of it.
  void run(std::int64_t second) {
    const HostTime begin = kBegin + second * 1s;
    const HostTime end = begin + 1s;
    const std::int64_t step = kSecond / day_.kernels_per_second;
    std::int64_t at = begin.time_since_epoch().count();
    std::uint8_t* buffer = nullptr;
    std::size_t valid = 0;
    for (std::int64_t i = 0; i != day_.kernels_per_second; ++i, at += step) {
      if (buffer == nullptr) buffer = buffers_.take();
      put(buffer + valid, at, static_cast<std::uint32_t>(i), step);
      valid += kRecord;
      if (valid + kRecord <= cupti::BufferPool::kBytes && i + 1 != day_.kernels_per_second)
        continue;
      buffers_.full(buffer, valid);
      buffer = nullptr;
      valid = 0;
    }
    const cupti::StampConverter stamps(ClockPoint{end, RealTime{end.time_since_epoch()}, {}});
    for (auto full = buffers_.next(); full.data != nullptr; full = buffers_.next()) {
      reader_->read(full, stamps, end);
      buffers_.put_back(full.data);
    }
    commit_second(second + 1 == day_.seconds());
  }

  std::uint64_t taken() const { return aggregator_->activities(); }

 private:
  static constexpr std::size_t kRecord = 208;

  void put(std::uint8_t* to, std::int64_t at, std::uint32_t i, std::int64_t step) {
    const std::uint32_t n = i % kClasses;
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto jitter = static_cast<std::int64_t>(random_ >> 33) % (step / 5 + 1);
    scopes::this_thread() = {layers_[i / 2 % kScopes], model::kNone, model::Phase::kForward};
    launches_.put(++correlation_, scopes::current());
    abi::cupti::ActivityKernel record{};
    record.kind = abi::cupti::ActivityKind::kConcurrentKernel;
    record.start = static_cast<std::uint64_t>(at + jitter);
    record.end = static_cast<std::uint64_t>(at + step * 9 / 10 + (i % 10 == 0 ? step / 2 : 0));
    record.stream_id = 7;
    record.grid[0] = static_cast<std::int32_t>(n + 1);
    record.grid[1] = record.grid[2] = record.block[1] = record.block[2] = 1;
    record.block[0] = 128;
    record.correlation_id = correlation_;
    record.name = names_[n].c_str();
    std::memcpy(to, &record, sizeof record);
  }

  void commit_second(bool last) {
    classes_->renew();
    aggregator_->settle(last, false);
    scopes::send(*writer_);
    aggregator_->send();
    model::TraceStatus status;
    status.activities = aggregator_->activities();
    status.late = aggregator_->late();
    status.ended = last;
    writer_->status(status);
    if (last) writer_->close();
  }

  void use_all_buffers() {
    std::vector<std::uint8_t*> all;
    while (auto* buffer = buffers_.take()) all.push_back(buffer);
    for (auto* buffer : all) {
      std::memset(buffer, 1, cupti::BufferPool::kBytes);
      buffers_.put_back(buffer);
    }
  }

  const Day& day_;
  cupti::FakeCupti fake_;
  cupti::CuptiApi api_ = cupti::FakeCupti::api();
  cupti::BufferPool buffers_;
  cupti::CorrelationTable launches_;
  cupti::GraphNodes nodes_;
  std::unique_ptr<spool::SpoolWriter> writer_;
  std::optional<cupti::KernelClasses> classes_;
  std::optional<cupti::ActivityAggregator> aggregator_;
  std::optional<cupti::RecordReader> reader_;
  std::vector<std::string> names_;
  std::vector<std::uint32_t> layers_;
  std::uint32_t correlation_ = 0;
  std::uint64_t random_ = 1;
};

// Each side waits for the other once a simulated second.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe(ends) != 0) std::exit(1);
  }
  template <typename T>
  void send(const T& value) const {
    if (write(ends[1], &value, sizeof value) != sizeof value) std::exit(1);
  }
  template <typename T>
  T receive() const {
    T value{};
    if (read(ends[0], &value, sizeof value) != sizeof value) std::exit(1);
    return value;
  }
};

struct TargetResult {
  std::uint64_t records = 0;
  std::uintmax_t memory = 0;
  double cpu_seconds = 0;
};

[[noreturn]] void run_target(const Day& day, const fs::path& spool, const Pipe& go,
                             const Pipe& done) {
  Target target(day, spool);
  for (std::int64_t second = 0; second != day.seconds(); ++second) {
    go.receive<char>();
    target.run(second);
    done.send('.');
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
  done.send(TargetResult{target.taken(), peak_memory(), static_cast<double>(cpu)});
  _exit(0);
}

model::Readings readings_of(std::int64_t second) {
  model::Readings readings;
  const HostTime begin = kBegin + second * 1s;
  for (int i = 0; i != 50; ++i) {
    readings.powers.push_back({model::SensorId{0}, begin + i * 20ms,
                               Power::watts(static_cast<double>(400 + (second * 50 + i) % 97))});
  }
  if (second % 4 == 0) {
    for (std::uint32_t i = 2; i != 7; ++i) {
      readings.gauges.push_back({model::SensorId{i}, begin, static_cast<double>(second % 60)});
    }
  }
  if (second % 10 == 0) {
    readings.counters.push_back({model::SensorId{1}, begin, begin + 3ms,
                                 Energy::joules(400.0 * static_cast<double>(second))});
  }
  return readings;
}

std::uintmax_t size_of(const fs::path& folder) {
  std::uintmax_t sum = 0;
  std::error_code err;
  for (const auto& entry : fs::directory_iterator(folder, err)) sum += entry.file_size(err);
  return sum;
}

// The records since the last call.
struct Taken : spool::SpoolConsumer {
  spool::TraceSink sink;
  spool::SpoolProcess about;

  model::ActivitySink& process(const spool::SpoolProcess& process) override {
    about = process;
    return sink;
  }
  void warn(std::string text) override { fmt::print(stderr, "day_bench: {}\n", text); }

  model::Trace take(const spool::SpoolReader& reader) {
    model::Trace rest;
    rest.status = sink.trace.status;
    model::Trace more = std::exchange(sink.trace, std::move(rest));
    more.pid = about.pid;
    more.program = about.program;
    more.bin = about.bin;
    more.position = reader.position(about);
    return more;
  }
};

int run_day(const Day& day) {
  const fs::path file = day.folder / fmt::format("day_bench-{}.jprof", getpid());
  const fs::path folder = file.string() + ".spool";
  fs::create_directory(folder);
  const Pipe go;
  const Pipe done;
  const HostTime start = HostClock::now();
  const pid_t child = fork();
  if (child == 0) run_target(day, folder, go, done);
  // Otherwise the end of the other process would go unnoticed.
  close(go.ends[0]);
  close(done.ends[1]);

  auto writer = must(recording::Writer::create(file));
  must(writer.add(model::Domain{}));
  for (std::uint32_t i = 0; i != 7; ++i) {
    model::Sensor sensor;
    sensor.id = model::SensorId{i};
    must(writer.add(sensor));
  }
  std::uintmax_t greatest_spool = 0;
  spool::SpoolReader reader(folder);
  Taken taken;
  for (std::int64_t second = 0; second != day.seconds(); ++second) {
    go.send('.');
    done.receive<char>();
    greatest_spool = std::max(greatest_spool, size_of(folder));
    must(reader.poll(taken));
    must(writer.append(0, taken.take(reader)));
    must(writer.append(readings_of(second)));
    must(writer.commit());
    reader.remove_taken();
  }
  const auto target = done.receive<TargetResult>();
  waitpid(child, nullptr, 0);
  must(writer.finish());

  const double took = seconds(HostClock::now() - start);
  fmt::print("| {} h at {} kernels/s, {} classes, {} layers | |\n|---|---|\n", day.hours,
             day.kernels_per_second, kClasses, kScopes);
  fmt::print("| records | {} |\n", target.records);
  fmt::print("| recording | {:.1f} MB |\n", megabytes(fs::file_size(file)));
  fmt::print("| greatest spool | {:.1f} MB |\n", megabytes(greatest_spool));
  fmt::print("| peak memory in the target | {:.1f} MB |\n", megabytes(target.memory));
  fmt::print("| peak memory of the tool's side | {:.1f} MB |\n", megabytes(peak_memory()));
  fmt::print("| records a second of the target's CPU time | {:.1f} million |\n",
             static_cast<double>(target.records) / std::max(1.0, target.cpu_seconds) / 1e6);
  fmt::print("| the whole took | {:.0f} s |\n", took);
  fs::remove(file);
  fs::remove_all(folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Day day;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--hours") {
      day.hours = std::atof(argv[i + 1]);
    } else if (option == "--kernels-per-second") {
      day.kernels_per_second = std::atoll(argv[i + 1]);
    } else if (option == "--folder") {
      day.folder = argv[i + 1];
    } else {
      fmt::print(stderr, "day_bench: no such option: {}\n", option);
      return 2;
    }
  }
  if (argc % 2 == 0 || day.seconds() <= 0 || day.kernels_per_second <= 0) {
    fmt::print(stderr, "day_bench: options need values above zero\n");
    return 2;
  }
  return run_day(day);
}
