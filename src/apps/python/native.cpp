#include "apps/python/native.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <string>

#include "jouleprof/jouleprof.h"

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

}  // namespace

}  // namespace jouleprof::python

// jouleprof._native: the C interface for the Python package, nothing more. python/jouleprof has
// what people call.

using jouleprof::python::Monitor;
using jouleprof::python::StepTable;
using nb::literals::operator""_a;

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
      .def("begin", &Monitor::begin)
      .def("forget", &Monitor::forget)
      .def("end", &Monitor::end)
      .def("add", &Monitor::add)
      .def("energy", &Monitor::energy)
      .def("total", &Monitor::total)
      .def("snapshot", &Monitor::snapshot)
      .def("warnings", &Monitor::warnings);

  nb::class_<StepTable>(module, "StepTable")
      .def(nb::init<>())
      .def("forget", &StepTable::forget)
      .def("shares", &StepTable::shares);
}
