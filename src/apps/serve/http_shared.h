// What the connections of the HTTP server share. Only http_connection.h and http_server.cpp include
// it.
#pragma once

// clang-format off
#include <utility>  // Boost 1.74 needs it before its own headers
// clang-format on
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/serve/http_server.h"
#include "apps/serve/web_security.h"

namespace jouleprof::serve {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
using tcp = net::ip::tcp;
using boost::system::error_code;

// A body that several responses share.
struct SharedBody {
  using value_type = std::shared_ptr<const std::string>;
  static std::uint64_t size(const value_type& body) { return body ? body->size() : 0; }
  class writer {
   public:
    using const_buffers_type = net::const_buffer;
    template <bool isRequest, class Fields>
    writer(const http::header<isRequest, Fields>&, const value_type& body) : body_(body) {}
    void init(error_code& err) { err = {}; }
    boost::optional<std::pair<const_buffers_type, bool>> get(error_code& err) {
      err = {};
      if (!body_ || body_->empty()) return boost::none;
      return std::pair{const_buffers_type(body_->data(), body_->size()), false};
    }

   private:
    value_type body_;
  };
};

class Connection;

// Of the serving thread.
struct Shared {
  HttpOptions options;
  HttpServer::Handler handler;
  std::unique_ptr<WebSecurity> security;  // nullptr: neither TLS nor passwords
  net::thread_pool hashing{1};            // of passwords, which takes long
  std::size_t most_hashes = 8;            // that wait
  std::size_t hashes = 0;
  std::size_t connections = 0;
  bool loopback_only = false;  // all addresses that are listened on
  std::vector<std::weak_ptr<Connection>> streams;
  std::atomic<int> open_streams{0};

  bool has_room_for_stream() {
    std::erase_if(streams, [](const auto& stream) { return stream.expired(); });
    return streams.size() < options.most_streams;
  }
};

// Whether a header Host names the loopback interface. A page of another site whose name was made to
// lead here (DNS rebinding) names that site.
inline bool is_loopback_name(std::string_view host) {
  if (host.starts_with("[::1]")) return true;
  host = host.substr(0, host.find(':'));
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host.empty() || host == "localhost" || (is_number && host.starts_with("127."));
}

}  // namespace jouleprof::serve
