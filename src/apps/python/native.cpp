#include "apps/python/native.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jouleprof/jouleprof.h"
#include "model/activity/serving.h"

namespace nb = nanobind;

namespace jouleprof::python {
namespace {

// A list of two texts: those of `jouleprof report PATH --by BY --json` and `jouleprof report PATH
// --json`; or a tuple (status, message). Other threads of the interpreter run meanwhile.
nb::object report_activity(const std::string& path, const std::string& by) {
  std::array<char, 4096> message{};
  std::unique_ptr<jouleprof_report, decltype(&jouleprof_report_close)> report(
      nullptr, jouleprof_report_close);
  jouleprof_status status;
  const char* json = nullptr;
  {
    const WithoutLock others_may_run;
    jouleprof_report* opened = nullptr;
    status = jouleprof_report_open(path.c_str(), &opened, message.data(), message.size());
    report.reset(opened);
    if (status == JOULEPROF_OK) {
      json = jouleprof_report_activity_json(opened, by.c_str(), message.data(), message.size());
      if (json == nullptr) status = JOULEPROF_UNAVAILABLE;
    }
  }
  if (json == nullptr) {
    return nb::make_tuple(static_cast<int>(status), text(message.data()));
  }
  nb::list texts;
  texts.append(nb::str(json));
  texts.append(nb::str(jouleprof_report_json(report.get())));
  return texts;
}

std::uint32_t number_of(PyObject* object) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(object);
  if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) {
    nb::raise_python_error();
  }
  return static_cast<std::uint32_t>(
      std::min<unsigned long long>(value, std::numeric_limits<std::uint32_t>::max()));
}

// Absent: null. The reference is borrowed.
PyObject* found(const nb::dict& of, nb::handle key) {
  PyObject* const value = PyDict_GetItemWithError(of.ptr(), key.ptr());
  if (value == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return value;
}

// Borrowed. Throws where the list is shorter by now.
PyObject* item(const nb::list& of, std::size_t at) {
  PyObject* const value = PyList_GetItem(of.ptr(), static_cast<Py_ssize_t>(at));
  if (value == nullptr) nb::raise_python_error();
  return value;
}

constexpr std::size_t kShareNumbers = 7;
constexpr std::size_t kShareBytes = kShareNumbers * sizeof(std::uint32_t);

// Why a step cannot be, as (request or None, reason); None: it can. `shares`: as StepTable::shares.
nb::object problem_of_step(std::int64_t begin, std::int64_t end, const nb::bytes& shares) {
  const auto problem = [](nb::object request, const std::string& reason) -> nb::object {
    return nb::make_tuple(std::move(request), reason);
  };
  if (!model::is_possible_step(HostTime{Duration{begin}}, HostTime{Duration{end}})) {
    return problem(nb::none(), "from " + std::to_string(begin) + " to " + std::to_string(end) +
                                   " ns: a step ends after it begins, and within a day");
  }
  if (shares.size() % kShareBytes != 0) {
    return problem(nb::none(), "its shares are not seven numbers each");
  }
  const auto* bytes = static_cast<const char*>(shares.data());
  for (std::size_t at = 0; at < shares.size(); at += kShareBytes) {
    std::array<std::uint32_t, kShareNumbers> share;
    std::memcpy(share.data(), bytes + at, kShareBytes);
    const auto [number, tokens, context, cached, rejected, recomputed, prefill] = share;
    if (model::is_possible({number, tokens, context, cached, rejected, recomputed, prefill != 0})) {
      continue;
    }
    return problem(nb::int_(number),
                   (rejected > tokens ? std::to_string(rejected) + " rejected"
                                      : std::to_string(recomputed) + " recomputed") +
                       " of " + std::to_string(tokens) + " tokens");
  }
  return nb::none();
}

}  // namespace

void StepTable::forget(nb::handle name) {
  PyObject* const slot = found(slots_, name);
  if (slot == nullptr) return;
  free_.push_back(PyLong_AsSize_t(slot));
  if (PyDict_DelItem(slots_.ptr(), name.ptr()) != 0) nb::raise_python_error();
}

StepTable::Known& StepTable::known_of(nb::handle name, const nb::callable& learn) {
  if (PyObject* const slot = found(slots_, name)) return known_[PyLong_AsSize_t(slot)];
  const auto learnt = nb::cast<nb::tuple>(learn(name));
  if (PyObject* const slot = found(slots_, name)) return known_[PyLong_AsSize_t(slot)];
  const Known known{number_of(nb::object(learnt[0]).ptr()), number_of(nb::object(learnt[1]).ptr()),
                    0, false};
  std::size_t slot = known_.size();
  if (free_.empty()) {
    known_.push_back(known);
  } else {
    slot = free_.back();
    free_.pop_back();
    known_[slot] = known;
  }
  slots_[name] = slot;
  return known_[slot];
}

nb::bytes StepTable::shares(const nb::list& names, const nb::list& tokens, const nb::list& contexts,
                            const nb::callable& learn, const nb::set& anew,
                            const nb::dict& rejected) {
  const std::size_t count = std::min({names.size(), tokens.size(), contexts.size()});
  const bool any_anew = anew.size() > 0;
  const bool any_rejected = rejected.size() > 0;
  // learn() is Python: other threads may come here meanwhile, with shares of their own.
  std::vector<std::uint32_t> out = std::exchange(out_, {});
  out.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const auto name = nb::borrow(item(names, i));
    const std::uint32_t computed = number_of(item(tokens, i));
    const std::uint32_t context = number_of(item(contexts, i));
    Known& known = known_of(name, learn);
    const bool begins = !known.begun || (any_anew && anew.contains(name));
    std::uint32_t lost = 0;
    if (any_rejected) {
      if (PyObject* const value = found(rejected, name))
        lost = std::min(number_of(value), computed);
    }
    const std::uint32_t end = context + computed;
    const std::uint32_t again = std::min(known.computed, end) - std::min(known.computed, context);
    const bool prefill = context < known.prompt || again > 0;
    known.begun = true;
    known.computed = std::max(known.computed, end - lost);
    out.insert(out.end(), {known.number, computed, context, begins && prefill ? context : 0, lost,
                           again, prefill ? 1U : 0U});
  }
  nb::bytes made(out.data(), out.size() * sizeof(std::uint32_t));
  out_ = std::move(out);
  return made;
}

}  // namespace jouleprof::python

using jouleprof::python::Monitor;
using jouleprof::python::StepTable;
using nb::literals::operator""_a;

// jouleprof._native: the C interface for the Python package, nothing more. python/jouleprof has
// what people call.
NB_MODULE(_native, module) {
  // Windows held by a program's globals outlive the interpreter; they are no leaks.
  nb::set_leak_warnings(false);

  module.def("version", &jouleprof_version);
  module.def("now", &jouleprof_now);
  module.def("open_monitor", &jouleprof::python::open_monitor, "devices"_a.none(), "log"_a.none(),
             "overwrite"_a, "shortest_window"_a, "history"_a, "own_sampler"_a,
             "gpu_indices"_a.none(), "gpus_only"_a);
  module.def("sum_energies", &jouleprof::python::sum_energies, "parts"_a, "independent"_a);

  module.def("end_calls", &jouleprof::python::end_calls, "most"_a);
  module.def("report_activity", &jouleprof::python::report_activity, "path"_a, "by"_a);

  nb::class_<Monitor>(module, "Monitor", nb::is_weak_referenceable())
      .def("close", &Monitor::close)
      .def_prop_ro("closed", &Monitor::is_closed)
      .def("source", &Monitor::source)
      .def("domains", &Monitor::domains)
      .def("name", &Monitor::name, "text"_a)
      .def("leave", &Monitor::leave)
      .def("begin", &Monitor::begin)
      .def("forget", &Monitor::forget)
      .def("end", &Monitor::end)
      .def("add", &Monitor::add)
      .def("energy", &Monitor::energy)
      .def("total", &Monitor::total)
      .def("snapshot", &Monitor::snapshot)
      .def("warnings", &Monitor::warnings);

  module.def("problem_of_step", &jouleprof::python::problem_of_step);
  nb::class_<StepTable>(module, "StepTable")
      .def(nb::init<>())
      .def("forget", &StepTable::forget)
      .def("shares", &StepTable::shares);
}
