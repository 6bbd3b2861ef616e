// Writes the spool of a traced program, without a GPU:
//
//   jouleprof_traced_program UUID SECONDS [--quit] [--replay SECONDS] KERNEL:PERIOD:DUTY:PHASE ...
//
// The spool has launches of each KERNEL, 1000 a second, wherever the wall clock less PHASE
// is within the first DUTY of a PERIOD (seconds): as the simulated NVML's squares are high. Prints
// the launches of each. With --replay it says of its last seconds that the first kernel's layer was
// run alone then. With --quit it ends as if it were killed. Exits with 3 where JOULEPROF_TRACE does
// not say where to write.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "model/activity/activity_codec.h"
#include "recording/spool/spool_writer.h"

namespace {

using namespace jouleprof;
using namespace std::chrono_literals;

constexpr Duration kBin = 5ms;
constexpr Duration kFlush = 500ms;

struct Square {
  std::string kernel;
  double period = 0;
  double high = 0;  // seconds of each period
  double phase = 0;
  double real_minus_host = 0;  // seconds

  // How much of [t, t + length) it is high, in steps of 0.1 ms.
  Duration busy(HostTime t, Duration length) const {
    constexpr Duration kStep = 100us;
    Duration sum{};
    for (Duration at = kStep / 2; at < length; at += kStep) {
      const double wall = seconds((t + at).time_since_epoch()) + real_minus_host - phase;
      if (wall - std::floor(wall / period) * period < high) sum += kStep;
    }
    return sum;
  }
};

class Program {
 public:
  Program(model::ActivitySink& sink, const std::string& uuid) : sink_(sink) {
    sink_.define(0, model::TracedDevice{0, uuid, "simulated"});
    model::Layer model_layer;
    model_layer.name = model_layer.type = "Model";
    sink_.define(0, model_layer);
  }

  void send_status(bool ended) {
    status_.ended = ended;
    sink_.status(status_);
  }

  // What ran between two moments; each bin in whole microseconds.
  void send(HostTime begin, HostTime end, const std::vector<Square>& squares) {
    for (std::uint32_t bin = 0; begin + bin * kBin < end; ++bin) {
      for (const Square& square : squares) {
        const Duration busy = square.busy(begin + bin * kBin, kBin);
        if (busy <= Duration{}) continue;
        const std::uint32_t id = class_of(square.kernel);
        const auto count = static_cast<std::uint64_t>(busy / 1ms);
        bins_.add(model::BinEntry{bin, id, static_cast<std::uint64_t>(busy.count()), count});
        used_[id].launches += count;
        launches[square.kernel] += count;
        used_[id].busy += busy;
      }
    }
    model::ActivityEncoder scopes;
    for (auto& [id, use] : used_) {
      if (use.busy == Duration{}) continue;
      scopes.add(
          model::ScopeEntry{id, id, use.launches, static_cast<std::uint64_t>(use.busy.count())});
      status_.activities += use.launches;
      use = {};
    }
    sink_.add({model::ChunkKind::kBins, 0, begin, end, bins_.take()});
    sink_.add({model::ChunkKind::kScopes, 0, begin, end, scopes.take()});
    sink_.status(status_);
  }

  void send_replay(HostTime begin, HostTime end) {
    model::ActivityEncoder entry;
    entry.add(model::KernelRerun{});
    sink_.add({model::ChunkKind::kReplay, model::kNone, begin, end, entry.take()});
  }

  std::map<std::string, std::uint64_t> launches;

 private:
  struct Use {
    std::uint64_t launches = 0;
    Duration busy{};
  };

  // Its class, and the layer that launches it.
  std::uint32_t class_of(const std::string& kernel) {
    const auto [found, is_new] =
        classes_.emplace(kernel, static_cast<std::uint32_t>(classes_.size()));
    const std::uint32_t id = found->second;
    if (is_new) {
      model::KernelClass kernel_class;
      kernel_class.name = kernel;
      kernel_class.grid = {132, 1, 1};
      kernel_class.block = {128, 1, 1};
      sink_.define(id, kernel_class);
      model::Layer layer;
      layer.name = layer.type = kernel + "_layer";
      layer.parent = 0;
      sink_.define(id + 1, layer);
      model::Scope scope;
      scope.layer = id + 1;
      scope.phase = model::Phase::kForward;
      sink_.define(id, scope);
    }
    return id;
  }

  model::ActivitySink& sink_;
  model::ActivityEncoder bins_;
  model::TraceStatus status_;
  std::map<std::string, std::uint32_t> classes_;
  std::map<std::uint32_t, Use> used_;
};

}  // namespace

int main(int argc, char** argv) {
  const char* folder = std::getenv("JOULEPROF_TRACE");
  if (folder == nullptr || argc < 3) return 3;
  model::Trace header;
  header.pid = ::getpid();
  header.program = "traced_program";
  header.bin = kBin;
  auto writer = spool::SpoolWriter::open(folder, header);
  if (!writer) {
    fmt::print(stderr, "{}\n", writer.error().message);
    return 3;
  }
  Program program(**writer, argv[1]);
  const ClockPoint clock = ClockPoint::now();
  bool quits = false;
  Duration replay{};
  std::vector<Square> squares;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quit") {
      quits = true;
      continue;
    }
    if (word == "--replay" && i + 1 < argc) {
      replay = duration_of(parse_number(argv[++i]).value_or(0));
      continue;
    }
    const auto parts = split(word, ':');
    if (parts.size() != 4) return 2;
    Square square;
    square.kernel = parts[0];
    square.period = parse_number(parts[1]).value_or(1);
    square.high = square.period * parse_number(parts[2]).value_or(1);
    square.phase = parse_number(parts[3]).value_or(0);
    square.real_minus_host =
        seconds(clock.real.time_since_epoch()) - seconds(clock.host.time_since_epoch());
    squares.push_back(std::move(square));
  }
  const HostTime end = clock.host + duration_of(parse_number(argv[2]).value_or(1));
  for (HostTime begin = clock.host; begin < end; begin += kFlush) {
    const HostTime stop = std::min(begin + kFlush, end);
    std::this_thread::sleep_for(stop - HostClock::now());
    program.send(begin, stop, squares);
  }
  if (replay > Duration{}) program.send_replay(end - replay, end);
  if (quits) ::_exit(0);
  program.send_status(true);
  (*writer)->close();
  for (const auto& [kernel, count] : program.launches) fmt::print("{} {}\n", kernel, count);
  return (*writer)->lost() == 0 ? 0 : 1;
}
