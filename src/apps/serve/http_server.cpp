#include "apps/serve/http_server.h"

#include <fmt/format.h>
#include <signal.h>

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>

#include "apps/serve/http_connection.h"
#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"

namespace jouleprof::serve {
namespace {

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
    acceptor_.async_accept([self = shared_from_this()](error_code err, Socket socket) {
      if (err == net::error::operation_aborted) return;
      if (err) return self->wait();  // out of descriptors, most likely
      // The end of an answer does not wait for the client's acknowledgement of its begin.
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      if (self->shared_->has_room_for_connection()) {
        std::make_shared<Connection>(std::move(socket), self->shared_)->start();
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

  net::basic_socket_acceptor<tcp, Executor> acceptor_;
  Timer pause_;
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

HttpResponse HttpResponse::of(std::string type, std::shared_ptr<const std::string> body) {
  HttpResponse out;
  out.type = std::move(type);
  out.body = std::move(body);
  return out;
}

HttpResponse HttpResponse::json(std::string body) {
  return of("application/json", std::make_shared<const std::string>(std::move(body)));
}

HttpResponse HttpResponse::text(unsigned status, std::string body) {
  HttpResponse out;
  out.status = status;
  out.body = std::make_shared<const std::string>(std::move(body));
  return out;
}

class HttpServer::Impl {
 public:
  Impl(HttpOptions options, Handler handler) : shared_(std::make_shared<Shared>()) {
    shared_->options = std::move(options);
    shared_->handler = std::move(handler);
  }

  ~Impl() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
    shared_->hashing.join();
  }

  Result<void> start() {
    if (!shared_->options.web_config.empty()) {
      auto security = WebSecurity::open(shared_->options.web_config);
      if (!security) return forward_error(security);
      shared_->security = std::move(*security);
      is_tls = shared_->security->tls() != nullptr;
    }
    shared_->loopback_only = true;
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
      if (err) return system_failure(fmt::format("cannot listen on {}", text), err.value());
      const auto local = listener->local();
      shared_->loopback_only &= local.address().is_loopback();
      const auto host = local.address().to_string();
      addresses.push_back(local.address().is_v6() ? fmt::format("[{}]:{}", host, local.port())
                                                  : fmt::format("{}:{}", host, local.port()));
      ports.push_back(local.port());
      listener->accept();
    }
    // A client that is gone is an error of write() alone.
    signal(SIGPIPE, SIG_IGN);
    auto thread = start_thread([this] { context_.run(); },
                               [failed = shared_->options.failed](const char* why) {
                                 if (failed) failed(why);
                               });
    if (!thread) return forward_error(thread);
    thread_ = std::move(*thread);
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

  bool has_streams() const { return shared_->open_streams.load() > 0; }
  bool is_loopback() const { return shared_->loopback_only; }

  std::vector<std::string> addresses;
  std::vector<std::uint16_t> ports;
  bool is_tls = false;

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

bool HttpServer::has_streams() const { return impl_->has_streams(); }

const std::vector<std::string>& HttpServer::addresses() const { return impl_->addresses; }
bool HttpServer::is_tls() const { return impl_->is_tls; }
bool HttpServer::is_loopback() const { return impl_->is_loopback(); }
std::vector<std::uint16_t> HttpServer::ports() const { return impl_->ports; }

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
