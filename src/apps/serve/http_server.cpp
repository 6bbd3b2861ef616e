#include "apps/serve/http_server.h"

#include <fmt/format.h>
#include <signal.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <thread>
#include <utility>  // before Boost 1.74, which needs it

#include "base/file.h"

namespace jouleprof::serve {
namespace {

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
  std::size_t connections = 0;
  std::vector<std::weak_ptr<Connection>> streams;

  bool has_room_for_stream() {
    std::erase_if(streams, [](const auto& stream) { return stream.expired(); });
    return streams.size() < options.most_streams;
  }
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, std::shared_ptr<Shared> shared)
      : stream_(std::move(socket)), shared_(std::move(shared)) {
    ++shared_->connections;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { --shared_->connections; }

  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_->options.longest_header));
    parser_->body_limit(0);
    stream_.expires_after(shared_->options.patience);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code err, std::size_t) { self->answer(err); });
  }

  // One text of a stream.
  void send(std::shared_ptr<const std::string> text) {
    if (writing_) return;  // a slow reader misses it
    writing_ = true;
    stream_.expires_after(shared_->options.patience);
    const auto buffer = net::buffer(*text);
    net::async_write(stream_, buffer,
                     [self = shared_from_this(), text = std::move(text)](error_code err, auto) {
                       self->writing_ = false;
                       self->stream_.expires_never();
                       if (err) self->close();
                     });
  }

 private:
  void answer(error_code err) {
    if (err == http::error::header_limit) return respond(HttpResponse::text(431, "too long\n"), 0);
    if (err == http::error::body_limit) return respond(HttpResponse::text(413, "no body\n"), 0);
    if (err.category() == http::make_error_code(http::error::end_of_stream).category() &&
        err != http::error::end_of_stream && err != http::error::partial_message) {
      return respond(HttpResponse::text(400, "this is no HTTP request\n"), 0);
    }
    if (err) return close();
    const auto& request = parser_->get();
    const bool head = request.method() == http::verb::head;
    if (!head && request.method() != http::verb::get) {
      return respond(HttpResponse::text(405, "only GET and HEAD are answered\n"), 0);
    }
    const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
    if (has_body) return respond(HttpResponse::text(413, "no body is accepted\n"), 0);
    HttpRequest plain;
    const std::string target(request.target());
    const auto mark = target.find('?');
    plain.path = target.substr(0, mark);
    if (mark != std::string::npos) plain.query = target.substr(mark + 1);
    plain.accept = std::string(request[http::field::accept]);
    auto response = shared_->handler(plain);
    if (response.stream && !head) return begin_stream(response);
    respond(std::move(response), request.version(), request.keep_alive(), head);
  }

  void begin_stream(const HttpResponse& response) {
    if (!shared_->has_room_for_stream()) {
      return respond(HttpResponse::text(503, "too many streams are open\n"), 0);
    }
    shared_->streams.push_back(weak_from_this());
    send(std::make_shared<const std::string>(
        fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nCache-Control: no-store\r\n"
                    "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{}",
                    response.type, response.body ? *response.body : "")));
    wait_for_end();
  }

  // A reader of a stream has nothing to say: whatever comes ends it.
  void wait_for_end() {
    stream_.async_read_some(net::buffer(&ignored_, 1),
                            [self = shared_from_this()](error_code, auto) { self->close(); });
  }

  void respond(HttpResponse plain, unsigned version, bool keep_alive = false, bool head = false) {
    response_ = {};
    response_.version(version == 10 ? 10 : 11);
    response_.result(plain.status);
    response_.set(http::field::content_type, plain.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    if (!plain.policy.empty()) response_.set("Content-Security-Policy", plain.policy);
    if (plain.status == 405) response_.set(http::field::allow, "GET, HEAD");
    response_.keep_alive(keep_alive);
    response_.content_length(plain.body ? plain.body->size() : 0);
    if (!head) response_.body() = std::move(plain.body);
    serializer_.emplace(response_);
    stream_.expires_after(shared_->options.patience);
    const auto next = [self = shared_from_this(), keep_alive](error_code err, std::size_t) {
      if (err || !keep_alive) return self->close();
      self->read();
    };
    if (head) {
      http::async_write_header(stream_, *serializer_, next);
    } else {
      http::async_write(stream_, *serializer_, next);
    }
  }

  void close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  }

  beast::tcp_stream stream_;
  std::shared_ptr<Shared> shared_;
  beast::flat_buffer buffer_{16384};
  bool writing_ = false;
  char ignored_ = 0;
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<SharedBody> response_;
  std::optional<http::response_serializer<SharedBody>> serializer_;
};

// Accepts connections on one address.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(net::io_context& context, std::shared_ptr<Shared> shared)
      : acceptor_(context), pause_(context), shared_(std::move(shared)) {}

  error_code open(const tcp::endpoint& at) {
    error_code err;
    acceptor_.open(at.protocol(), err);
    if (!err) acceptor_.set_option(net::socket_base::reuse_address(true), err);
    if (!err && at.address().is_v6()) acceptor_.set_option(net::ip::v6_only(false), err);
    if (!err) acceptor_.bind(at, err);
    if (!err) acceptor_.listen(net::socket_base::max_listen_connections, err);
    return err;
  }

  tcp::endpoint local() const { return acceptor_.local_endpoint(); }

  void accept() {
    acceptor_.async_accept([self = shared_from_this()](error_code err, tcp::socket socket) {
      if (err == net::error::operation_aborted) return;
      if (err) return self->wait();  // out of descriptors, most likely
      if (self->shared_->connections < self->shared_->options.most_connections) {
        std::make_shared<Connection>(std::move(socket), self->shared_)->read();
      }
      self->accept();
    });
  }

 private:
  void wait() {
    pause_.expires_after(std::chrono::milliseconds{100});
    pause_.async_wait([self = shared_from_this()](error_code err) {
      if (!err) self->accept();
    });
  }

  tcp::acceptor acceptor_;
  net::steady_timer pause_;
  std::shared_ptr<Shared> shared_;
};

Result<tcp::endpoint> endpoint_of(const std::string& text) {
  const auto parsed = parse_listen_address(text);
  if (!parsed) return forward_error(parsed);
  if (parsed->host.empty()) return tcp::endpoint(tcp::v6(), parsed->port);
  error_code err;
  const auto address = net::ip::make_address(parsed->host, err);
  if (err) {
    return fail(Errc::kInvalidArgument,
                fmt::format("cannot listen on '{}': '{}' is no IP address of this machine; names "
                            "other than localhost are not looked up",
                            text, parsed->host));
  }
  return tcp::endpoint(address, parsed->port);
}

}  // namespace

HttpResponse HttpResponse::text(unsigned status, std::string body) {
  HttpResponse out;
  out.status = status;
  out.body = std::make_shared<const std::string>(std::move(body));
  return out;
}

class HttpServer::Impl {
 public:
  Impl(HttpOptions options, Handler handler)
      : shared_(std::make_shared<Shared>(Shared{std::move(options), std::move(handler), 0, {}})) {}

  ~Impl() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> start() {
    for (const auto& text : shared_->options.listen) {
      const auto at = endpoint_of(text);
      if (!at) return forward_error(at);
      auto listener = std::make_shared<Listener>(context_, shared_);
      auto err = listener->open(*at);
      // Without IPv6, all interfaces are those of IPv4.
      if (err == net::error::address_family_not_supported && at->address().is_unspecified()) {
        listener = std::make_shared<Listener>(context_, shared_);
        err = listener->open({tcp::v4(), at->port()});
      }
      if (err) {
        return tl::unexpected(system_error(fmt::format("cannot listen on {}", text), err.value()));
      }
      const auto local = listener->local();
      const auto host = local.address().to_string();
      addresses.push_back(local.address().is_v6() ? fmt::format("[{}]:{}", host, local.port())
                                                  : fmt::format("{}:{}", host, local.port()));
      ports.push_back(local.port());
      listener->accept();
    }
    // Signals are for the main thread; a client that is gone is an error of write() alone.
    signal(SIGPIPE, SIG_IGN);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { context_.run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return {};
  }

  void publish(std::shared_ptr<const std::string> text) {
    net::post(context_, [shared = shared_, text = std::move(text)] {
      for (const auto& stream : shared->streams) {
        if (const auto connection = stream.lock()) connection->send(text);
      }
      std::erase_if(shared->streams, [](const auto& stream) { return stream.expired(); });
    });
  }

  std::vector<std::string> addresses;
  std::vector<std::uint16_t> ports;

 private:
  std::shared_ptr<Shared> shared_;
  net::io_context context_{1};
  std::thread thread_;
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpOptions options, Handler handler) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
  if (auto started = impl->start(); !started) return forward_error(started);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

void HttpServer::publish(std::shared_ptr<const std::string> text) {
  impl_->publish(std::move(text));
}

const std::vector<std::string>& HttpServer::addresses() const { return impl_->addresses; }
std::vector<std::uint16_t> HttpServer::ports() const { return impl_->ports; }

}  // namespace jouleprof::serve
