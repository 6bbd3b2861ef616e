#include <fmt/format.h>

#include "apps/serve/http_server.h"
#include "base/text.h"

namespace jouleprof::serve {

Result<ListenAddress> parse_listen_address(const std::string& text) {
  const auto invalid = [&] {
    return fail(Errc::kInvalidArgument,
                fmt::format("cannot listen on '{}': give HOST:PORT, :PORT or [IPV6]:PORT, such as "
                            "127.0.0.1:9877",
                            text));
  };
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return invalid();
  const auto port = parse_integer(std::string_view(text).substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) return invalid();
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (host.empty()) return invalid();
  } else if (host.find(':') != std::string::npos) {
    return invalid();
  }
  if (host == "localhost") host = "127.0.0.1";
  return ListenAddress{std::move(host), static_cast<std::uint16_t>(*port)};
}

}  // namespace jouleprof::serve
