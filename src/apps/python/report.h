// Reports of the C interface, for the Python package.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace jouleprof::python {

// A list of two texts: those of `jouleprof report PATH --by BY --json` and `jouleprof report PATH
// --json`; or a tuple (status, message). Other threads of the interpreter run meanwhile.
nanobind::object report_activity(const std::string& path, const std::string& by);

}  // namespace jouleprof::python
