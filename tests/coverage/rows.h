// The rows of the coverage table: boards, loads and faults.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coverage/sensor_model.h"

namespace jouleprof::coverage {

struct Row {
  enum class Bounds { kError, kRepeatability, kRest };
  std::string name;
  std::function<Setting(Random&)> setting;
  Bounds bounds = Bounds::kError;
};

// Seconds after the work began.
inline double since_work(double t) { return t - kIdleBefore; }

inline std::string fixed_rate_text(double period, double duty) {
  return " of " + std::to_string(period) + " s, on for " + std::to_string(duty);
}

inline std::vector<Row> rows() {
  std::vector<Row> out;
  const auto add = [&](std::string name, std::function<Setting(Random&)> make,
                       Row::Bounds bounds = Row::Bounds::kError) {
    out.push_back({std::move(name), std::move(make), bounds});
  };
  const auto any_load = [](Random& r) {
    return r.uniform(0, 1) < 0.3 ? constant_load(r.uniform(100, 600)) : random_load(0.003, 2);
  };
  const auto length_of = [](Random& r) { return r.one_of({1.0, 2.0, 5.0, 10.0}); };
  const auto with_load = [=](Random& r, const Board& board) {
    Setting s{.board = board};
    s.load = any_load(r);
    s.length = length_of(r);
    return s;
  };
  const auto constant = [=](Random& r, const Board& board, double shortest, double longest) {
    Setting s{.board = board};
    s.load = constant_load(r.uniform(100, 600));
    s.length = longest > shortest ? r.uniform(shortest, longest) : length_of(r);
    return s;
  };
  const auto a_counter_board = [](Random& r) {
    return r.one_of<Board (*)()>({fused_board, lagging_board, half_seen_board})();
  };
  const auto a_polled_board = [](bool counter, bool average = false) {
    Board b = polled_board();
    if (counter) b.counter = {.refresh = 0.1};
    b.average = average;
    return b;
  };

  // Healthy sensors.
  add("counter and buffer", [=](Random& r) { return with_load(r, fused_board()); });
  add("counter and buffer with a lag", [=](Random& r) { return with_load(r, lagging_board()); });
  add("counter and half-seen buffer", [=](Random& r) { return with_load(r, half_seen_board()); });
  add(
      "counter and buffer, constant power, repeatability",
      [=](Random& r) {
        Board b = a_counter_board(r);
        b.utilisation = true;
        return constant(r, b, 0, 0);
      },
      Row::Bounds::kRepeatability);
  add(
      "counter and buffer, random load, repeatability",
      [=](Random& r) {
        Board b = a_counter_board(r);
        b.utilisation = true;
        Setting s{.board = b, .load = random_load(0.003, r.one_of({0.05, 0.2, 1.0}))};
        s.length = length_of(r);
        s.utilisation = 0.6;
        return s;
      },
      Row::Bounds::kRepeatability);
  add("counter and buffer, 0.05 to 0.2 s, constant", [=](Random& r) {
    const Board b = a_counter_board(r);
    return constant(r, b, 0.05, 0.2);
  });
  add("counter alone", [=](Random& r) {
    Board b = fused_board();
    b.ring = {};
    return with_load(r, b);
  });
  add("counter and polled power", [=](Random& r) { return with_load(r, a_polled_board(true)); });
  add("buffer alone", [=](Random& r) {
    Board b = fused_board();
    b.counter = {};
    return with_load(r, b);
  });
  add("polled power alone, constant", [=](Random& r) {
    const Board b = a_polled_board(false, r.one_of({true, false}));
    return constant(r, b, 0, 0);
  });
  add("polled power alone, random load", [=](Random& r) {
    const Board b = a_polled_board(false, r.one_of({true, false}));
    return Setting{.board = b, .load = random_load(0.02, 1), .length = r.one_of({5.0, 10.0})};
  });

  // Loads at a fixed rate. Each number is drawn in a statement of its own: the order in which a
  // compiler evaluates arguments is not defined, and the runs are to be the same everywhere.
  using Choices = std::vector<double>;
  const auto fixed_rate = [](Random& r, Board b, const Choices& periods, const Choices& jitters,
                             const Choices& lengths) {
    const double period = r.one_of(periods);
    const double duty = r.uniform(0.1, 0.8);
    const double jitter = r.one_of(jitters);
    const double length = r.one_of(lengths);
    return Setting{.board = b,
                   .load = locked_load(period, duty, jitter),
                   .length = length,
                   .utilisation = duty,
                   .text = fixed_rate_text(period, duty)};
  };
  const Choices near_20_ms{0.010, 0.019, 0.020, 0.021, 0.022, 0.025, 0.040, 0.050, 0.100};
  const Choices near_100_ms{0.05, 0.1, 0.1003, 0.12, 0.15, 0.2, 0.3, 0.4, 0.7};
  const Choices jitters{0, 0.001};
  const Choices seconds_long{3, 5, 10};
  const auto fused_fixed_rate = [=](Random& r) {
    Board b = a_counter_board(r);
    b.utilisation = true;
    return fixed_rate(r, b, near_20_ms, jitters, {1, 2, 5, 10});
  };
  add("fixed rate, counter and buffer", fused_fixed_rate);
  add("fixed rate, counter and buffer, repeatability", fused_fixed_rate,
      Row::Bounds::kRepeatability);
  add("fixed rate, counter and buffer, 0.05 to 0.2 s", [=](Random& r) {
    const Board b = a_counter_board(r);
    const double length = r.uniform(0.05, 0.2);
    return fixed_rate(r, b, near_20_ms, {0}, {length});
  });
  add("fixed rate, counter and polled power",
      [=](Random& r) { return fixed_rate(r, a_polled_board(true, true), near_100_ms, {0}, {5}); });
  add("fixed rate, polled and average power", [=](Random& r) {
    return fixed_rate(r, a_polled_board(false, true), near_100_ms, jitters, seconds_long);
  });
  add("fixed rate, polled power and utilisation", [=](Random& r) {
    Board b = a_polled_board(false);
    b.utilisation = true;
    return fixed_rate(r, b, near_100_ms, {0}, seconds_long);
  });
  add("fixed rate, polled power alone, several phases seen", [=](Random& r) {
    return fixed_rate(r, a_polled_board(false), {0.15, 0.24, 0.3, 0.4, 0.7}, {0}, {5, 10});
  });
  add("fixed rate, polled, average power, another period than known", [=](Random& r) {
    Board b = a_polled_board(false, true);
    b.instant = {.refresh = r.one_of({0.05, 0.1, 0.2}),
                 .window = 0.025,
                 .said_refresh = 0.02,
                 .said_window = 0.01};
    return fixed_rate(r, b, near_100_ms, {0}, seconds_long);
  });

  // Counter against samples.
  const auto with_fault = [=](const Board& b, Random& r, Faults f) {
    Setting s{.board = b};
    s.load = any_load(r);
    s.length = r.one_of({3.0, 5.0, 8.0});
    s.faults = std::move(f);
    return s;
  };
  const auto counter_fault = [](std::function<double(double, double)> f) {
    return Faults{.counter = std::move(f), .power = {}};
  };
  const auto power_fault = [](std::function<std::optional<double>(double, double, int)> f) {
    return Faults{.counter = {}, .power = std::move(f)};
  };
  const auto with_samples = [=](Random& r) {
    return r.one_of({0, 1}) == 0 ? a_counter_board(r) : a_polled_board(true);
  };
  add("counter jumps by 500 J", [=](Random& r) {
    const double from = kIdleBefore + r.uniform(0.3, 2.5);
    const Board b = with_samples(r);
    return with_fault(b, r,
                      counter_fault([=](double t, double j) { return t > from ? j + 500 : j; }));
  });
  add("counter jumps back by 100 J", [=](Random& r) {
    const double from = kIdleBefore + r.uniform(0.3, 2.5);
    const Board b = with_samples(r);
    return with_fault(b, r,
                      counter_fault([=](double t, double j) { return t > from ? j - 100 : j; }));
  });
  add("counter loses 30 %", [=](Random& r) {
    const Board b = with_samples(r);
    return with_fault(b, r, counter_fault([](double, double j) { return 0.7 * j; }));
  });
  add("counter counts 8 % more", [=](Random& r) {
    const Board b = with_samples(r);
    return with_fault(b, r, counter_fault([](double, double j) { return 1.08 * j; }));
  });
  add("counter freezes", [=](Random& r) {
    const Board b = with_samples(r);
    Setting s = with_fault(b, r, {});
    s.board.updates_read = r.one_of({true, false});
    s.board.confirmed = r.one_of({true, false});
    auto held = std::make_shared<std::optional<double>>();
    const double from = kIdleBefore + r.uniform(-0.8, 2.5);
    s.faults = counter_fault([=](double t, double j) {
      if (t < from) return j;
      if (!*held) *held = j;
      return **held;
    });
    return s;
  });
  add("young counter reads 0 for 0.2 s", [=](Random& r) {
    Board b = r.one_of({0, 1, 2}) == 0 ? Board{} : with_samples(r);
    b.counter = {.refresh = 0.1};
    b.start_joules = 2000;
    b.updates_read = true;
    const double from = kIdleBefore + r.uniform(0.3, 2);
    return with_fault(b, r, counter_fault([=](double t, double j) {
                        return t > from && t < from + 0.2 ? -1e9 : j;
                      }));
  });
  const auto slow_counter = [=](bool samples) {
    return [=](Random& r) {
      Board b = samples ? with_samples(r) : Board{};
      b.counter = {.refresh = r.one_of({0.5, 1.0}), .said_refresh = 0.1};
      b.updates_read = r.one_of({true, false});
      return with_load(r, b);
    };
  };
  add("counter of 500 or 1000 ms, said to be 100, with samples", slow_counter(true));
  add("counter of 500 or 1000 ms, said to be 100, alone", slow_counter(false));
  add("counter of 1 s alone, 0.2 s", [=](Random& r) {
    Board b;
    b.counter = {.refresh = 1.0};
    b.updates_read = r.one_of({true, false});
    return Setting{.board = b, .load = constant_load(250), .length = 0.2};
  });

  // Values that no board draws.
  const auto a_buffer_board = [=](Random& r) {
    Board b = a_counter_board(r);
    if (r.one_of({0, 1}) == 0) b.counter = {};
    return b;
  };
  add("every 7th sample 10 kW for 2 s", [=](Random& r) {
    const Board b = a_buffer_board(r);
    return with_fault(b, r, power_fault([](double t, double w, int i) {
                        const bool on = since_work(t) > 0.5 && since_work(t) < 2.5 && i % 7 == 0;
                        return std::optional(on ? 10e3 : w);
                      }));
  });
  add("0 W for a second", [=](Random& r) {
    const Board b = a_buffer_board(r);
    return with_fault(b, r, power_fault([](double t, double w, int) {
                        const bool on = since_work(t) > 1 && since_work(t) < 2;
                        return std::optional(on ? 0.0 : w);
                      }));
  });
  add("two values of one timestamp", [=](Random& r) {
    const Board b = a_buffer_board(r);
    Setting s = with_fault(b, r, {});
    s.faults.two_values = r.one_of({1, 2});
    return s;
  });
  add(
      "rest rises by 20 W during the work",
      [=](Random& r) {
        Setting s{.board = a_counter_board(r)};
        s.load = random_load(0.05, 0.5);
        s.length = r.one_of({2.0, 5.0});
        s.rest_after = kRestWatts + 20;
        return s;
      },
      Row::Bounds::kRest);
  // Other periods, duties and sensors than those by which the constants were chosen.
  const Choices other_periods{0.0125, 0.015, 0.030, 0.035, 0.060, 0.0667, 0.080, 0.125, 0.2, 0.333};
  const auto other_fixed_rate = [=](Random& r, const Board& b, const Choices& periods,
                                    const Choices& lengths) {
    const double period = r.one_of(periods);
    const double duty = r.uniform(0.03, 0.97);
    const double jitter = r.one_of({0.0, 0.0003, 0.003});
    const double length = r.one_of(lengths);
    const double high = r.uniform(250, 680);
    const double middle = r.uniform(100, high);
    const double part = r.uniform(0, 1);  // of the busy time at the high level
    return Setting{.board = b,
                   .load = two_level_load(period, duty, part, jitter, high, middle, 100),
                   .length = length,
                   .utilisation = duty,
                   .text = fixed_rate_text(period, duty)};
  };
  add("two levels at other fixed rates, counter and buffer", [=](Random& r) {
    Board b = a_counter_board(r);
    b.utilisation = r.one_of({true, false});
    return other_fixed_rate(r, b, other_periods, {1, 2, 5, 10});
  });
  add("two levels at other fixed rates, counter and polled power", [=](Random& r) {
    return other_fixed_rate(r, a_polled_board(true, true), other_periods, {3, 5, 10});
  });
  add("two levels at other fixed rates, polled and average power", [=](Random& r) {
    return other_fixed_rate(r, a_polled_board(false, true), other_periods, {3, 5, 10});
  });
  const auto summing_board = [] {
    Board b = lagging_board();
    b.sums = b.utilisation = true;
    return b;
  };
  add("counter that adds up samples, random load",
      [=](Random& r) { return with_load(r, summing_board()); });
  add("fixed rate, counter that adds up samples", [=](Random& r) {
    return fixed_rate(r, summing_board(), near_20_ms, jitters, {1, 2, 5, 10});
  });
  add("two levels at other fixed rates, counter that adds up samples", [=](Random& r) {
    return other_fixed_rate(r, summing_board(), other_periods, {1, 2, 5, 10});
  });
  const auto buffer_of = [](double refresh, double window, bool counter) {
    Board b;
    b.ring = {.refresh = refresh, .window = window, .lag = 0.1 * window};
    if (counter) b.counter = {.refresh = std::max(refresh, 0.05)};
    return b;
  };
  const auto other_buffer = [=](Random& r) {
    const double refresh = r.one_of({0.010, 0.050, 0.500, 1.000});
    const double seen = r.one_of({0.5, 1.0, 1.25});
    Board b = buffer_of(refresh, seen * refresh, r.one_of({true, false}));
    b.utilisation = true;
    return b;
  };
  add("buffers of 10, 50, 500 and 1000 ms, random load", [=](Random& r) {
    const Board b = other_buffer(r);
    Setting s{.board = b, .load = random_load(0.003, 2), .length = r.one_of({3.0, 5.0, 10.0})};
    s.utilisation = 0.8;
    return s;
  });
  add("buffers of 10, 50, 500 and 1000 ms, fixed rate", [=](Random& r) {
    const Board b = other_buffer(r);
    return other_fixed_rate(r, b, {0.01, 0.0125, 0.05, 0.1, 0.25, 0.5, 1.0}, {5, 10});
  });
  add("counters of 10, 20, 500 and 1000 ms, random load", [=](Random& r) {
    Board b = r.one_of({true, false}) ? fused_board() : Board{};
    b.counter = {.refresh = r.one_of({0.01, 0.02, 0.5, 1.0})};
    b.updates_read = r.one_of({true, false});
    return with_load(r, b);
  });
  add("30 to 200 ms of random load, counter and buffer", [=](Random& r) {
    const Board b = a_counter_board(r);
    Setting s{.board = b, .load = random_load(0.003, r.one_of({0.01, 0.05, 0.2}))};
    s.length = r.uniform(0.03, 0.2);
    return s;
  });
  add("30 to 200 ms of random load, polled power", [=](Random& r) {
    const Board b = a_polled_board(r.one_of({true, false}));
    Setting s{.board = b, .load = random_load(0.003, r.one_of({0.01, 0.05, 0.2}))};
    s.length = r.uniform(0.03, 0.2);
    return s;
  });
  add("0.2 to 2 s of random load, power polled every 0.5 or 1 s", [=](Random& r) {
    Board b;
    const double refresh = r.one_of({0.5, 1.0});
    b.instant = {.refresh = refresh, .window = r.one_of({0.1, 0.5, 1.0}) * refresh};
    Setting s{.board = b, .load = random_load(0.02, r.one_of({0.05, 0.2, 1.0}))};
    s.length = r.uniform(0.2, 2);
    return s;
  });
  add("counter stands still for 0.3 to 2 s and catches up", [=](Random& r) {
    const Board b = with_samples(r);
    Setting s = with_fault(b, r, {});
    s.board.updates_read = r.one_of({true, false});
    auto held = std::make_shared<std::optional<double>>();
    const double from = kIdleBefore + r.uniform(0.2, 2);
    const double until = from + r.uniform(0.3, 2);
    s.faults = counter_fault([=](double t, double j) {
      if (t < from || t > until) return j;
      if (!*held) *held = j;
      return **held;
    });
    return s;
  });
  add("counter stands still for 0.3 to 2 s and loses it", [=](Random& r) {
    const Board b = with_samples(r);
    Setting s = with_fault(b, r, {});
    s.board.updates_read = r.one_of({true, false});
    auto held = std::make_shared<std::pair<double, double>>(0, -1);  // lost, held
    const double from = kIdleBefore + r.uniform(0.2, 2);
    const double until = from + r.uniform(0.3, 2);
    s.faults = counter_fault([=](double t, double j) {
      if (t < from) return j;
      if (held->second < 0) held->second = j;
      if (t < until) held->first = j - held->second;
      return j - held->first;
    });
    return s;
  });
  add("counter jumps up and back by 50 to 1000 J", [=](Random& r) {
    const double from = kIdleBefore + r.uniform(0.2, 2);
    const double until = from + r.uniform(0.1, 1.5);
    const double joules = r.one_of({-1, 1}) * r.uniform(50, 1000);
    const Board b = with_samples(r);
    Setting s = with_fault(b, r, counter_fault([=](double t, double j) {
                             return t > from && t < until ? j + joules : j;
                           }));
    s.board.updates_read = r.one_of({true, false});
    return s;
  });
  add("counter jumps by 20 to 200 J", [=](Random& r) {
    const double from = kIdleBefore + r.uniform(0.2, 2.5);
    const double joules = r.one_of({-1, 1}) * r.uniform(20, 200);
    const Board b = with_samples(r);
    Setting s = with_fault(
        b, r, counter_fault([=](double t, double j) { return t > from ? j + joules : j; }));
    s.board.updates_read = r.one_of({true, false});
    return s;
  });
  add("samples missing for 0.3 to 2 s", [=](Random& r) {
    const double from = r.uniform(0.2, 2);
    const double until = from + r.uniform(0.3, 2);
    const Board b = r.one_of({true, false}) ? a_buffer_board(r) : a_polled_board(true);
    return with_fault(b, r, power_fault([=](double t, double w, int) {
                        const bool gone = since_work(t) > from && since_work(t) < until;
                        return gone ? std::nullopt : std::optional(w);
                      }));
  });
  add("every 2nd to 5th sample missing", [=](Random& r) {
    const int every = r.one_of({2, 3, 5});
    const Board b = a_buffer_board(r);
    return with_fault(b, r, power_fault([=](double, double w, int i) {
                        return i % every == 0 ? std::nullopt : std::optional(w);
                      }));
  });
  add("samples repeat one value for 0.2 to 1 s", [=](Random& r) {
    const double from = r.uniform(0.2, 2);
    const double until = from + r.uniform(0.2, 1);
    auto held = std::make_shared<std::optional<double>>();
    const Board b = with_samples(r);
    return with_fault(b, r, power_fault([=](double t, double w, int) {
                        const bool on = since_work(t) > from && since_work(t) < until;
                        if (on && !*held) *held = w;
                        return std::optional(on ? **held : w);
                      }));
  });
  add("single samples of 0 W or 3 kW", [=](Random& r) {
    const double value = r.one_of({0.0, 3000.0});
    const int every = r.one_of({23, 50, 101});
    const Board b = a_buffer_board(r);
    return with_fault(b, r, power_fault([=](double t, double w, int i) {
                        return std::optional(since_work(t) > 0 && i % every == 0 ? value : w);
                      }));
  });
  const auto rest_changes = [=](double watts) {
    return [=](Random& r) {
      Setting s{.board = a_counter_board(r)};
      s.load = random_load(0.05, 0.5);
      s.length = r.one_of({2.0, 5.0});
      s.rest_after = kRestWatts + watts;
      return s;
    };
  };
  add("rest falls by 20 W during the work", rest_changes(-20), Row::Bounds::kRest);
  add("rest rises by 5 W during the work", rest_changes(5), Row::Bounds::kRest);
  return out;
}

}  // namespace jouleprof::coverage
