// A connection of the HTTP server, and what all connections share. Only http_server.cpp includes
// it.

// clang-format off
#pragma once

#include <utility>  // Boost 1.74 needs it before its own headers
// clang-format on
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/serve/http_server.h"
#include "apps/serve/web_security.h"
#include "base/process/threads.h"
#include "base/text.h"

namespace jouleprof::serve {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
using tcp = net::ip::tcp;
using boost::system::error_code;

// All of it is one thread's. Of an executor that could be any, and of each operation with a handler
// of its own, the compiler would write the same code many times.
using Executor = net::io_context::executor_type;
using Socket = net::basic_stream_socket<tcp, Executor>;
using Timer = net::basic_waitable_timer<std::chrono::steady_clock,
                                        net::wait_traits<std::chrono::steady_clock>, Executor>;
using Stream = beast::basic_stream<tcp, Executor>;

class Connection;

// What the connections of the serving thread share.
struct Shared {
  HttpOptions options;
  HttpServer::Handler handler;
  std::unique_ptr<WebSecurity> security;  // nullptr: neither TLS nor passwords
  net::thread_pool hashing{1};            // of passwords, which takes long
  std::size_t most_hashes = 8;            // that wait
  std::size_t hashes = 0;
  std::size_t connections = 0;
  std::list<Connection*> waiting;  // for a request, those that began first in front
  bool loopback_only = false;      // all addresses that are listened on
  std::vector<std::weak_ptr<Connection>> streams;
  std::atomic<int> open_streams{0};

  bool has_room_for_connection();

  bool has_room_for_stream() {
    std::erase_if(streams, [](const auto& stream) { return stream.expired(); });
    return streams.size() < options.most_streams;
  }
};

// Whether a header Host names the loopback interface. A page of another site whose name was made to
// lead here (DNS rebinding) names that site.
inline bool is_loopback_name(std::string_view named) {
  const auto port = named.find_last_not_of("0123456789");
  if (port != std::string_view::npos && named[port] == ':') named = named.substr(0, port);
  const auto host = lower_case(named);
  const bool is_number = host.find_first_not_of("0123456789.") == std::string::npos;
  return host.empty() || host == "localhost" || host == "[::1]" ||
         (is_number && host.starts_with("127."));
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, std::shared_ptr<Shared> shared)
      : stream_(std::move(socket)), pause_(stream_.get_executor()), shared_(std::move(shared)) {
    ++shared_->connections;
    error_code ignored;
    address_ = stream_.socket().remote_endpoint(ignored).address();
    if (!shared_->security) return;
    shared_->security->refresh(HostClock::now());
    context_ = shared_->security->tls();
    if (context_) tls_.emplace(stream_, *context_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    end_wait();
    if (!is_closed_) --shared_->connections;
    if (is_stream_) --shared_->open_streams;
  }

  void start() {
    if (!tls_) return read();
    begin_wait();
    stream_.expires_after(shared_->options.patience);
    tls_->async_handshake(net::ssl::stream_base::server,
                          [self = shared_from_this()](error_code err) {
                            if (!err) self->read();
                          });
  }

  const net::ip::address& address() const { return address_; }

  // Makes room for another at once.
  void give_way() {
    end_wait();
    is_closed_ = true;
    --shared_->connections;
    stream_.close();
  }

  void read() {
    begin_wait();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_->options.longest_header));
    parser_->body_limit(0);
    stream_.expires_after(shared_->options.patience);
    parse();
  }

  // One text of a stream.
  void send(std::shared_ptr<const std::string> text) {
    if (writing_) return;  // a slow reader misses it
    writing_ = true;
    stream_.expires_after(shared_->options.patience);
    write({net::buffer(*text)}, [self = shared_from_this(), text](error_code err, std::size_t) {
      self->writing_ = false;
      self->stream_.expires_never();
      if (err) self->close();
    });
  }

 private:
  void begin_wait() {
    if (!waits_) waits_ = shared_->waiting.insert(shared_->waiting.end(), this);
  }
  void end_wait() {
    if (waits_) shared_->waiting.erase(*waits_);
    waits_.reset();
  }

  using Done = std::function<void(error_code, std::size_t)>;

  void receive(net::mutable_buffer to, Done done) {
    if (tls_) {
      tls_->async_read_some(to, std::move(done));
    } else {
      stream_.async_read_some(to, std::move(done));
    }
  }

  // A header and a body.
  void write(const std::array<net::const_buffer, 2>& from, Done done) {
    if (tls_) {
      net::async_write(*tls_, from, std::move(done));
    } else {
      net::async_write(stream_, from, std::move(done));
    }
  }

  // Takes what has come of a request, and waits for more until its header is complete.
  void parse() {
    error_code err = http::error::need_more;
    if (buffer_.size() > 0) buffer_.consume(parser_->put(buffer_.data(), err));
    if (err != http::error::need_more) return check(err);
    const auto room = beast::read_size(buffer_, kMostAtOnce);
    if (room == 0) return check(http::error::buffer_overflow);
    receive(buffer_.prepare(room), [self = shared_from_this()](error_code error, std::size_t size) {
      if (error) return self->check(error);
      self->buffer_.commit(size);
      self->parse();
    });
  }

  void check(error_code err) {
    end_wait();
    if (err == http::error::header_limit) return respond(HttpResponse::text(431, "too long\n"), 0);
    if (err == http::error::body_limit) return respond(HttpResponse::text(413, "no body\n"), 0);
    if (err.category() == http::make_error_code(http::error::end_of_stream).category() &&
        err != http::error::end_of_stream && err != http::error::partial_message) {
      return respond(HttpResponse::text(400, "this is no HTTP request\n"), 0);
    }
    if (err) return close();
    const auto& request = parser_->get();
    // HTTP/1.1 asks for one host; two could name different ones (RFC 9112, 3.2).
    const auto hosts = request.count(http::field::host);
    if (hosts > 1 || (hosts == 0 && request.version() == 11)) {
      return respond(HttpResponse::text(400, "a request has one header Host\n"), 0);
    }
    take_absolute_form();
    const bool reads = request.method() == http::verb::get || request.method() == http::verb::head;
    const bool posts = request.method() == http::verb::post &&
                       std::string_view(request.target().data(), request.target().size())
                           .starts_with("/api/v1/windows/");
    if (!reads && !posts) {
      return respond(HttpResponse::text(405, "only GET and HEAD are answered\n"), 0);
    }
    // A browser names the site whose page makes a request that changes something.
    if (posts && request.find(http::field::origin) != request.end()) {
      return respond(HttpResponse::text(403, "pages of a browser may not begin or end windows\n"),
                     0);
    }
    const std::string host(request[http::field::host]);
    if (shared_->loopback_only && !is_loopback_name(host)) {
      return respond(HttpResponse::text(403, "this service is reached as localhost only\n"), 0);
    }
    const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
    if (has_body) return respond(HttpResponse::text(413, "no body is accepted\n"), 0);
    authorise();
  }

  // Clients of a proxy send "GET http://host/path", whose host counts in place of the header's
  // (RFC 9112, 3.2.2).
  void take_absolute_form() {
    auto& request = parser_->get();
    const std::string target(request.target());
    const auto scheme = target.find("://");
    if (target.starts_with('/') || scheme == std::string::npos) return;
    const auto host = scheme + 3;
    const auto path = std::min(target.find_first_of("/?", host), target.size());
    request.set(http::field::host, target.substr(host, path - host));
    request.target((target.substr(path).starts_with('/') ? "" : "/") + target.substr(path));
  }

  // Probes of a supervisor have no password; these pages say whether the service works, and no
  // more.
  bool is_probe() const {
    const auto target = parser_->get().target();
    return target == "/healthz" || target == "/readyz" || target == "/-/healthy" ||
           target == "/-/ready";
  }

  void authorise() {
    if (!shared_->security || is_probe()) return answer();
    if (!shared_->security->admits(HostClock::now())) {
      return respond(HttpResponse::text(429, "too many requests: see rate_limit\n"), 0);
    }
    const auto auth = shared_->security->auth();
    const std::string header(parser_->get()[http::field::authorization]);
    switch (auth->verdict(header)) {
      case BasicAuth::Verdict::kAllowed:
        return answer();
      case BasicAuth::Verdict::kDenied:
        return respond(HttpResponse::text(401, "a name and a password are needed\n"), 0);
      case BasicAuth::Verdict::kUnknown:
        break;
    }
    if (shared_->hashes >= shared_->most_hashes) {
      return respond(HttpResponse::text(429, "too many passwords are being checked\n"), 0);
    }
    ++shared_->hashes;
    stream_.expires_never();
    net::post(shared_->hashing, [self = shared_from_this(), auth, header] {
      bool allowed = false;
      try {
        allowed = auth->verify(header);
      } catch (const std::exception&) {  // no memory: the caller may try again
      }
      net::post(self->stream_.get_executor(), [self, auth, header, allowed] {
        --self->shared_->hashes;
        if (allowed) {
          auth->remember(header);
          return self->answer();
        }
        self->respond(HttpResponse::text(401, "the name or the password is wrong\n"), 0);
      });
    });
  }

  void answer() {
    const auto& request = parser_->get();
    HttpRequest plain;
    const std::string target(request.target());
    const auto mark = target.find('?');
    plain.path = target.substr(0, mark);
    if (mark != std::string::npos) plain.query = target.substr(mark + 1);
    plain.accept = std::string(request[http::field::accept]);
    plain.accept_encoding = std::string(request[http::field::accept_encoding]);
    plain.method = std::string(request.method_string());
    plain.received = HostClock::now();
    error_code ignored;
    if (const auto peer = stream_.socket().remote_endpoint(ignored); !ignored) {
      plain.peer = peer.address().to_string();
    }
    plain.agent = std::string(request[http::field::user_agent].substr(0, 100));
    plain.scrape_timeout =
        std::string(request["X-Prometheus-Scrape-Timeout-Seconds"].substr(0, 20));
    plain.connection = number_;
    plain.is_repeated = std::exchange(has_asked_, true);
    plain.may_change =
        shared_->loopback_only || (shared_->security && shared_->security->identifies_callers());
    if (plain.method == "POST") plain.caller = caller();
    handle(std::make_shared<const HttpRequest>(std::move(plain)));
  }

  std::string caller() {
    if (shared_->security) {
      auto user = BasicAuth::user_in(std::string(parser_->get()[http::field::authorization]));
      if (!user.empty()) return "user " + user;
    }
    error_code ignored;
    const auto client = stream_.socket().remote_endpoint(ignored);
    const auto server = stream_.socket().local_endpoint(ignored);
    if (client.address().is_loopback()) {
      const char* const table = client.address().is_v6() ? "/proc/net/tcp6" : "/proc/net/tcp";
      const auto user = user_of_connection(kernel_name(client), kernel_name(server), table);
      if (user) return fmt::format("uid {}", *user);
    }
    return address_.to_string();
  }

  // The address as /proc/net/tcp writes it: each 32 bits in the machine's order.
  static std::string kernel_name(const tcp::endpoint& at) {
    std::string out;
    const auto add = [&out](const auto& bytes) {
      for (std::size_t i = 0; i < bytes.size(); i += 4) {
        std::uint32_t word = 0;
        std::memcpy(&word, bytes.data() + i, 4);
        out += fmt::format("{:08X}", word);
      }
    };
    if (at.address().is_v6()) {
      add(at.address().to_v6().to_bytes());
    } else {
      add(at.address().to_v4().to_bytes());
    }
    return fmt::format("{}:{:04X}", out, at.port());
  }

  void handle(const std::shared_ptr<const HttpRequest>& plain) {
    HttpResponse response;
    try {
      response = shared_->handler(*plain);
    } catch (const std::exception& e) {
      response = HttpResponse::text(500, fmt::format("there is no answer: {}\n", reason_of(e)));
    }
    if (response.stream && !is_head()) return begin_stream(response);
    const bool waits =
        !response.is_final && HostClock::now() - plain->received < shared_->options.longest_wait;
    if (!waits) {
      const auto& request = parser_->get();
      return respond(std::move(response), request.version(), request.keep_alive());
    }
    stream_.expires_never();
    pause_.expires_after(kPause);
    pause_.async_wait([self = shared_from_this(), plain](error_code err) {
      if (!err) self->handle(plain);
    });
  }

  // Whose answer has no body, a refusal neither.
  bool is_head() const { return parser_->get().method() == http::verb::head; }

  void begin_stream(const HttpResponse& response) {
    if (!shared_->has_room_for_stream()) {
      return respond(HttpResponse::text(503, "too many streams are open\n"), 0);
    }
    shared_->streams.push_back(weak_from_this());
    is_stream_ = true;
    ++shared_->open_streams;
    // A read keeps the deadline that was set when it began.
    stream_.expires_never();
    wait_for_end();
    send(std::make_shared<const std::string>(
        fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nCache-Control: no-store\r\n"
                    "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{}",
                    response.type, response.body ? *response.body : "")));
  }

  // A reader of a stream has nothing to say: whatever comes ends it.
  void wait_for_end() {
    receive(net::buffer(&ignored_, 1),
            [self = shared_from_this()](error_code, std::size_t) { self->close(); });
  }

  void respond(HttpResponse plain, unsigned version, bool keep_alive = false) {
    http::response<http::empty_body> response;
    response.version(version == 10 ? 10 : 11);
    response.result(plain.status);
    response.set(http::field::content_type, plain.type);
    response.set(http::field::cache_control, "no-store");
    response.set("X-Content-Type-Options", "nosniff");
    if (!plain.encoding.empty()) {
      response.set(http::field::content_encoding, plain.encoding);
      response.set(http::field::vary, "Accept, Accept-Encoding");
    }
    if (!plain.policy.empty()) response.set("Content-Security-Policy", plain.policy);
    if (plain.status == 401) {
      response.set(http::field::www_authenticate, "Basic realm=\"jouleprof\", charset=\"UTF-8\"");
    }
    if (shared_->security) {
      for (const auto& [name, value] : shared_->security->config().headers) {
        response.set(name, value);
      }
    }
    if (plain.status == 405) response.set(http::field::allow, "GET, HEAD");
    response.keep_alive(keep_alive);
    response.content_length(plain.body ? plain.body->size() : 0);
    header_ = fmt::format("HTTP/1.{} {} {}\r\n", response.version() % 10, response.result_int(),
                          text_of(response.reason()));
    for (const auto& field : response) {
      header_ += fmt::format("{}: {}\r\n", text_of(field.name_string()), text_of(field.value()));
    }
    header_ += "\r\n";
    body_ = is_head() ? nullptr : std::move(plain.body);
    stream_.expires_after(shared_->options.patience);
    write({net::buffer(header_), body_ ? net::buffer(*body_) : net::const_buffer()},
          [self = shared_from_this(), keep_alive](error_code err, std::size_t) {
            if (err || !keep_alive) return self->close();
            self->read();
          });
  }

  static std::string_view text_of(beast::string_view text) { return {text.data(), text.size()}; }

  void close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  }

  static constexpr std::chrono::milliseconds kPause{30};
  static constexpr std::size_t kMostAtOnce = 65536;

  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  Stream stream_;
  std::uint64_t number_ = next_number();
  bool has_asked_ = false;
  Timer pause_;
  std::shared_ptr<Shared> shared_;
  net::ip::address address_;                               // of the client
  std::optional<std::list<Connection*>::iterator> waits_;  // its place there
  bool is_closed_ = false;                                 // and counted no longer
  std::shared_ptr<net::ssl::context> context_;             // outlives tls_
  std::optional<net::ssl::stream<Stream&>> tls_;
  beast::flat_buffer buffer_{16384};
  bool writing_ = false;
  bool is_stream_ = false;
  char ignored_ = 0;
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::string header_;                       // of the answer
  std::shared_ptr<const std::string> body_;  // that several answers may share
};

// One who opens connections without a request loses these first, whatever their number.
inline bool Shared::has_room_for_connection() {
  if (connections < options.most_connections) return true;
  std::map<net::ip::address, std::size_t> by_address;
  for (const auto* each : waiting) ++by_address[each->address()];
  const auto most = std::ranges::max_element(
      by_address, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == by_address.end()) return false;
  const auto oldest = std::ranges::find_if(
      waiting, [&](const auto* each) { return each->address() == most->first; });
  (*oldest)->give_way();
  return true;
}

}  // namespace jouleprof::serve
