// Windows over HTTP: other programs begin and end them by name, and get their energy.
#pragma once

#include <functional>

#include "apps/serve/http_server.h"
#include "session/machine/machine_windows.h"

namespace jouleprof::serve {

// POST /api/v1/windows/NAME/begin, POST /api/v1/windows/NAME/end, GET /api/v1/windows/NAME. An end,
// and a GET of a window that ended, wait some seconds until its energy is settled.
// Thread safety: respond() is called from one thread.
class WindowApi {
 public:
  // Writes a window as JSON.
  using Writer = std::function<std::string(const analysis::MachineWindow&)>;

  // Both outlive this one; `windows` may be called from another thread, too.
  WindowApi(session::MachineWindows& windows, Writer writer)
      : windows_(windows), writer_(std::move(writer)) {}

  static bool is_for(const HttpRequest& request);
  HttpResponse respond(const HttpRequest& request);

 private:
  session::MachineWindows& windows_;
  const Writer writer_;
};

}  // namespace jouleprof::serve
