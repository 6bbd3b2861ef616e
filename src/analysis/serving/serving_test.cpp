// A toy engine with continuous batching, chunked prefill, preemption, speculative decoding and a
// prefix cache, on a board whose energy follows a hidden cost of each request.
#include "model/activity/serving.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run.h"
#include "analysis/timeline/simulated_sensors_test.h"

namespace jouleprof::analysis {
namespace {

using simulated::at;
using simulated::GpuSensors;
using simulated::Truth;

constexpr double kIdle = 70;  // watts

// Seconds and joules above idle.
struct Cost {
  double fixed_time = 6e-3;
  double prefill_time = 2e-3;
  double token_time = 25e-6;  // prefill
  double decode_time = 150e-6;
  double context_time = 60e-9;  // a token of context, of decoding
  double watts = 160;           // in a step
  double token_joules = 12e-3;
  double decode_joules = 25e-3;
  double context_joules = 8e-6;

  double own_time(const model::StepShare& s) const {
    return s.prefill ? token_time * s.tokens : decode_time * s.tokens + context_time * s.context;
  }
  double own(const model::StepShare& s) const {
    const double work =
        s.prefill ? token_joules * s.tokens : decode_joules * s.tokens + context_joules * s.context;
    return watts * own_time(s) + work;
  }
};

struct Owed {
  double energy = 0;
  double marginal = 0;
  double recomputed = 0;
  double rejected = 0;
};

struct Request {
  std::uint32_t number = 0;
  double arrival = 0;
  std::string tenant;
  std::uint32_t prompt = 0;
  std::uint32_t answer = 0;
  bool speculative = false;
  std::uint32_t prefix = 0;  // tokens that another request may have computed

  std::uint32_t done = 0;      // tokens with keys and values
  std::uint32_t produced = 0;  // of the answer
  std::uint32_t lost = 0;      // to be computed again
  std::uint32_t cached = 0;
  std::uint32_t reused = 0;
  double first = 0;  // the time of its first token
};

// A request as a proxy sees it.
struct Seen {
  std::uint32_t number = 0;
  double begin = 0;
  double first = 0;  // its first token
  double end = 0;
  std::uint32_t prompt = 0;
  std::uint32_t cached = 0;
  std::uint32_t answer = 0;
};

class Server {
 public:
  explicit Server(unsigned seed) : random_(seed) {}

  // Serves requests for `length` seconds of arrivals, in bursts with pauses.
  void run(double length) {
    arrive(length);
    double now = 1.0;
    truth.hold(kIdle, now);
    entries.push_back(model::ServingDevice{0, "GPU-1"});
    while (!waiting_.empty() || !running_.empty()) {
      while (!waiting_.empty() && waiting_.front().arrival <= now && running_.size() < 24) {
        admit();
      }
      if (running_.empty()) {
        const double until = std::max(waiting_.front().arrival, now + 1e-3);
        truth.hold(kIdle, until - now);
        now = until;
        continue;
      }
      now = step(now);
    }
    truth.hold(kIdle, 1.0);
  }

  model::Recording recording(const GpuSensors& sensors = {}) const {
    model::Recording r;
    r.run.source = "run";
    r.run.work_begin = at(0.2);
    r.run.work_end = at(truth.end() - 0.3);
    r.run.complete = true;
    model::Domain gpu{
        simulated::kGpu0, model::DomainKind::kGpu, "gpu0", "GPU", "GPU-1", {}, true, ""};
    gpu.known_levels.rest = model::KnownLevel{Power::watts(50), Power::watts(1), {}, {}};
    gpu.known_levels.held = model::KnownLevel{Power::watts(kIdle), Power::watts(1), {}, {}};
    r.domains.push_back(gpu);
    r.sensors = {sensors.counter(), sensors.ring()};
    for (auto& sensor : r.sensors) sensor.traits.scale = model::ScaleError::symmetric(0.05);
    r.readings.counters = sensors.reads(truth, 0, truth.end());
    r.readings.powers = sensors.samples(truth, 0, truth.end());
    auto& trace = r.traces.emplace_back();
    trace.pid = 71;
    trace.status.ended = true;
    auto& chunk = trace.chunks.emplace_back();
    chunk.kind = model::ChunkKind::kServing;
    chunk.begin = at(0);
    chunk.end = at(truth.end());
    for (const auto& entry : entries) model::append_serving(chunk.bytes, entry);
    return r;
  }

  // Seconds in steps up to t.
  double busy(double t) const {
    double sum = 0;
    for (const auto& [begin, end] : busy_) sum += std::clamp(t - begin, 0.0, end - begin);
    return sum;
  }

  Cost cost;
  double drift = 0;  // of the power of steps, up and down over 20 s
  Truth truth;
  std::vector<model::ServingEntry> entries;
  std::vector<Seen> flights;  // of finished requests
  std::map<std::string, Owed> of_request;
  std::map<std::string, Owed> of_tenant;

 private:
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  void arrive(double length) {
    std::uint32_t number = 0;
    for (double t = 1.2; t < 1.2 + length; t += -0.12 * std::log(uniform(1e-6, 1))) {
      if (std::fmod(t, 6.0) > 4.0) continue;  // a pause
      Request r;
      r.number = number++;
      r.arrival = t;
      const double kind = uniform(0, 1);
      r.tenant = kind < 0.3 ? "long" : kind < 0.7 ? "chat" : "agent";
      r.prompt =
          static_cast<std::uint32_t>(r.tenant == "long" ? uniform(800, 2000) : uniform(40, 400));
      r.answer =
          static_cast<std::uint32_t>(r.tenant == "chat" ? uniform(60, 160) : uniform(10, 50));
      r.speculative = r.tenant == "chat" && uniform(0, 1) < 0.5;
      r.prefix = r.tenant == "agent" ? 32 : 0;
      waiting_.push_back(r);
    }
  }

  void admit() {
    Request r = waiting_.front();
    waiting_.pop_front();
    std::uint32_t filler = model::kNone;
    if (r.prefix > 0) {
      if (filler_) {
        filler = *filler_;
        r.done = r.cached = r.reused = std::min(r.prefix, r.prompt - 1);
      } else {
        filler_ = r.number;
      }
    }
    entries.push_back(model::ServedRequest{r.number, at(r.arrival), "r" + std::to_string(r.number),
                                           "toy", r.tenant, filler});
    running_.push_back(r);
  }

  double step(double now) {
    std::vector<std::pair<std::size_t, model::StepShare>> batch;
    std::uint32_t budget = 512;
    for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
      Request& r = running_[i];
      model::StepShare s;
      s.number = r.number;
      s.context = r.done;
      s.cached = std::exchange(r.cached, 0);
      const std::uint32_t to_prefill = r.prompt + r.lost;
      if (r.done < to_prefill) {
        s.prefill = true;
        s.tokens = std::min(budget, to_prefill - r.done);
        s.recomputed = r.lost > 0 ? s.tokens : 0;
      } else {
        s.tokens = std::min(r.speculative ? 4U : 1U, budget);
        s.rejected = s.tokens > 1 ? static_cast<std::uint32_t>(uniform(0, 3.99)) : 0;
        s.rejected = std::min(s.rejected, s.tokens - 1);
      }
      budget -= s.tokens;
      batch.emplace_back(i, s);
    }
    const double end = compute(now, batch);
    for (auto& [i, s] : batch) {
      Request& r = running_[i];
      r.done += s.tokens - s.rejected;
      if (!s.prefill) r.produced += s.tokens - s.rejected;
      if (r.done >= r.prompt + r.lost) r.lost = 0;
      if (r.done >= r.prompt && r.first == 0) r.first = end;
    }
    for (const Request& r : running_) {
      if (r.produced < r.answer) continue;
      entries.push_back(model::FinishedRequest{r.number, at(end), r.prompt, r.produced});
      flights.push_back({r.number, r.arrival, r.first, end, r.prompt, r.reused, r.produced});
    }
    std::erase_if(running_, [](const Request& r) { return r.produced >= r.answer; });
    if (running_.size() > 4 && uniform(0, 1) < 0.004) {  // no room: the youngest loses its cache
      Request& victim = running_.back();
      if (victim.done > victim.prompt) {
        victim.lost = victim.done - victim.prompt;
        victim.done = 0;
      }
    }
    return end;
  }

  double compute(double now, const std::vector<std::pair<std::size_t, model::StepShare>>& batch) {
    double time = cost.fixed_time;
    double own = 0;
    double prefills = 0;
    for (const auto& [i, s] : batch) {
      time += cost.own_time(s);
      own += cost.own(s);
      prefills += s.prefill ? 1 : 0;
    }
    if (prefills > 0) time += cost.prefill_time;
    const double of_prefill = prefills > 0 ? cost.watts * cost.prefill_time : 0;
    const double drifted = 1 + drift * std::sin(2 * M_PI * now / 20);
    const double whole = drifted * (own + of_prefill + cost.watts * cost.fixed_time);
    const double noise = std::normal_distribution<double>(1, 0.01)(random_);
    time = std::round(time * noise * 1e9) / 1e9;
    truth.hold(kIdle + whole / time, time);
    model::ServingStep step{at(now), at(now + time), 0, {}};
    const auto count = static_cast<double>(batch.size());
    for (const auto& [i, s] : batch) {
      step.shares.push_back(s);
      const double mine = drifted * cost.own(s);
      const double fixed = drifted * cost.watts * cost.fixed_time / count;
      const double prefill = s.prefill ? drifted * of_prefill / prefills : 0;
      for (Owed* owed :
           {&of_request["r" + std::to_string(s.number)], &of_tenant[running_[i].tenant]}) {
        owed->energy += mine + fixed + prefill;
        owed->marginal += mine;
        owed->rejected += s.tokens > 0 ? mine * s.rejected / s.tokens : 0;
        owed->recomputed += s.tokens > 0 ? (mine + prefill) * s.recomputed / s.tokens : 0;
      }
      auto& owed = of_request["r" + std::to_string(s.number)];
      if (count == 1) owed.marginal += fixed;
      if (prefills == 1) owed.marginal += prefill;
      // All requests of a tenant together save what is fixed in steps that were theirs alone.
      const std::string& tenant = running_[i].tenant;
      const auto is_others = [&](const auto& other) {
        return running_[other.first].tenant != tenant;
      };
      const auto prefills_for_others = [&](const auto& other) {
        return other.second.prefill && is_others(other);
      };
      if (std::none_of(batch.begin(), batch.end(), is_others)) of_tenant[tenant].marginal += fixed;
      if (std::none_of(batch.begin(), batch.end(), prefills_for_others)) {
        of_tenant[tenant].marginal += prefill;
      }
    }
    entries.push_back(std::move(step));
    busy_.emplace_back(now, now + time);
    return now + time;
  }

  std::mt19937 random_;
  std::deque<Request> waiting_;
  std::vector<Request> running_;
  std::vector<std::pair<double, double>> busy_;
  std::optional<std::uint32_t> filler_;
};

model::ServingProfile profile_of(const Server& server) {
  const Run run(server.recording());
  const auto& made = run.serving();
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? *made : model::ServingProfile{};
}

class Serving : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server = std::make_unique<Server>(5);
    server->run(40);
    profile = std::make_unique<model::ServingProfile>(profile_of(*server));
  }
  static void TearDownTestSuite() {
    server.reset();
    profile.reset();
  }
  static inline std::unique_ptr<Server> server;
  static inline std::unique_ptr<model::ServingProfile> profile;
};

TEST_F(Serving, PartsSumToTheCounter) {
  ASSERT_EQ(profile->boards.size(), 1U);
  const auto& b = profile->boards[0];
  EXPECT_EQ(b.idle_levels + b.between + b.requests + b.unattributed, b.measured.energy);
  Energy requests;
  for (const auto& r : profile->requests) {
    requests += r.energy;
    EXPECT_EQ(r.prefill + r.decode, r.energy) << r.id;
  }
  Energy tenants;
  for (const auto& t : profile->tenants) tenants += t.energy;
  EXPECT_EQ(requests, b.requests);
  EXPECT_EQ(tenants, b.requests);
  EXPECT_LT(std::abs(b.unattributed.joules()), 0.01 * b.requests.joules());
}

TEST_F(Serving, EveryTenantsTruthIsInside) {
  ASSERT_EQ(profile->tenants.size(), 3U);
  for (const auto& t : profile->tenants) {
    const Owed& owed = server->of_tenant[t.tenant];
    EXPECT_NEAR(t.energy.joules(), owed.energy, t.regression.joules()) << t.tenant;
    EXPECT_NEAR(t.energy.joules() / owed.energy, 1, 0.03) << t.tenant;
    EXPECT_NEAR(t.marginal.joules() / owed.marginal, 1, 0.05) << t.tenant;
    EXPECT_LE(t.marginal, t.energy);
  }
}

TEST_F(Serving, RequestsTruthsAreInside) {
  std::size_t inside = 0;
  for (const auto& r : profile->requests) {
    const Owed& owed = server->of_request[r.id];
    inside += std::abs(r.energy.joules() - owed.energy) <= r.regression.joules() ? 1 : 0;
  }
  EXPECT_GE(static_cast<double>(inside), 0.95 * static_cast<double>(profile->requests.size()));
}

TEST_F(Serving, NamesWhatWasLostAndWhoFilledTheCache) {
  double recomputed = 0;
  double rejected = 0;
  std::size_t reusers = 0;
  for (const auto& r : profile->requests) {
    const Owed& owed = server->of_request[r.id];
    EXPECT_NEAR(r.rejected.joules(), owed.rejected, 0.1 * owed.rejected + 0.05) << r.id;
    EXPECT_NEAR(r.recomputed.joules(), owed.recomputed, 0.1 * owed.recomputed + 0.05) << r.id;
    recomputed += r.recomputed.joules();
    rejected += r.rejected.joules();
    if (r.cached > 0) {
      ++reusers;
      EXPECT_FALSE(r.filler.empty()) << r.id;
    }
    EXPECT_TRUE(r.finish) << r.id;
  }
  EXPECT_GT(recomputed, 0);
  EXPECT_GT(rejected, 0);
  EXPECT_GT(reusers, 0U);
}

// What a proxy before the server sees, as python/jouleprof/serving/_flight.py records it: spans of
// at most 50 ms, with the tokens of each request spread evenly over its prefill and its decoding.
model::Recording seen_by_a_proxy(const Server& server) {
  const auto& flights = server.flights;
  std::vector<double> edges;
  for (const auto& f : flights) edges.insert(edges.end(), {f.begin, f.first, f.end});
  const double last = *std::max_element(edges.begin(), edges.end());
  for (double t = flights.front().begin; t < last; t += 0.05) edges.push_back(t);
  std::sort(edges.begin(), edges.end());
  model::Recording r = server.recording();
  auto& bytes = r.traces.front().chunks.front().bytes;
  bytes.clear();
  model::append_serving(bytes, model::ServingView{false});
  model::append_serving(bytes, model::ServingDevice{0, "GPU-1"});
  for (const auto& entry : server.entries) {
    if (std::holds_alternative<model::ServedRequest>(entry)) model::append_serving(bytes, entry);
  }
  const auto part = [](double tokens, double begin, double end, double t) {
    const double done = end > begin ? std::clamp((t - begin) / (end - begin), 0.0, 1.0) : 1;
    return static_cast<std::uint32_t>(done * tokens);
  };
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const double a = edges[i];
    const double b = edges[i + 1];
    if (b - a < 1e-6) continue;
    model::ServingStep span{at(a), at(b), 0, {}};
    for (const auto& f : flights) {
      if (f.begin >= b || f.end <= a) continue;
      const bool prefill = b <= f.first + 1e-9;
      const double from = prefill ? f.begin : f.first;
      const double to = prefill ? f.first : f.end;
      const double tokens = prefill ? f.prompt - f.cached : f.answer - 1;
      const std::uint32_t before = part(tokens, from, to, a);
      span.shares.push_back({f.number, part(tokens, from, to, b) - before,
                             before + (prefill ? f.cached : f.prompt), 0, 0, 0, prefill});
    }
    if (!span.shares.empty()) model::append_serving(bytes, span);
  }
  for (const auto& entry : server.entries) {
    if (std::holds_alternative<model::FinishedRequest>(entry)) model::append_serving(bytes, entry);
  }
  return r;
}

TEST(ServingProxy, TenantsHaveAboutWhatTheirTokensCost) {
  Server server(11);
  server.run(40);
  const analysis::Run run(seen_by_a_proxy(server));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->in_flight);
  const auto& b = made->boards[0];
  EXPECT_EQ(b.idle_levels + b.between + b.requests + b.unattributed, b.measured.energy);
  double truth = 0;
  for (const auto& [name, owed] : server.of_tenant) truth += owed.energy;
  EXPECT_NEAR(b.requests.joules() / truth, 1, 0.05);
  for (const auto& t : made->tenants) {
    const double owed = server.of_tenant[t.tenant].energy;
    EXPECT_NEAR(t.energy.joules() / owed, 1, 0.25) << t.tenant;
    RecordProperty(t.tenant, fmt::format("{:.3f}", t.energy.joules() / owed));
  }
  std::size_t inside = 0;
  for (const auto& r : made->requests) {
    const double owed = server.of_request[r.id].energy;
    inside += std::abs(r.energy.joules() - owed) <= r.regression.joules() ? 1 : 0;
  }
  EXPECT_GE(static_cast<double>(inside), 0.93 * static_cast<double>(made->requests.size()));
}

// The regression has one power for all times; each half second has its own.
TEST(ServingDrift, StepsAreScaledToTheMeasuredEnergy) {
  Server server(10);
  server.drift = 0.15;
  server.run(40);
  const auto profile = profile_of(server);
  ASSERT_FALSE(profile.requests.empty());
  std::size_t inside = 0;
  for (const auto& r : profile.requests) {
    const double owed = server.of_request[r.id].energy;
    inside += std::abs(r.energy.joules() - owed) <= 0.06 * owed + 0.3 ? 1 : 0;
  }
  EXPECT_GE(static_cast<double>(inside), 0.9 * static_cast<double>(profile.requests.size()));
}

// Two boards that do the same, as those of tensor-parallel ranks: each step is there for both.
model::Recording two_boards(const Server& server) {
  model::Recording r = server.recording();
  model::Domain second = r.domains.front();
  second.id = model::DomainId{1};
  second.device = "gpu1";
  second.uuid = "GPU-2";
  r.domains.push_back(second);
  const auto other = [](model::SensorId id) {
    return model::SensorId{static_cast<std::uint32_t>(id) + 10};
  };
  for (auto sensor : std::vector(r.sensors)) {
    sensor.id = other(sensor.id);
    sensor.domain = second.id;
    r.sensors.push_back(sensor);
  }
  for (auto reading : std::vector(r.readings.counters)) {
    reading.sensor = other(reading.sensor);
    r.readings.counters.push_back(reading);
  }
  for (auto reading : std::vector(r.readings.powers)) {
    reading.sensor = other(reading.sensor);
    r.readings.powers.push_back(reading);
  }
  auto& bytes = r.traces.front().chunks.front().bytes;
  model::append_serving(bytes, model::ServingDevice{1, "gpu1"});  // by its name
  for (const auto& entry : server.entries) {
    if (auto* step = std::get_if<model::ServingStep>(&entry)) {
      model::ServingStep same = *step;
      same.device = 1;
      model::append_serving(bytes, same);
    }
  }
  return r;
}

TEST(ServingRanks, TheEnergyOfARequestIsTheSumOverItsBoards) {
  Server server(9);
  server.run(12);
  const auto alone = profile_of(server);
  const analysis::Run run(two_boards(server));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->boards.size(), 2U);
  Energy requests;
  for (const auto& b : made->boards) {
    EXPECT_EQ(b.idle_levels + b.between + b.requests + b.unattributed, b.measured.energy);
    EXPECT_EQ(b.requests, alone.boards[0].requests);
    requests += b.requests;
  }
  ASSERT_EQ(made->requests.size(), alone.requests.size());
  Energy sum;
  for (std::size_t i = 0; i < alone.requests.size(); ++i) {
    const auto& both = made->requests[i];
    const auto& one = alone.requests[i];
    EXPECT_EQ(both.energy, one.energy + one.energy) << one.id;
    EXPECT_EQ(both.prefill + both.decode, both.energy) << one.id;
    // The gain of the sensors of one kind is the same; the models of the boards are not.
    EXPECT_EQ(both.calibration, one.calibration + one.calibration) << one.id;
    EXPECT_NEAR(both.regression.joules(), std::sqrt(2) * one.regression.joules(), 1e-5) << one.id;
    // A step counts once, however many boards it has.
    EXPECT_EQ(both.steps, one.steps) << one.id;
    EXPECT_EQ(both.computed, one.computed) << one.id;
    EXPECT_DOUBLE_EQ(both.shared_with, one.shared_with) << one.id;
    sum += both.energy;
  }
  EXPECT_EQ(sum, requests);
}

// What another program draws in the time of steps is not the requests'.
TEST(ServingTroubles, AnotherProgramIsNotCharged) {
  Server server(6);
  server.run(30);
  model::Recording r = server.recording();
  const HostTime begin = at(7);
  const HostTime end = at(8.5);
  for (auto& reading : r.readings.powers) {
    if (reading.at > begin && reading.at < end) reading.power = reading.power + Power::watts(400);
  }
  const Energy others = Power::watts(400) * (end - begin);
  for (auto& reading : r.readings.counters) {
    reading.total +=
        Power::watts(400) * std::clamp(reading.before - begin, Duration{}, end - begin);
  }
  const analysis::Run run(std::move(r));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  const auto& b = made->boards[0];
  EXPECT_EQ(b.idle_levels + b.between + b.requests + b.unattributed, b.measured.energy);
  EXPECT_GT(b.unattributed, Energy::joules(0.7 * others.joules()));
  EXPECT_FALSE(made->warnings.empty());
}

// Another program that uses half of the board's time from `begin` to the end, with the power that
// the server draws for as much time. The driver lists both once a second.
struct Foreign {
  double begin = 0;
  double watts = 0;
  double use = 0.5;
};

model::Recording shared_recording(const Server& server, const Foreign& foreign, bool listed) {
  model::Recording r = server.recording();
  const HostTime begin = at(foreign.begin);
  for (auto& reading : r.readings.powers) {
    if (reading.at > begin) reading.power = reading.power + Power::watts(foreign.watts);
  }
  for (auto& reading : r.readings.counters) {
    reading.total +=
        Power::watts(foreign.watts) * std::max<Duration>(reading.before - begin, Duration{});
  }
  for (const bool own : {true, false}) {
    model::Process process;
    process.id = model::ProcessId{own ? 0U : 1U};
    process.pid = own ? 71 : 90;
    process.start = own ? at(0) : begin;
    process.in_tree = own;
    r.processes.push_back(process);
  }
  for (double t = 0.9; t < server.truth.end(); t += 1) {
    if (listed) {
      const double busy = server.busy(t) - server.busy(t - 1);
      r.process_readings.gpu_processes.push_back(
          {model::ProcessId{0}, simulated::kGpu0, at(t), std::round(100 * busy) / 100, {}});
    }
    if (t > foreign.begin) {
      const double use = t - foreign.begin > 1 ? foreign.use : foreign.use * (t - foreign.begin);
      r.process_readings.gpu_processes.push_back(
          {model::ProcessId{1}, simulated::kGpu0, at(t), std::round(100 * use) / 100, {}});
    }
  }
  return r;
}

class SharedBoard : public testing::TestWithParam<double> {};

TEST_P(SharedBoard, RequestsHaveWhatTheServerUsed) {
  Server server(6);
  server.run(30);
  double truth = 0;
  for (const auto& [name, owed] : server.of_tenant) truth += owed.energy;
  const Foreign foreign{GetParam(), 0.5 * truth / server.busy(server.truth.end())};
  const double others = foreign.watts * (server.truth.end() - 0.3 - foreign.begin);
  const analysis::Run run(shared_recording(server, foreign, true));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  const auto& b = made->boards[0];
  EXPECT_EQ(b.idle_levels + b.between + b.requests + b.unattributed, b.measured.energy);
  EXPECT_NEAR(b.requests.joules() / truth, 1, 0.1);
  EXPECT_NEAR(b.others.joules() / others, 1, 0.15);
  EXPECT_LE(b.others, b.unattributed);
  for (const auto& t : made->tenants) {
    EXPECT_NEAR(t.energy.joules() / server.of_tenant[t.tenant].energy, 1, 0.15) << t.tenant;
  }
  EXPECT_THAT(made->warnings, testing::Contains(testing::HasSubstr("are of other programs")));
}

INSTANTIATE_TEST_SUITE_P(FromThen, SharedBoard, testing::Values(4.0, 20.0));

TEST(ServingTroubles, AServerThatTheDriverDoesNotListIsNamed) {
  Server server(6);
  server.run(8);
  const Foreign foreign{2, 100};
  const analysis::Run run(shared_recording(server, foreign, false));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->boards[0].others, Energy{});
  EXPECT_THAT(made->warnings,
              testing::Contains(testing::HasSubstr("lists no process of the command")));
}

TEST(ServingTroubles, AProxysStepsAreSaidToBeSpans) {
  Server server(7);
  server.run(3);
  server.entries.push_back(model::ServingView{false});
  const auto profile = profile_of(server);
  EXPECT_TRUE(profile.in_flight);
  ASSERT_FALSE(profile.warnings.empty());
  EXPECT_NE(profile.warnings.back().find("tokens in flight"), std::string::npos);
}

TEST(ServingTroubles, RequestsOfAnEngineBehindAProxyCountOnce) {
  Server server(7);
  server.run(3);
  const auto alone = profile_of(server);
  model::Recording r = server.recording();
  auto proxy = r.traces.front();
  proxy.pid = 72;
  std::string bytes;
  model::append_serving(bytes, model::ServingView{false});
  auto& chunk = proxy.chunks.front();
  chunk.bytes = bytes + chunk.bytes;
  r.traces.insert(r.traces.begin(), proxy);
  const analysis::Run run(std::move(r));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made->in_flight);
  ASSERT_EQ(made->requests.size(), alone.requests.size());
  for (std::size_t i = 0; i < alone.requests.size(); ++i) {
    EXPECT_EQ(made->requests[i].energy, alone.requests[i].energy);
  }
  EXPECT_THAT(made->warnings, testing::Contains(testing::HasSubstr("the proxy's are left out")));
}

TEST(ServingTroubles, StepsOfNoKnownBoardAreNamed) {
  Server server(7);
  server.run(3);
  server.entries.front() = model::ServingDevice{0, "GPU-of-another-machine"};
  const auto profile = profile_of(server);
  EXPECT_TRUE(profile.boards.empty());
  ASSERT_FALSE(profile.warnings.empty());
  EXPECT_NE(profile.warnings.back().find("name no GPU of this recording"), std::string::npos);
}

TEST(ServingTroubles, LostStepsAreNamed) {
  Server server(8);
  server.run(3);
  server.entries.push_back(model::ServingLoss{12, 3});
  const auto profile = profile_of(server);
  ASSERT_FALSE(profile.warnings.empty());
  EXPECT_NE(profile.warnings.back().find("12 steps and 3 requests"), std::string::npos);
}

TEST(ServingCodec, EntriesAreReadAsWritten) {
  const std::vector<model::ServingEntry> all{
      model::ServedRequest{7, at(1), "id", "model", "tenant", 3},
      model::FinishedRequest{7, at(2), 5, 6},
      model::ServingStep{at(1), at(2), 0, {{7, 8, 9, 1, 2, 3, true}, {8, 1, 0, 0, 0, 0, false}}},
      model::ServingDevice{0, "GPU-1"},
      model::ServingLoss{4, 5},
      model::ServingView{false}};
  std::string bytes;
  for (const auto& entry : all) model::append_serving(bytes, entry);
  std::vector<model::ServingEntry> read;
  const auto take = [&](const auto& entry) { read.push_back(entry); };
  EXPECT_TRUE(model::decode_serving(bytes, take));
  EXPECT_EQ(read, all);
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    read.clear();
    const bool whole = model::decode_serving(std::string_view(bytes).substr(0, size), take);
    EXPECT_TRUE(!whole || read.size() < all.size()) << size;
  }
  bytes[0] = 99;  // of a newer version
  read.clear();
  EXPECT_TRUE(model::decode_serving(bytes, take));
  EXPECT_EQ(read.size(), all.size() - 1);
}

}  // namespace
}  // namespace jouleprof::analysis
