#include "apps/serve/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stop_token>
#include <thread>
#include <utility>

namespace jouleprof::serve {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Client {
 public:
  explicit Client(std::uint16_t port, const char* from = "127.0.0.1")
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, from, &own.sin_addr);
    (void)bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected = connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  }
  Client(Client&& other) noexcept : connected(other.connected), fd_(std::exchange(other.fd_, -1)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client& operator=(Client&&) = delete;
  ~Client() {
    if (fd_ >= 0) ::close(fd_);
  }
  void send(std::string_view text) const {
    (void)::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // All that comes until the server closes.
  std::string rest() const {
    std::string out;
    char buffer[4096];
    for (;;) {
      const auto n = recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) return out;
      out.append(buffer, static_cast<std::size_t>(n));
    }
  }
  std::string until(std::string_view end) const {
    std::string out;
    char c = 0;
    while (!out.ends_with(end) && recv(fd_, &c, 1, 0) == 1) out += c;
    return out;
  }
  bool connected = false;

 private:
  int fd_;
};

std::unique_ptr<HttpServer> start(HttpOptions options = {}) {
  if (options.listen.empty()) options.listen = {"127.0.0.1:0"};
  auto server = HttpServer::start(std::move(options), [](const HttpRequest& request) {
    if (request.path == "/stream") {
      HttpResponse out = HttpResponse::text(200, "first\n");
      out.stream = true;
      return out;
    }
    return HttpResponse::text(200, fmt::format("path {} query {} accept {}\n", request.path,
                                               request.query, request.accept));
  });
  EXPECT_TRUE(server) << server.error().message;
  return server ? std::move(*server) : nullptr;
}

std::string ask(const HttpServer& server, std::string_view text) {
  const Client client(server.ports()[0]);
  client.send(text);
  return client.rest();
}

TEST(HttpServer, AnswersARequest) {
  const auto server = start();
  EXPECT_THAT(server->addresses()[0], StartsWith("127.0.0.1:"));
  const auto answer =
      ask(*server,
          "GET /a?b=c HTTP/1.1\r\nHost: localhost\r\nAccept: t/p\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\npath /a query b=c accept t/p\n"));
}

TEST(HttpServer, TakesTheAbsoluteFormOfATarget) {
  const auto server = start();
  const auto ask_for = [&server](std::string_view target) {
    return ask(*server, fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n"
                                    "Connection: close\r\n\r\n",
                                    target));
  };
  EXPECT_THAT(ask_for("http://localhost:9/a?b=c"), HasSubstr("path /a query b=c "));
  EXPECT_THAT(ask_for("HTTP://localhost?b=://c"), HasSubstr("path / query b=://c "));
  EXPECT_THAT(ask_for("http://localhost"), HasSubstr("path / query  "));
  EXPECT_THAT(ask_for("/a?b=http://c"), HasSubstr("path /a query b=http://c "));
  EXPECT_THAT(ask_for("http://evil.example/a"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask_for("http://localhost:1@evil.example/a"), StartsWith("HTTP/1.1 403"));
}

TEST(HttpServer, HeadHasNoBody) {
  const auto server = start();
  const auto answer = ask(*server, "HEAD /a HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.0 200"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 23"));
  for (const char* const refused : {"Host: example.org", "Content-Length: 5"}) {
    const auto refusal = ask(*server, fmt::format("HEAD /a HTTP/1.1\r\n{}\r\n\r\n", refused));
    EXPECT_THAT(refusal, AllOf(StartsWith("HTTP/1.1 4"), EndsWith("\r\n\r\n")));
  }
}

TEST(HttpServer, KeepsAConnectionForMoreRequests) {
  const auto server = start();
  const Client client(server->ports()[0]);
  client.send(
      "GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /2 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.until("accept \n"), HasSubstr("path /1"));
  EXPECT_THAT(client.until("accept \n"), HasSubstr("path /2"));
}

TEST(HttpServer, RefusesWhatItDoesNotAnswer) {
  const auto server = start();
  const std::pair<std::string, std::string> cases[] = {
      {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 405"},
      {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 4"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 413"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 413"},
      {"POST /api/v1/windows/a/begin HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
       "HTTP/1.1 4"},
      {"POST /api/v1/windows/a/begin HTTP/1.1\r\nHost: localhost\r\nOrigin: https://x\r\n\r\n",
       "HTTP/1.1 403"},
      {"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405"},
      {"nonsense\r\n\r\n", "HTTP/1.1 400"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nLong: " + std::string(20000, 'x') + "\r\n\r\n",
       "HTTP/1.1 431"},
      {"GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 431"},
  };
  for (const auto& [request, answer] : cases) {
    EXPECT_THAT(ask(*server, request), StartsWith(answer)) << request.substr(0, 60);
  }
}

TEST(HttpServer, WaitsForAFinalAnswer) {
  struct Case {
    Duration longest_wait;
    int final_call;
  };
  // The last answer is sent, though it is not final.
  for (const auto& [longest_wait, final_call] : {Case{10min, 3}, Case{100ms, -1}}) {
    int calls = 0;
    const auto counting = [&, last = final_call](const HttpRequest& request) {
      EXPECT_EQ(request.method, "POST");
      EXPECT_TRUE(request.may_change);  // on the loopback interface
      auto out = HttpResponse::text(200, fmt::format("call {}\n", ++calls));
      out.is_final = calls == last;
      return out;
    };
    HttpOptions options;
    options.listen = {"127.0.0.1:0"};
    options.longest_wait = longest_wait;
    const auto server = HttpServer::start(options, counting);
    ASSERT_TRUE(server) << server.error().message;
    const auto answer = ask(**server,
                            "POST /api/v1/windows/a/end HTTP/1.1\r\nHost: localhost\r\n"
                            "Connection: close\r\n\r\n");
    EXPECT_THAT(answer, EndsWith(fmt::format("call {}\n", calls)));
    if (final_call > 0) {
      EXPECT_EQ(calls, final_call);
    }
  }
}

TEST(HttpServer, OnLoopbackItHasNoOtherName) {
  const auto server = start();
  for (const char* host : {"evil.example", "evil.example:80", "localhost.evil.example",
                           "127.evil.example", "128.0.0.1", "[::1].evil.example",
                           "localhost:1@evil.example", "localhost:9.evil.example"}) {
    EXPECT_THAT(ask(*server, fmt::format("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", host)),
                StartsWith("HTTP/1.1 403"));
  }
  for (const char* host : {"localhost:9", "127.0.0.1:9", "[::1]:9", "[::1]", "LocalHost", ""}) {
    EXPECT_THAT(
        ask(*server, fmt::format("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", host)),
        StartsWith("HTTP/1.1 200"));
  }
}

// RFC 9112, 3.2.
TEST(HttpServer, ARequestNamesOneHost) {
  const auto server = start();
  for (const char* hosts : {"", "Host: localhost\r\nHost: evil.example\r\n"}) {
    for (const char* target : {"/a", "http://localhost/a"}) {
      EXPECT_THAT(ask(*server,
                      fmt::format("GET {} HTTP/1.1\r\n{}Connection: close\r\n\r\n", target, hosts)),
                  StartsWith("HTTP/1.1 400"));
    }
  }
  EXPECT_THAT(ask(*server, "GET /a HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.0 200"));
}

TEST(HttpServer, ClosesASilentConnection) {
  HttpOptions options;
  options.patience = 50ms;
  const auto server = start(options);
  const Client client(server->ports()[0]);
  client.send("GET / HT");
  EXPECT_EQ(client.rest(), "");  // returns: the server has closed
}

TEST(HttpServer, BoundsItsConnections) {
  HttpOptions options;
  options.most_connections = 3;
  const auto server = start(options);
  std::vector<Client> kept;
  for (int i = 0; i < 3; ++i) {
    kept.emplace_back(server->ports()[0]);
    kept.back().send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(kept.back().until("first\n"), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_EQ(ask(*server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "");
}

TEST(HttpServer, ConnectionsWithoutARequestMakeRoom) {
  HttpOptions options;
  options.most_connections = 3;
  const auto server = start(options);
  std::vector<Client> silent;
  silent.emplace_back(server->ports()[0], "127.0.0.2");  // alone, and the oldest
  silent.back().send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(silent.back().until("accept \n"), StartsWith("HTTP/1.1 200"));
  for (int i = 0; i < 10; ++i) {
    silent.emplace_back(server->ports()[0]);
    silent.back().send("GET / HT");
  }
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_THAT(ask(*server, request), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(silent[1].rest(), "");
  // One of an address that does not crowd out others goes on.
  silent.front().send(request);
  EXPECT_THAT(silent.front().rest(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, KnowsWhichUserChangesSomething) {
  HttpOptions options;
  options.listen = {"127.0.0.1:0"};
  std::string caller;
  const auto server = HttpServer::start(options, [&caller](const HttpRequest& request) {
    caller = request.caller;
    return HttpResponse::text(200, "done\n");
  });
  ASSERT_TRUE(server);
  const std::string rest = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_THAT(ask(**server, "POST /api/v1/windows/a/begin" + rest), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(caller, fmt::format("uid {}", getuid()));
  EXPECT_THAT(ask(**server, "GET /api/v1/windows/a" + rest), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(caller, "");
}

TEST(HttpServer, StreamsWhatIsPublished) {
  HttpOptions options;
  options.most_streams = 1;
  const auto server = start(options);
  {
    const Client client(server->ports()[0]);
    client.send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(client.until("first\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(ask(*server, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                StartsWith("HTTP/1.1 503"));
    // A text that comes before the one sent first was taken is left out: it is published again.
    std::jthread publisher([&server](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        server->publish(std::make_shared<const std::string>("second\n"));
        std::this_thread::sleep_for(1ms);
      }
    });
    EXPECT_EQ(client.until("second\n"), "second\n");
  }
  // Once it is gone there is room for another.
  std::string answer;
  while (!answer.starts_with("HTTP/1.1 200")) {
    const Client client(server->ports()[0]);
    client.send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    answer = client.until("\r\n");
  }
}

TEST(HttpServer, AStreamOutlivesTheTimeOfARequest) {
  HttpOptions options;
  options.patience = 40ms;
  const auto server = start(options);
  const Client stream(server->ports()[0]);
  stream.send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(stream.until("first\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  // A silent connection that began later is closed once its time is over.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Client(server->ports()[0]).rest(), "");
  std::jthread publisher([&server](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      server->publish(std::make_shared<const std::string>("second\n"));
      std::this_thread::sleep_for(1ms);
    }
  });
  EXPECT_EQ(stream.until("second\n"), "second\n");
}

TEST(HttpServer, EndsWithOpenConnections) {
  auto server = start();
  const Client client(server->ports()[0]);
  server.reset();
  EXPECT_EQ(client.rest(), "");
}

TEST(HttpServer, AnAddressInUseIsAnError) {
  const auto server = start();
  HttpOptions options;
  options.listen = server->addresses();
  const auto second = HttpServer::start(options, nullptr);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("cannot listen on " + options.listen[0]));
}

TEST(ListenAddress, HasThreeForms) {
  EXPECT_EQ(parse_listen_address("127.0.0.1:9877")->host, "127.0.0.1");
  EXPECT_EQ(parse_listen_address("localhost:1")->host, "127.0.0.1");
  EXPECT_EQ(parse_listen_address(":9877")->host, "");
  EXPECT_EQ(parse_listen_address(":9877")->port, 9877);
  EXPECT_EQ(parse_listen_address("[::1]:80")->host, "::1");
  for (const char* text : {"", "9877", "::1:80", "a:b", "a:65536", "a:-1", "[]:1", "a:"}) {
    const auto parsed = parse_listen_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::kInvalidArgument);
  }
  HttpOptions options;
  options.listen = {"example.org:1"};
  EXPECT_FALSE(HttpServer::start(options, nullptr));
}

}  // namespace
}  // namespace jouleprof::serve
