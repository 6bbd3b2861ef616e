// jouleprof._native: the C interface for the Python package, nothing more. python/jouleprof has
// what people call.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "apps/python/monitor.h"
#include "apps/python/report.h"

namespace nb = nanobind;
using jouleprof::python::Monitor;
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
}
