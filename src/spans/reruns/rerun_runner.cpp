#include "spans/reruns/rerun_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>
#include <unordered_set>
#include <utility>

namespace jouleprof::reruns {
namespace {

namespace cuda = abi::cuda;

constexpr double kMostWaiting = 2;         // seconds, of work that takes milliseconds
constexpr double kPause = 0.05;            // seconds before a loop: idle
constexpr double kGraph = 0.002;           // seconds of one graph of launches
constexpr double kTimedGraph = 0.002;      // the same, by which launches are timed
constexpr double kTimedExactly = 0.003;    // seconds of waiting without sleep
constexpr std::size_t kMostNodes = 4096;   // of a graph
constexpr std::size_t kMostVariants = 16;  // of a kernel, that are timed
constexpr std::size_t kMostSizes = 6;      // of it, that have loops of their own
constexpr double kSameTime = 1.1;          // ratio up to which two variants are of one size
constexpr double kLeastPart = 0.03;        // of a kernel's time, for a size of its own
constexpr double kLeastSeconds = 0.1;      // of a loop
constexpr std::size_t kRestoredOften = std::size_t{256} << 20;  // bytes, between two bursts
constexpr std::size_t kLeftFree = std::size_t{512} << 20;       // bytes of the GPU's memory
constexpr std::size_t kLargeRegion = std::size_t{4} << 30;      // of which a part is saved
constexpr std::size_t kBeyond = std::size_t{128} << 20;     // of it, behind the last known address
constexpr std::size_t kMostOfAList = std::size_t{2} << 20;  // bytes, that may hold addresses
// Bursts of work, and pauses that are about as long: they keep the GPU below its power limit.
// Lengths vary, so that they do not keep step with the sensors.
constexpr double kBursts[] = {0.017, 0.023, 0.029, 0.019, 0.026};
constexpr double kSameClock = 0.012;  // relative
constexpr double kLeastPause = 0.02;  // of a burst
constexpr double kMostPause = 2;
constexpr double kFirstStep = 2;    // its ratio to the one before ...
constexpr double kLeastStep = 1.1;  // ... the square root of which it is after each turn
// A program at its limit. One burst's clock differs by 3 to 6 %, that of all five lengths by 2 to
// 4 %; it rises by 2 to 13 % where pauses are e times as long (H200, 28 Nov: a matrix product).
constexpr double kLimitedPause = 0.35;
constexpr double kTurns = 12;
constexpr double kMostTurn = 1.1;
constexpr double kFree = 0.97;  // of the clock of short graphs: the kernel meets no limit
// A heavy kernel draws more than the power limit, which lowers the clock within milliseconds, while
// the clock that NVML reads may stay as it was: the time of a launch shows it. Shorter bursts keep
// the mean power of those milliseconds below the limit.
constexpr double kSlower = 1.03;          // ratio of times of a launch
constexpr double kLeastBurst = 0.125;     // of kBursts
constexpr double kClockReadTakes = 0.01;  // seconds, as long as a read of the clock may take
constexpr std::size_t kReadsOfShort = 4;  // bursts, of which the clock is read in one
constexpr double kRestoreEach = 0.017;    // seconds of bursts ...
constexpr double kRestoreTakes = 0.05;    // ... and at most this part of their time
constexpr double kLeadIn = 1.0;           // seconds, at most, until the clock is the program's
constexpr double kClockRead = 0.7;        // of a burst: when its clock is read
// A heavy kernel runs at up to 14 % less than NVML's clock, and more so the higher that is (H200,
// 28 Nov: the SMs' own cycle counters). Where a program at its limit slows a kernel by as much, the
// time of a launch says more, unless both clocks are too far apart: then something else slows it,
// too.
constexpr double kFollowsClock = 1.05;
constexpr double kLeastByTime = 0.88;  // of NVML's clock
constexpr double kMostByTime = 1.03;
constexpr double kLongerAtLimit = 2;  // ratio of a loop's length to that of others

double since(HostTime begin) { return seconds(HostClock::now() - begin); }

void sleep_for(double time) { std::this_thread::sleep_for(std::chrono::duration<double>(time)); }

struct Choice {
  const RecordedKernel* kernel;
  const Variant* variant;
  double launches;
};

// The variants that are timed: those with most launches.
std::vector<Choice> choices_of(const Planned& planned) {
  std::vector<Choice> choices;
  for (const RecordedKernel* kernel : planned.kernels) {
    // Variants that gave way to others differed by chance, as the rarest of those that are there.
    std::uint64_t least = UINT64_MAX;
    for (const auto& [hash, variant] : kernel->variants) least = std::min(least, variant.launches);
    std::size_t rare = 0;
    for (const auto& [hash, variant] : kernel->variants) rare += variant.launches <= 2 * least;
    for (const auto& [hash, variant] : kernel->variants) {
      const double more = variant.launches <= 2 * least
                              ? static_cast<double>(kernel->given_way) / static_cast<double>(rare)
                              : 0;
      choices.push_back({kernel, &variant, static_cast<double>(variant.launches) + more});
    }
  }
  std::ranges::sort(choices, [](const Choice& a, const Choice& b) {
    return std::pair(a.launches, a.variant->last_used) >
           std::pair(b.launches, b.variant->last_used);
  });
  choices.resize(std::min(choices.size(), kMostVariants));
  return choices;
}

}  // namespace

// One launch, to be made again.
struct RerunRunner::Turn {
  const RecordedKernel* kernel;
  const Launch* launch;
};

// Variants of about the same time.
struct RerunRunner::Loop {
  std::vector<Turn> newest;  // of each
  std::vector<Turn> all;
  double launches = 0;
  double once_newest = 0;  // seconds of a launch
  double once_all = 0;
};

struct RerunRunner::Region {
  cuda::Context context = nullptr;
  cuda::DevicePtr begin = 0;
  cuda::DevicePtr end = 0;
  cuda::DevicePtr copy = 0;
};

struct RerunRunner::Burst {
  Result result = cuda::kSuccess;
  double took = 0;    // seconds
  double clock = 0;   // hertz; 0: not known
  double slower = 0;  // ratio of its launches' time to that of a short graph; 0: not known
};

// The mean SM clock of bursts.
class RerunRunner::MeanClock {
 public:
  void add(const Burst& one) {
    if (one.clock <= 0) return;
    clocks_ += one.clock;
    ++count_;
    if (one.slower <= 0) return;
    slower_ += one.slower;
    ++timed_;
  }
  std::size_t count() const { return count_; }
  double read() const { return count_ > 0 ? clocks_ / static_cast<double>(count_) : 0; }
  // By the time of their launches, which is `slower_there` times that of a short graph at
  // `program_clock`, where it follows the clock; else as read.
  double by_time(double program_clock, double slower_there) const {
    if (timed_ == 0 || slower_there < kFollowsClock) return read();
    const double clock = program_clock * slower_there * static_cast<double>(timed_) / slower_;
    return std::clamp(clock, kLeastByTime * read(), kMostByTime * read());
  }

 private:
  double clocks_ = 0;
  double slower_ = 0;
  std::size_t count_ = 0;
  std::size_t timed_ = 0;
};

// How long to run and to pause, so that the SM clock becomes the program's: a limit of power lowers
// it where bursts are long or pauses are short.
class RerunRunner::Pace {
  // Its bursts, relative to the longest, and its pauses, relative to a burst.
  struct Rhythm {
    double burst = 1;
    double pause = 1;
  };

 public:
  // `slower_there`: see MeanClock. `highest_clock`: that of short graphs. `begin`: the pause where
  // both are at their limit.
  Pace(double program_clock, double slower_there, double highest_clock, double begin)
      : wanted_(program_clock),
        slower_(slower_there),
        highest_(highest_clock),
        limited_(program_clock > 0 && program_clock * (1 + 2 * kSameClock) < highest_clock) {
    if (limited_) now_.pause = begin;
  }

  double pause() const { return now_.pause; }  // of a burst
  double burst() const { return now_.burst; }  // of its longest
  // Whether the kernel meets the limit, too.
  bool heavy() const { return heavy_; }
  // Whether nothing else would bring the clock nearer.
  bool settled() const { return settled_; }
  // From now on the mean of all bursts is to be at the program's clock.
  void begin_counting() { counts_ = true; }
  double clock() const { return clock_of(counted_); }
  void saw(const Burst& one) {
    const Rhythm before = now_;
    if (counts_) counted_.add(one);
    if (!limited_) {
      below_limit(one);
    } else {
      mean_.add(one);
      if (mean_.count() < std::size(kBursts)) return;
      at_limit(std::exchange(mean_, {}));
    }
    settled_ = now_.pause == before.pause && now_.burst == before.burst;
  }

 private:
  // The program's clock is that of short bursts.
  void below_limit(const Burst& one) {
    const bool known = one.clock > 0 && wanted_ > 0;
    if (one.slower > kSlower || (known && one.clock < (1 - kSameClock) * wanted_)) {
      if (now_.burst > kLeastBurst) {
        now_.burst = std::max(now_.burst / kFirstStep, kLeastBurst);
      } else {
        turn(+1);
      }
    } else if (known && one.clock > (1 + kSameClock) * wanted_) {
      turn(-1);
    }
  }
  void turn(int to) {  // +1: to longer pauses
    if (to == -last_) step_ = std::max(std::sqrt(step_), kLeastStep);
    last_ = to;
    now_.pause =
        std::clamp(to > 0 ? now_.pause * step_ : now_.pause / step_, kLeastPause, kMostPause);
  }
  double clock_of(const MeanClock& mean) const {
    return limited_ ? mean.by_time(wanted_, slower_) : mean.read();
  }
  // `mean`: of bursts of all lengths.
  void at_limit(const MeanClock& mean) {
    heavy_ = slower_ >= kFollowsClock || mean.read() <= kFree * highest_;
    double off = std::log(clock_of(mean) / wanted_);
    if (counts_) off += std::log(clock_of(counted_) / wanted_);
    if (std::abs(off) <= kSameClock) return;
    const double turn = std::clamp(-kTurns * off, -kMostTurn, kMostTurn);
    now_.pause =
        heavy_ ? std::clamp(now_.pause * std::exp(turn), kLeastPause, kMostPause) : kLeastPause;
  }

  double wanted_;
  double slower_;
  double highest_;
  bool limited_;        // the program, by its power: its clock is not that of short graphs
  bool heavy_ = false;  // the kernel
  double step_ = kFirstStep;
  int last_ = 0;
  MeanClock mean_;
  bool counts_ = false;
  MeanClock counted_;
  Rhythm now_;
  bool settled_ = false;
};

class RerunRunner::Graph {
 public:
  explicit Graph(const DriverApi& driver) : driver_(driver) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (executable != nullptr && !leaked) driver_.destroy_executable(executable);
    if (graph != nullptr && !leaked) driver_.destroy_graph(graph);
  }

  cuda::Graph graph = nullptr;
  cuda::GraphExec executable = nullptr;
  bool leaked = false;  // destroying it would wait for the GPU

 private:
  const DriverApi& driver_;
};

// Ends with its scope, but not where the kernel did not end.
class RerunRunner::Risk {
 public:
  explicit Risk(RerunRunner& runner) : runner_(runner) { runner_.marks_.risk(true); }
  Risk(const Risk&) = delete;
  Risk& operator=(const Risk&) = delete;
  ~Risk() {
    if (!runner_.outcome_.stuck) runner_.marks_.risk(false);
  }

 private:
  RerunRunner& runner_;
};

RerunRunner::RerunRunner(const DriverApi& driver, RerunMarks marks)
    : driver_(driver), marks_(std::move(marks)), limited_pause_(kLimitedPause) {}

RerunRunner::~RerunRunner() {
  if (!outcome_.broken.empty()) return;
  for (const auto& [of, module] : modules_) {
    if (use(of.first) == cuda::kSuccess) driver_.unload_module(module);
  }
  for (const Region& region : regions_) {
    if (region.copy != 0 && use(region.context) == cuda::kSuccess) driver_.free(region.copy);
  }
}

RerunRunner::Result RerunRunner::use(cuda::Context context) {
  if (const Result set = driver_.set_context(context); set != cuda::kSuccess) return set;
  cuda::Stream& stream = streams_[context];
  if (stream == nullptr) {
    const Result made = driver_.create_stream(&stream, cuda::kStreamNonBlocking);
    if (made != cuda::kSuccess) return made;
  }
  stream_ = stream;
  return cuda::kSuccess;
}

RerunRunner::Result RerunRunner::wait(double most) {
  const HostTime begin = HostClock::now();
  for (;;) {
    const Result result = driver_.query_stream(stream_);
    const double waited = since(begin);
    if (result != cuda::kNotReady || waited > most) return result;
    if (waited > kTimedExactly) sleep_for(0.00005);
  }
}

std::string RerunRunner::words(Result result) const {
  const char* name = nullptr;
  if (driver_.error_name(result, &name) != cuda::kSuccess || name == nullptr) {
    return fmt::format("CUDA error {}", result);
  }
  return name;
}

// `asynchronous`: found by waiting, so that the context is lost with it.
std::string RerunRunner::failure(Result result, bool asynchronous) {
  if (result == cuda::kNotReady) {
    outcome_.stuck = true;
    outcome_.broken = fmt::format("it did not end within {:g} s", kMostWaiting);
    return outcome_.broken;
  }
  if (!asynchronous) return fmt::format("the driver refuses it with {}", words(result));
  outcome_.broken = fmt::format("it failed with {}", words(result));
  return outcome_.broken;
}

// The allocation of device memory that `word` points into, if it does.
void RerunRunner::add_region(cuda::Context context, std::uint64_t word, bool exactly) {
  if (!may_be_address(word)) return;
  unsigned type = 0;
  cuda::DevicePtr begin = 0;
  std::size_t bytes = 0;
  if (driver_.pointer_attribute(&type, cuda::kPointerMemoryType, word) != cuda::kSuccess) return;
  if (type != cuda::kMemoryOfDevice || driver_.range_of(&begin, &bytes, word) != cuda::kSuccess) {
    elsewhere_ = true;
    return;
  }
  cuda::DevicePtr end = begin + bytes;
  if (bytes > kLargeRegion && !exactly) {
    begin = word;
    end = std::min<cuda::DevicePtr>(end, word + kBeyond);
  }
  regions_.push_back({context, begin, end, 0});
}

void RerunRunner::join_regions() {
  std::ranges::sort(regions_, {}, &Region::begin);
  std::vector<Region> joined;
  for (const Region& region : regions_) {
    // Neighbours are no one allocation, and no copy reaches over two.
    if (!joined.empty() && region.begin < joined.back().end &&
        region.context == joined.back().context) {
      joined.back().end = std::max(joined.back().end, region.end);
    } else {
      joined.push_back(region);
    }
  }
  regions_ = std::move(joined);
}

// What lists of addresses point to that lie in memory, such as those of a batch of products. Most
// of what is read is no list: tens of millions of numbers.
void RerunRunner::add_pointed() {
  const std::vector<Region> known = regions_;  // in order, and apart
  const auto is_known = [&known](std::uint64_t word) {
    const auto after = std::ranges::upper_bound(known, word, {}, &Region::begin);
    return after != known.begin() && word < std::prev(after)->end;
  };
  std::unordered_set<std::uint64_t> seen;
  std::vector<std::uint64_t> words;
  for (const Region& region : known) {
    const std::size_t bytes = region.end - region.begin;
    if (bytes > kMostOfAList || use(region.context) != cuda::kSuccess) continue;
    words.resize(bytes / sizeof(std::uint64_t));
    if (driver_.copy_to_host(words.data(), region.begin, words.size() * sizeof(std::uint64_t)) !=
        cuda::kSuccess) {
      continue;
    }
    for (const std::uint64_t word : words) {
      if (!may_be_address(word) || is_known(word) || !seen.insert(word).second) continue;
      add_region(region.context, word, true);
    }
  }
  join_regions();
}

std::string RerunRunner::save(const Plan& plan, bool exactly) {
  std::set<std::uint64_t> seen;
  for (const Planned& planned : plan.kernels) {
    for (const RecordedKernel* kernel : planned.kernels) {
      if (use(kernel->context) != cuda::kSuccess) return "its context is gone";
      for (const auto& [hash, variant] : kernel->variants) {
        for (const Launch& launch : variant.kept) {
          for (std::size_t i = 0; i + 8 <= launch.parameters.size(); i += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, launch.parameters.data() + i, 8);
            if (seen.insert(word).second) add_region(kernel->context, word, exactly);
          }
        }
      }
    }
  }
  join_regions();
  if (exactly) add_pointed();
  std::size_t without_room = 0;
  std::string refused;
  for (Region& region : regions_) {
    const std::size_t bytes = region.end - region.begin;
    std::size_t free = 0;
    std::size_t whole = 0;
    if (use(region.context) != cuda::kSuccess || driver_.memory(&free, &whole) != cuda::kSuccess ||
        free < bytes + kLeftFree || driver_.allocate(&region.copy, bytes) != cuda::kSuccess) {
      region.copy = 0;
      without_room += bytes;
      continue;
    }
    Result copied = driver_.copy(region.copy, region.begin, bytes, stream_);
    if (copied == cuda::kSuccess) copied = wait(kMostWaiting);
    if (copied != cuda::kSuccess) {
      driver_.free(std::exchange(region.copy, 0));
      refused = fmt::format("{} bytes cannot be copied ({})", bytes, words(copied));
    }
  }
  if (exactly && elsewhere_) return "kernels use memory of the host, of which there is no copy";
  if (without_room > 0) {
    return fmt::format("the GPU has no room for a copy of {:.1f} GB",
                       1e-9 * static_cast<double>(without_room));
  }
  return refused;
}

bool RerunRunner::restore_all() {
  if (!outcome_.broken.empty()) return false;
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    if (use(regions_[i].context) != cuda::kSuccess || restore({i}) != cuda::kSuccess) return false;
  }
  return true;
}

RerunRunner::Result RerunRunner::restore(const std::vector<std::size_t>& regions) {
  for (const std::size_t i : regions) {
    const Region& region = regions_[i];
    if (region.copy == 0) continue;
    const Result copied =
        driver_.copy(region.begin, region.copy, region.end - region.begin, stream_);
    if (copied != cuda::kSuccess) return copied;
  }
  return wait(kMostWaiting);
}

std::vector<std::size_t> RerunRunner::regions_of(const std::vector<Turn>& turns) const {
  std::set<std::size_t> found;
  for (const Turn& turn : turns) {
    const auto& bytes = turn.launch->parameters;
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, 8);
      const auto after = std::ranges::upper_bound(regions_, word, {}, &Region::begin);
      if (after == regions_.begin() || word >= std::prev(after)->end) continue;
      found.insert(static_cast<std::size_t>(std::prev(after) - regions_.begin()));
    }
  }
  return {found.begin(), found.end()};
}

RerunRunner::Result RerunRunner::launch_once(const Turn& turn) {
  for (const Cleared& set : turn.launch->cleared) {
    const Result done =
        set.element_bytes == 1
            ? driver_.set_bytes(set.address, static_cast<unsigned char>(set.value), set.count,
                                stream_)
        : set.element_bytes == 2
            ? driver_.set_shorts(set.address, static_cast<unsigned short>(set.value), set.count,
                                 stream_)
            : driver_.set_words(set.address, set.value, set.count, stream_);
    if (done != cuda::kSuccess) return done;
  }
  const RecordedKernel& kernel = *turn.kernel;
  if (kernel.shape.function == nullptr) return cuda::kSuccess;  // a memset
  // The driver's interface takes no const; it reads.
  auto* data = const_cast<unsigned char*>(turn.launch->parameters.data());
  std::size_t bytes = turn.launch->parameters.size();
  std::vector<void*> parameters;
  for (const auto& [offset, size] : kernel.layout) parameters.push_back(data + offset);
  void* extra[] = {reinterpret_cast<void*>(cuda::kExtraBuffer), data,
                   reinterpret_cast<void*>(cuda::kExtraBufferSize), &bytes,
                   reinterpret_cast<void*>(cuda::kExtraEnd)};
  auto attributes = kernel.attributes;
  const auto& [recorded, grid, block, shared, hash] = kernel.shape;
  const cuda::LaunchConfig config{
      {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]},          shared, stream_,
      attributes.data(),           static_cast<unsigned>(attributes.size())};
  return driver_.launch(&config, function_of(kernel), kernel.packed ? nullptr : parameters.data(),
                        kernel.packed ? extra : nullptr);
}

RerunRunner::Result RerunRunner::make(const std::vector<Turn>& turns, std::size_t rounds,
                                      Graph& graph) {
  Result result = driver_.begin_capture(stream_, cuda::kCaptureThreadLocal);
  if (result != cuda::kSuccess) return result;
  for (std::size_t i = 0; i < rounds && result == cuda::kSuccess; ++i) {
    for (const Turn& turn : turns) {
      if (result == cuda::kSuccess) result = launch_once(turn);
    }
  }
  const Result ended = driver_.end_capture(stream_, &graph.graph);
  if (result == cuda::kSuccess) result = ended;
  if (result == cuda::kSuccess) result = driver_.instantiate(&graph.executable, graph.graph, 0);
  return result;
}

RerunRunner::Result RerunRunner::time(const std::vector<Turn>& turns, double about,
                                      double& seconds) {
  const double turn = std::max(about, 1e-6) * static_cast<double>(turns.size());
  const auto rounds = std::clamp<std::size_t>(static_cast<std::size_t>(kTimedGraph / turn), 1,
                                              std::max<std::size_t>(kMostNodes / turns.size(), 1));
  Graph graph(driver_);
  Result result = make(turns, rounds, graph);
  if (result != cuda::kSuccess) return result;
  double least = INFINITY;
  const Risk risk(*this);
  for (int i = 0; i < 3; ++i) {
    const HostTime begin = HostClock::now();
    result = driver_.launch_graph(graph.executable, stream_);
    if (result == cuda::kSuccess) result = wait(kMostWaiting);
    if (result != cuda::kSuccess) {
      graph.leaked = true;
      failure(result, true);
      return result;
    }
    if (i > 0) least = std::min(least, since(begin));  // the first launch uploads the graph
  }
  seconds = least / static_cast<double>(rounds * turns.size());
  return cuda::kSuccess;
}

RerunRunner::Result RerunRunner::loop(const std::vector<Turn>& turns, double once,
                                      double seconds_in_all, double of_program) {
  const auto size = static_cast<double>(turns.size());
  const auto rounds =
      std::clamp<std::size_t>(static_cast<std::size_t>(kGraph / std::max(once * size, 1e-7)), 1,
                              std::max<std::size_t>(kMostNodes / turns.size(), 1));
  Graph graph(driver_);
  Result result = make(turns, rounds, graph);
  if (result != cuda::kSuccess) return result;
  const auto regions = regions_of(turns);
  std::size_t bytes = 0;
  for (const std::size_t i : regions) bytes += regions_[i].end - regions_[i].begin;
  const double length = static_cast<double>(rounds) * once * size;
  result = driver_.launch_graph(graph.executable, stream_);
  if (result == cuda::kSuccess) result = wait(kMostWaiting);
  if (result == cuda::kSuccess) result = restore(regions);
  if (marks_.clock) highest_clock_ = std::max(highest_clock_, marks_.clock());
  Pace pace(marks_.program_clock, slower_there_, highest_clock_, limited_pause_);
  double since_restored = 0;
  double restore_each = kRestoreEach;
  // Bursts until the clock has settled, or over a time.
  const auto bursts = [&](double most, bool until_settled) {
    const HostTime begin = HostClock::now();
    for (std::size_t i = 0; result == cuda::kSuccess && since(begin) < most; ++i) {
      if (marks_.stop() || (until_settled && i > 0 && pace.settled())) return;
      const double long_one = pace.burst() * kBursts[i % std::size(kBursts)];
      Burst one =
          burst(graph, length, long_one, long_one >= kClockReadTakes || i % kReadsOfShort == 0);
      result = one.result;
      since_restored += one.took;
      if (result == cuda::kSuccess && bytes <= kRestoredOften && since_restored >= restore_each) {
        const HostTime restoring = HostClock::now();
        result = restore(regions);
        restore_each = std::max(kRestoreEach, since(restoring) / kRestoreTakes);
        since_restored = 0;
      }
      sleep_for(std::min(pace.pause() * one.took, kMostWaiting));
      pace.saw(one);
    }
  };
  const double left = seconds(end_ - HostClock::now()) - seconds_in_all;
  if (marks_.program_clock > 0) bursts(std::min(kLeadIn, left), true);
  if (pace.heavy()) {
    seconds_in_all += std::clamp(seconds(end_ - HostClock::now()) - seconds_in_all, 0.0,
                                 (kLongerAtLimit - 1) * seconds_in_all);
  }
  sleep_for(kPause);
  marks_.prepared();
  pace.begin_counting();
  bursts(seconds_in_all, false);
  if (result != cuda::kSuccess) {
    graph.leaked = true;
    failure(result, true);
    return result;
  }
  marks_.looped(pace.clock(), of_program);
  if (pace.heavy()) limited_pause_ = pace.pause();
  return restore(regions);
}

// `length`: seconds of the graph.
RerunRunner::Burst RerunRunner::burst(const Graph& graph, double length, double burst,
                                      bool with_clock) {
  Burst out;
  const auto launches = std::max<std::size_t>(static_cast<std::size_t>(burst / length), 1);
  const double expected = static_cast<double>(launches) * length;
  const HostTime begin = HostClock::now();
  for (std::size_t k = 0; k < launches && out.result == cuda::kSuccess; ++k) {
    out.result = driver_.launch_graph(graph.executable, stream_);
  }
  bool timed = true;
  if (out.result == cuda::kSuccess && with_clock && marks_.clock) {
    const double most = kClockRead * expected - since(begin);
    if (most > 0) sleep_for(std::min(most, kMostWaiting));
    out.clock = marks_.clock();
    highest_clock_ = std::max(highest_clock_, out.clock);
    timed = driver_.query_stream(stream_) == cuda::kNotReady;  // else it ended some time before
  }
  if (out.result == cuda::kSuccess) out.result = wait(kMostWaiting);
  out.took = since(begin);
  if (timed) out.slower = out.took / expected;
  return out;
}

// Makes a kernel's code ready to run, where the program has unloaded it.
RerunRunner::Result RerunRunner::load(const RecordedKernel& kernel) {
  if (kernel.code == nullptr || loaded_.contains(&kernel)) return cuda::kSuccess;
  if (driver_.load_module == nullptr || driver_.unload_module == nullptr ||
      driver_.function_in == nullptr) {
    return cuda::kNotInitialized;
  }
  cuda::Module& module = modules_[{kernel.context, kernel.code.get()}];
  if (module == nullptr) {
    const Result made = driver_.load_module(&module, kernel.code->data());
    if (made != cuda::kSuccess) {
      modules_.erase({kernel.context, kernel.code.get()});
      return made;
    }
  }
  cuda::Function function = nullptr;
  const Result found = driver_.function_in(&function, module, kernel.name.c_str());
  if (found != cuda::kSuccess) return found;
  if (driver_.set_attribute != nullptr && !kernel.attributes.empty()) {
    driver_.set_attribute(function, cuda::kFunctionAnyClusterSize, 1);
  }
  loaded_[&kernel] = function;
  return cuda::kSuccess;
}

// Programs set the most shared memory of a function before each launch: the last one may have less
// than this kernel. It is never lowered, because a program that goes on may have set it for good.
void RerunRunner::allow_shared(const RecordedKernel& kernel) {
  if (driver_.attribute == nullptr || driver_.set_attribute == nullptr) return;
  const cuda::Function function = function_of(kernel);
  const auto wanted = static_cast<int>(kernel.shape.shared_bytes);
  int most = 0;
  if (driver_.attribute(&most, cuda::kFunctionMaxDynamicShared, function) == cuda::kSuccess &&
      most < wanted) {
    driver_.set_attribute(function, cuda::kFunctionMaxDynamicShared, wanted);
  }
}

cuda::Function RerunRunner::function_of(const RecordedKernel& kernel) const {
  const auto loaded = loaded_.find(&kernel);
  return loaded != loaded_.end() ? loaded->second : kernel.shape.function;
}

// Empty: it ran. Else why not.
std::string RerunRunner::first_run(const Turn& turn) {
  const Risk risk(*this);
  if (const Result result = launch_once(turn); result != cuda::kSuccess) {
    return failure(result, false);
  }
  const Result result = wait(kMostWaiting);
  return result == cuda::kSuccess ? std::string() : failure(result, true);
}

// Empty: it ran. Else why not.
std::string RerunRunner::rerun(const Planned& planned, double seconds_in_all) {
  std::vector<Loop> loops;
  double newest = 0;
  double all = 0;
  double launches = 0;
  for (const Choice& choice : choices_of(planned)) {
    if (const Result set = use(choice.kernel->context); set != cuda::kSuccess) {
      return failure(set, false);
    }
    if (const Result loaded = load(*choice.kernel); loaded != cuda::kSuccess) {
      return fmt::format("its code was unloaded, and loads no more ({})", words(loaded));
    }
    allow_shared(*choice.kernel);
    Loop one;
    one.launches = choice.launches;
    const auto& kept = choice.variant->kept;
    for (const Launch& launch : kept) one.all.push_back({choice.kernel, &launch});
    one.newest = {{choice.kernel, &*std::ranges::max_element(kept, {}, &Launch::number)}};
    const auto about = planned.in_place.busy / static_cast<double>(planned.in_place.launches);
    const auto regions = regions_of(one.all);
    if (const Result result = restore(regions); result != cuda::kSuccess) {
      return failure(result, true);
    }
    if (std::string why = first_run(one.newest.front()); !why.empty()) return why;
    Result result = time(one.newest, about, one.once_newest);
    one.once_all = one.once_newest;
    if (result == cuda::kSuccess && one.all.size() > 1) result = time(one.all, about, one.once_all);
    if (result != cuda::kSuccess) {
      return outcome_.broken.empty() ? failure(result, false) : outcome_.broken;
    }
    newest += one.launches * one.once_newest;
    all += one.launches * one.once_all;
    launches += one.launches;
    const auto same = std::ranges::find_if(loops, [&](const Loop& other) {
      const auto [short_one, long_one] = std::minmax(other.once_newest, one.once_newest);
      return long_one <= kSameTime * short_one &&
             other.newest.front().kernel->context == choice.kernel->context;
    });
    if (same == loops.end()) {
      loops.push_back(std::move(one));
    } else {
      same->launches += one.launches;
      same->newest.insert(same->newest.end(), one.newest.begin(), one.newest.end());
      same->all.insert(same->all.end(), one.all.begin(), one.all.end());
    }
  }
  // Memory that was just written is in the cache in the program, or it is not: the way whose time
  // is the program's is the right one.
  const double in_place =
      planned.in_place.busy / static_cast<double>(planned.in_place.launches) * launches;
  const bool in_turn = std::abs(std::log(all / in_place)) < std::abs(std::log(newest / in_place));
  const auto once_of = [&](const Loop& each) { return in_turn ? each.once_all : each.once_newest; };
  const double busy = in_turn ? all : newest;
  slower_there_ = in_place / busy;
  // Sizes run in the proportions of the program, so that together they are the program's mixture.
  std::ranges::sort(loops, [&](const Loop& a, const Loop& b) {
    return a.launches * once_of(a) > b.launches * once_of(b);
  });
  loops.resize(std::min(loops.size(), kMostSizes));
  double kept = 0;
  for (const Loop& each : loops) {
    const double part = each.launches * once_of(each) / busy;
    if (part >= kLeastPart) kept += part;
  }
  bool any = false;
  for (const Loop& each : loops) {
    const double part = each.launches * once_of(each) / busy;
    if (part < kLeastPart) continue;
    if (marks_.stop()) break;
    if (const Result set = use(each.newest.front().kernel->context); set != cuda::kSuccess) {
      return failure(set, false);
    }
    const Result result =
        loop(in_turn ? each.all : each.newest, once_of(each),
             std::max(seconds_in_all * part / kept, kLeastSeconds), each.launches);
    if (result != cuda::kSuccess) {
      return outcome_.broken.empty() ? failure(result, false) : outcome_.broken;
    }
    any = true;
  }
  return any ? std::string() : "re-runs were ended";
}

RerunOutcome RerunRunner::run(const Plan& plan, double most, HostTime end) {
  outcome_ = {};
  outcome_.left_out = plan.left_out;
  end_ = end;
  std::vector<double> busy;
  for (const Planned& planned : plan.kernels) busy.push_back(planned.in_place.busy);
  std::string ended;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const Planned& planned = plan.kernels[i];
    const double share = planned.in_place.busy / plan.busy;
    const double left = seconds(end - HostClock::now());
    const double length = loop_seconds(std::span(busy).subspan(i), most, left).front();
    std::string why = !ended.empty()  ? ended
                      : marks_.stop() ? "re-runs were ended"
                      : left < length ? "there was no time left"
                                      : rerun(planned, length);
    if (why.empty()) {
      ++outcome_.kernels;
      outcome_.share += share;
      continue;
    }
    outcome_.left_out.push_back({planned.name, share, std::move(why)});
    if (!outcome_.broken.empty() && ended.empty()) ended = "nothing ran after one that failed";
  }
  marks_.prepared();
  return outcome_;
}

}  // namespace jouleprof::reruns
