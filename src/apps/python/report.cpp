#include "apps/python/report.h"

#include <array>
#include <memory>

#include "jouleprof/jouleprof.h"

namespace nb = nanobind;

namespace jouleprof::python {

nb::object report_activity(const std::string& path, const std::string& by) {
  std::array<char, 4096> message{};
  std::unique_ptr<jouleprof_report, decltype(&jouleprof_report_close)> report(
      nullptr, jouleprof_report_close);
  jouleprof_status status;
  const char* json = nullptr;
  {
    const nb::gil_scoped_release others_may_run;
    jouleprof_report* opened = nullptr;
    status = jouleprof_report_open(path.c_str(), &opened, message.data(), message.size());
    report.reset(opened);
    if (status == JOULEPROF_OK) {
      json = jouleprof_report_activity_json(opened, by.c_str(), message.data(), message.size());
      if (json == nullptr) status = JOULEPROF_UNAVAILABLE;
    }
  }
  if (json == nullptr) {
    return nb::make_tuple(
        static_cast<int>(status),
        nb::steal(PyUnicode_DecodeUTF8(
            message.data(), static_cast<Py_ssize_t>(std::char_traits<char>::length(message.data())),
            "replace")));
  }
  nb::list texts;
  texts.append(nb::str(json));
  texts.append(nb::str(jouleprof_report_json(report.get())));
  return texts;
}

}  // namespace jouleprof::python
