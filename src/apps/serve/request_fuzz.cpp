// What a client may send to the service: whole connections, with windows and passwords.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "apps/serve/http_server.h"
#include "apps/serve/pages.h"
#include "apps/serve/web_security.h"

namespace {

using namespace jouleprof;

// libFuzzer's timer, which finds inputs that take too long, would end a wait for the service.
void restart_interrupted_calls() {
  struct sigaction timer {};
  sigaction(SIGALRM, nullptr, &timer);
  timer.sa_flags |= SA_RESTART;
  sigaction(SIGALRM, &timer, nullptr);
}

class Service {
 public:
  Service() {
    restart_interrupted_calls();
    serve::HttpOptions options;
    options.listen = {"127.0.0.1:0"};
    auto started = serve::HttpServer::start(std::move(options), [this](const auto& request) {
      return serve::WindowApi::is_for(request) ? api_.respond(request) : pages_.respond(request);
    });
    if (!started) std::abort();
    server_ = std::move(*started);
  }

  // Sends all, and reads the answer until the server closes the connection.
  void send(std::string_view bytes) {
    const int client = connect();
    // The server may close before it has read all.
    (void)::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    (void)shutdown(client, SHUT_WR);
    std::array<char, 4096> answer{};
    ssize_t length = 0;
    bool begins = true;
    while ((length = recv(client, answer.data(), answer.size(), 0)) > 0) {
      const std::string_view text(answer.data(), static_cast<std::size_t>(length));
      if (begins && length >= 5 && !text.starts_with("HTTP/")) std::abort();
      begins = false;
    }
    close(client);
  }

 private:
  // Each connection comes from another address of 127.0.0.0/8: a closed one keeps its port for a
  // minute, and one address has fewer ports than there are connections in that time.
  int connect() {
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int late_port = 1;
    (void)setsockopt(client, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &late_port, sizeof late_port);
    constexpr std::uint32_t kAddresses = 60'000;
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + connections_++ % kAddresses);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(server_->ports().at(0));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(client, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0 ||
        ::connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      std::perror("request_fuzz: no connection");
      std::abort();
    }
    return client;
  }

  std::uint32_t connections_ = 0;
  session::MachineWindows windows_;
  serve::WindowApi api_{windows_, [](const auto& window) { return window.name; }};
  serve::Pages pages_{{"1", "host"}, [](const auto&) {}};
  std::unique_ptr<serve::HttpServer> server_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Service service;
  static const serve::BasicAuth auth(
      std::map<std::string, std::string>{{"user", "$2y$04$abcdefghijklmnopqrstuu"}});
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auth.verdict(text) == serve::BasicAuth::Verdict::kAllowed) std::abort();
  service.send(text);
  return 0;
}
