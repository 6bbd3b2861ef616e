#include "apps/serve/window_api.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace jouleprof::serve {
namespace {

constexpr std::string_view kPath = "/api/v1/windows/";

unsigned status_of(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return 400;
    case Errc::kNotFound:
      return 404;
    case Errc::kUnsupported:
      return 409;
    default:
      return 503;
  }
}

}  // namespace

bool WindowApi::is_for(const HttpRequest& request) { return request.path.starts_with(kPath); }

HttpResponse WindowApi::respond(const HttpRequest& request) {
  if (!request.may_change) {
    return HttpResponse::text(
        403,
        "windows are for callers on the loopback interface, or with a password or a client "
        "certificate: see --web.config.file\n");
  }
  const std::string_view rest = std::string_view(request.path).substr(kPath.size());
  const auto slash = rest.find('/');
  const auto name = rest.substr(0, slash);
  const auto action = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  const bool begins = action == "begin";
  const bool ends = action == "end";
  if (!action.empty() && !begins && !ends) {
    return HttpResponse::text(404, "there is no such page; docs/metrics.md lists the pages\n");
  }
  if ((begins || ends) != (request.method == "POST")) {
    return HttpResponse::text(405, begins || ends
                                       ? "a window is begun and ended with POST\n"
                                       : "a window is read with GET; POST .../begin and .../end\n");
  }
  const HostTime now = request.received;
  const auto window = begins ? windows_.begin(name, now)
                      : ends ? windows_.end(name, now)
                             : windows_.find(name);
  if (!window) {
    return HttpResponse::text(status_of(window.error().code), window.error().message + "\n");
  }
  HttpResponse out;
  out.status = begins ? 201 : 200;
  out.type = "application/json";
  out.body = std::make_shared<const std::string>(writer_(*window));
  out.is_final = !window->end || window->is_settled;
  return out;
}

}  // namespace jouleprof::serve
