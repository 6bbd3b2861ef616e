// A small HTTP/1.1 server for a few pages that are ready to be sent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::serve {

struct HttpRequest {
  std::string path;    // without the query
  std::string query;   // after the '?'; empty: none
  std::string accept;  // the header of this name
  std::string accept_encoding{};
  std::string method = "GET";
  HostTime received{};
  std::string peer{};            // the caller's address, without its port
  std::string agent{};           // what it calls itself
  std::string scrape_timeout{};  // how long a Prometheus waits for the answer; empty: it is none
  std::uint64_t connection = 0;  // which one it came on; 0: unknown
  bool is_repeated = false;      // not the first one on that connection
  // Who asks to change something: the name of the password, the user of a local program ("uid
  // 1000"), or the address. Empty for other requests.
  std::string caller{};
  // Whether the caller may change something: all addresses are of the loopback interface, or the
  // caller has shown a password or a client certificate.
  bool may_change = false;
};

struct HttpResponse {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;
  std::string encoding;  // of the body: gzip; empty: none
  std::string policy;    // the header Content-Security-Policy; empty: none
  // False: the request is handled again after a moment, until the answer is final or the server's
  // wait is over. A repeated request has no effect of its own.
  bool is_final = true;
  bool stream = false;  // after the body the connection is sent what publish() is given

  static HttpResponse of(std::string type, std::shared_ptr<const std::string> body);
  static HttpResponse json(std::string body);
  static HttpResponse text(unsigned status, std::string body);
};

struct HttpOptions {
  // Each "HOST:PORT", ":PORT" (all interfaces) or "[IPV6]:PORT"; port 0: any free one.
  std::vector<std::string> listen;
  std::filesystem::path web_config;  // as web_security.h's; empty: neither TLS nor passwords
  // With more, one that waits for a request makes room: the oldest of the address with most of
  // them. Where none waits, the new one is closed.
  std::size_t most_connections = 256;
  std::size_t most_streams = 64;
  std::size_t longest_header = 8192;             // bytes
  Duration patience = std::chrono::seconds{15};  // with a request, an idle connection, a response
  Duration longest_wait = std::chrono::seconds{5};  // for a final answer
  // Called on the server's thread where that has to end: no request is answered any more.
  std::function<void(const char* why)> failed;
};

// Answers GET and HEAD, and below /api/v1/windows/ POST; a request with a body, of another method
// or by a page of another site (the header Origin) is refused, and its connection closed. One
// thread serves all connections. `handler` is called on it, and must not wait.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Errors: invalid_argument for an address that cannot be understood; permission_denied and
  // unavailable where the system refuses it.
  static Result<std::unique_ptr<HttpServer>> start(HttpOptions options, Handler handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();  // closes all connections

  // Sends `text` to all streams, but to those that have not taken the text before yet. Returns at
  // once; may be called from any thread.
  void publish(std::shared_ptr<const std::string> text);

  // Whether a stream is open; may be called from any thread.
  bool has_streams() const;

  // Where it listens, by address: "127.0.0.1:9877".
  const std::vector<std::string>& addresses() const;
  std::vector<std::uint16_t> ports() const;
  bool is_tls() const;       // at the start
  bool is_loopback() const;  // all of them

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Errors: invalid_argument.
struct ListenAddress {
  std::string host;  // empty: all interfaces
  std::uint16_t port = 0;
};
Result<ListenAddress> parse_listen_address(const std::string& text);

}  // namespace jouleprof::serve
