// A toy engine with continuous batching, chunked prefill, preemption, speculative decoding and a
// prefix cache, on a board whose energy follows a hidden cost of each request.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/timeline/simulated_sensors_test.h"
#include "model/activity/serving.h"
#include "model/recording.h"

namespace jouleprof::analysis::simulated {

inline constexpr double kIdle = 70;  // watts

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

  // Serves `in_flight` requests at a time: as one ends the next is one of a tenant that has the
  // mix's weight. A mix lasts `length` seconds, and the next one goes on where it ends.
  void saturate(std::size_t in_flight, const std::vector<std::map<std::string, double>>& mixes,
                double length) {
    budget_ = 4096;
    preempts_ = false;
    double now = 1.0;
    truth.hold(kIdle, now);
    entries.push_back(model::ServingDevice{0, "GPU-1"});
    std::uint32_t number = 0;
    for (std::size_t i = 0; i <= mixes.size(); ++i) {
      for (const double until = now + length; i < mixes.size() && now < until;) {
        while (running_.size() < in_flight) {
          waiting_.push_back(of_mix(mixes[i], number++, now));
          admit();
        }
        now = step(now);
      }
      mix_ends.push_back(now);
    }
    while (!running_.empty()) now = step(now);
    truth.hold(kIdle, 1.0);
  }

  model::Recording recording(const GpuSensors& sensors = {}) const {
    return recording_of(truth, sensors);
  }
  // The recording of a board that others used, too.
  model::Recording recording_of(const Truth& board, const GpuSensors& sensors = {}) const {
    model::Recording r;
    r.run.source = "run";
    r.run.work_begin = at(0.2);
    r.run.work_end = at(board.end() - 0.3);
    r.run.complete = true;
    model::Domain gpu{kGpu0, model::DomainKind::kGpu, "gpu0", "GPU", "GPU-1", {}, true, ""};
    gpu.known_levels.rest = model::KnownLevel{Power::watts(50), Power::watts(1), {}, {}};
    gpu.known_levels.held = model::KnownLevel{Power::watts(kIdle), Power::watts(1), {}, {}};
    r.domains.push_back(gpu);
    r.sensors = {sensors.counter(), sensors.ring()};
    for (auto& sensor : r.sensors) sensor.traits.scale = model::ScaleError::symmetric(0.05);
    r.readings.counters = sensors.reads(board, 0, board.end());
    r.readings.powers = sensors.samples(board, 0, board.end());
    auto& trace = r.traces.emplace_back();
    trace.pid = 71;
    trace.status.ended = true;
    auto& chunk = trace.chunks.emplace_back();
    chunk.kind = model::ChunkKind::kServing;
    chunk.begin = at(0);
    chunk.end = at(board.end());
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
  std::vector<double> mix_ends;
  std::vector<Seen> flights;  // of finished requests
  std::map<std::string, Owed> of_request;
  std::map<std::string, Owed> of_tenant;

 private:
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  Request of_mix(const std::map<std::string, double>& weights, std::uint32_t number, double now) {
    double sum = 0;
    for (const auto& [tenant, weight] : weights) sum += weight;
    double left = uniform(0, sum);
    Request r;
    r.number = number;
    r.arrival = now;
    for (const auto& [tenant, weight] : weights) {
      if (left >= 0) r.tenant = tenant;
      left -= weight;
    }
    r.prompt = r.tenant == "long_prefill" ? 2048 : r.tenant == "long_decode" ? 64 : 256;
    r.answer = r.tenant == "long_prefill" ? 8 : r.tenant == "long_decode" ? 128 : 32;
    return r;
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
    std::uint32_t budget = budget_;
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
    if (preempts_ && running_.size() > 4 &&
        uniform(0, 1) < 0.004) {  // no room: the youngest loses its cache
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
  std::uint32_t budget_ = 512;  // tokens of a step
  bool preempts_ = true;
};

}  // namespace jouleprof::analysis::simulated
