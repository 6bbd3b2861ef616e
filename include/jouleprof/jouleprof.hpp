// jouleprof's C++ interface: headers over the C interface, in C++17 and without other libraries, so
// that it works with any compiler, also with nvcc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jouleprof/jouleprof.h"
#include "jouleprof/result.h"
#include "jouleprof/units.h"

namespace jouleprof {

inline std::string version() { return jouleprof_version(); }
// "measured", "ESTIMATED", "SIMULATED" or "unavailable": to be printed with each energy.
inline const char* provenance_word(jouleprof_provenance p) { return jouleprof_provenance_word(p); }

// A value, or an Error. As std::expected<T, Error>: converts to true where it has a value. Without
// one, `*result` and `result->` must not be used, nor error() with one.
template <typename T>
class Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  // Throws std::bad_variant_access where there is none.
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

namespace detail {

// Calls a function of the C interface that takes an error buffer as its last two arguments.
template <typename Call>
std::optional<Error> failure(Call&& call) {
  std::array<char, 512> message{};
  const jouleprof_status status = call(message.data(), message.size());
  if (status == JOULEPROF_OK) return std::nullopt;
  return Error{static_cast<Errc>(status - 1), message.data()};
}

}  // namespace detail

// The energy of one domain of a recording.
struct DomainEnergy {
  std::string domain;  // "gpu", "cpu", "dram", ...
  std::string device;  // "gpu0"
  std::string name;    // "NVIDIA H100 80GB HBM3"
  jouleprof_provenance provenance = JOULEPROF_UNAVAILABLE_FIGURE;
  std::optional<Energy> energy;  // absent: see `reason`
  std::string reason;
  Energy error;          // half of the 95 % interval
  Energy repeatability;  // the same, without what is common to one device
};

// A recording, analysed.
class Report {
 public:
  // Errors: as jouleprof_report_open's.
  static Result<Report> open(const std::string& path) {
    jouleprof_report* report = nullptr;
    auto failure = detail::failure([&](char* error, std::size_t size) {
      return jouleprof_report_open(path.c_str(), &report, error, size);
    });
    if (failure) return *std::move(failure);
    return Report(report);
  }

  Duration duration() const { return duration_of(jouleprof_report_seconds(report_.get())); }

  std::vector<DomainEnergy> domains() const {
    std::vector<DomainEnergy> domains(jouleprof_report_domain_count(report_.get()));
    for (std::size_t i = 0; i < domains.size(); ++i) {
      jouleprof_domain_energy d{};
      jouleprof_report_domain(report_.get(), i, &d);
      domains[i] = {d.domain,     d.device, d.name,   d.provenance,
                    std::nullopt, d.reason, Energy{}, Energy{}};
      if (d.provenance == JOULEPROF_UNAVAILABLE_FIGURE) continue;
      domains[i].energy = Energy::microjoules(d.energy_microjoules);
      domains[i].error = Energy::microjoules(d.error_microjoules);
      domains[i].repeatability = Energy::microjoules(d.repeatability_microjoules);
    }
    return domains;
  }

  std::string json() const { return jouleprof_report_json(report_.get()); }

 private:
  struct Close {
    void operator()(jouleprof_report* r) const { jouleprof_report_close(r); }
  };
  explicit Report(jouleprof_report* report) : report_(report) {}
  std::unique_ptr<jouleprof_report, Close> report_;
};

// What a Monitor gives energies of.
struct DomainInfo {
  std::string domain;                // "gpu", "cpu", "dram", ...
  std::string device;                // "gpu0"
  std::string name;                  // "NVIDIA H100 80GB HBM3"
  std::string uuid;                  // "GPU-..."; empty where there is none
  std::string reason;                // why there will be no energy of it; empty otherwise
  std::optional<int> visible_index;  // of a board this process can see, as CUDA counts
};

// The energy of a window, or of all windows of one name, in one domain.
struct Measurement {
  DomainInfo domain;
  jouleprof_provenance provenance = JOULEPROF_UNAVAILABLE_FIGURE;
  std::optional<Energy> energy;  // absent: see `reason`
  std::string reason;
  Energy error;          // half of the 95 % interval
  Energy repeatability;  // the same, without what is common to one device
  std::string sensor;
  std::string method;
};

// All windows of one name.
struct Total {
  std::uint64_t count = 0;
  std::uint64_t resolved_count = 0;  // those whose energy is in `energies`
  Duration length{};                 // together
  std::vector<Measurement> energies;
};

struct MonitorOptions {
  std::string devices;  // as `jouleprof run --devices`; empty: all that this process can see
  std::string log;      // a *.jprof to record into; empty: none
  bool overwrite = false;
  Duration shortest_window{};  // zero: 50 ms
  Duration history{};          // zero: 10 minutes
  bool own_sampler = false;    // even under `jouleprof run` or with a service
};

class Window;

// Samples in a thread of its own. Thread safety: all functions from any thread.
class Monitor {
 public:
  // A window's name as a number: look it up once, where windows are short.
  class Name {
   public:
    std::uint32_t number() const { return number_; }

   private:
    friend class Monitor;
    explicit Name(std::uint32_t number) : number_(number) {}
    std::uint32_t number_;
  };

  // Errors: as jouleprof_monitor_open's.
  static Result<Monitor> open(const MonitorOptions& options = {}) {
    jouleprof_monitor_options c{};
    c.size = sizeof(c);
    c.devices = options.devices.empty() ? nullptr : options.devices.c_str();
    c.log = options.log.empty() ? nullptr : options.log.c_str();
    c.overwrite = options.overwrite;
    c.shortest_window_nanoseconds = options.shortest_window.count();
    c.history_nanoseconds = options.history.count();
    c.own_sampler = options.own_sampler;
    jouleprof_monitor* monitor = nullptr;
    auto failure = detail::failure([&](char* error, std::size_t size) {
      return jouleprof_monitor_open(&c, &monitor, error, size);
    });
    if (failure) return *std::move(failure);
    return Monitor(monitor);
  }

  Name name(const std::string& text) {
    return Name(jouleprof_monitor_name(monitor_.get(), text.c_str()));
  }

  // A window that begins now and ends when it goes out of scope, or at end().
  Window window(Name name);
  Window window(const std::string& name);

  std::vector<DomainInfo> domains() const {
    std::vector<DomainInfo> out(jouleprof_monitor_domain_count(monitor_.get()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      jouleprof_domain d{};
      jouleprof_monitor_domain(monitor_.get(), i, &d);
      out[i] = {d.domain, d.device, d.name, d.uuid, d.reason, std::nullopt};
      if (d.visible_index >= 0) out[i].visible_index = d.visible_index;
    }
    return out;
  }

  // The energy between two instants of jouleprof_now(), by domain. Waits until the sensors have
  // reported `end`, about 0.15 s after it. Errors: as jouleprof_window_energy's.
  Result<std::vector<Measurement>> energy(const jouleprof_window& window) {
    std::vector<jouleprof_energy> found(jouleprof_monitor_domain_count(monitor_.get()));
    auto failure = detail::failure([&](char* error, std::size_t size) {
      return jouleprof_window_energy(monitor_.get(), &window, -1, found.data(), error, size);
    });
    if (failure) return *std::move(failure);
    return measurements(found);
  }

  // All windows of a name that have ended. Errors: as jouleprof_monitor_total's.
  Result<Total> total(Name name) {
    std::vector<jouleprof_energy> found(jouleprof_monitor_domain_count(monitor_.get()));
    jouleprof_total total{};
    auto failure = detail::failure([&](char* error, std::size_t size) {
      return jouleprof_monitor_total(monitor_.get(), name.number(), -1, &total, found.data(), error,
                                     size);
    });
    if (failure) return *std::move(failure);
    return Total{total.count, total.resolved_count, Duration{total.nanoseconds},
                 measurements(found)};
  }
  Result<Total> total(const std::string& text) { return total(name(text)); }

  // What is known now, as JSON (docs/json.md, `jouleprof.snapshot/2`). Errors: as
  // jouleprof_monitor_snapshot's.
  Result<std::string> snapshot_json() { return text(jouleprof_monitor_snapshot); }
  // What the reader of the figures should know: a line each. Errors: internal.
  Result<std::string> warnings() { return text(jouleprof_monitor_warnings); }

  jouleprof_monitor* get() { return monitor_.get(); }

 private:
  struct Close {
    void operator()(jouleprof_monitor* m) const { jouleprof_monitor_close(m); }
  };
  explicit Monitor(jouleprof_monitor* monitor) : monitor_(monitor) {}

  Result<std::string> text(jouleprof_status (*ask)(jouleprof_monitor*, char**, char*,
                                                   std::size_t)) {
    char* found = nullptr;
    auto failure = detail::failure(
        [&](char* error, std::size_t size) { return ask(monitor_.get(), &found, error, size); });
    if (failure) return *std::move(failure);
    const std::unique_ptr<char, void (*)(void*)> owner(found, jouleprof_free);
    return std::string(found);
  }

  std::vector<Measurement> measurements(const std::vector<jouleprof_energy>& found) const {
    std::vector<Measurement> out;
    const auto all = domains();
    for (std::size_t i = 0; i < found.size(); ++i) {
      const jouleprof_energy& e = found[i];
      Measurement m{all[i],   e.provenance, std::nullopt, e.reason,
                    Energy{}, Energy{},     e.sensor,     e.method};
      if (e.provenance != JOULEPROF_UNAVAILABLE_FIGURE) {
        m.energy = Energy::microjoules(e.energy_microjoules);
        m.error = Energy::microjoules(e.error_microjoules);
        m.repeatability = Energy::microjoules(e.repeatability_microjoules);
      }
      out.push_back(std::move(m));
    }
    return out;
  }

  std::unique_ptr<jouleprof_monitor, Close> monitor_;
};

// An interval of the program, from construction to end. Costs two timestamps. The monitor must
// outlive it. Thread safety: one thread at a time; any may end it.
class Window {
 public:
  Window(Monitor& monitor, Monitor::Name name)
      : monitor_(monitor.get()), window_(jouleprof_monitor_begin(monitor_, name.number())) {}
  Window(Window&& other) noexcept
      : monitor_(std::exchange(other.monitor_, nullptr)), window_(other.window_) {}
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  Window& operator=(Window&&) = delete;
  ~Window() { end(); }

  // Ends the window, once: the first call counts. Monitor::energy has its energy.
  jouleprof_window end() {
    if (monitor_ != nullptr) jouleprof_window_end(std::exchange(monitor_, nullptr), &window_);
    return window_;
  }
  // Forgets the window: it is in no total and no recording.
  void cancel() {
    if (monitor_ != nullptr) jouleprof_window_cancel(std::exchange(monitor_, nullptr), &window_);
  }

 private:
  jouleprof_monitor* monitor_;
  jouleprof_window window_;
};

inline Window Monitor::window(Name name) { return Window(*this, name); }
inline Window Monitor::window(const std::string& text) { return Window(*this, name(text)); }

}  // namespace jouleprof
