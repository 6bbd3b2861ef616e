#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/serve/web_security.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::serve {
namespace {

using testing::HasSubstr;

const std::string kHash = "$2y$10$wGjB6nJ2i7gV0d1oJmBRUe7rXG1TTkX0zUZuSnZq5n0s4sJk3mFCK";

Result<WebConfig> read(const std::string& text) {
  const TempTree tree{{"web.yml", text}};
  return read_web_config(tree / "web.yml");
}

TEST(WebConfig, ReadsAllKeys) {
  const TempTree tree{{"web.yml",
                       "tls_server_config:\n  cert_file: a.crt\n  key_file: /b.key\n"
                       "  client_ca_file: ca.crt\n  client_auth_type: RequireAndVerifyClientCert\n"
                       "  min_version: TLS13\nhttp_server_config:\n  http2: false\n  headers:\n"
                       "    X-Frame-Options: deny\nbasic_auth_users:\n  ann: " +
                           kHash + "\n"}};
  const auto config = read_web_config(tree / "web.yml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->tls->certificate, tree / "a.crt");
  EXPECT_EQ(config->tls->key, "/b.key");
  EXPECT_EQ(config->tls->client_authority, tree / "ca.crt");
  EXPECT_EQ(config->tls->client_auth, ClientAuth::kRequireAndVerify);
  EXPECT_FALSE(config->tls->allows_1_2);
  EXPECT_TRUE(config->tls->allows_1_3);
  EXPECT_EQ(config->users.at("ann"), kHash);
  ASSERT_EQ(config->headers.size(), 1u);
  EXPECT_EQ(config->headers[0].second, "deny");
}

TEST(WebConfig, ReadsCiphersCurvesAndLimits) {
  const auto config = read(
      "tls_server_config:\n  cert_file: a\n  key_file: b\n"
      "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]\n"
      "  curve_preferences: [X25519, CurveP384]\n  prefer_server_cipher_suites: true\n"
      "rate_limit:\n  interval: 1m0.5s\n  burst: 20\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->tls->cipher_suites,
            (std::vector<std::string>{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                                      "TLS_AES_128_GCM_SHA256"}));
  EXPECT_EQ(config->tls->curves, (std::vector<std::string>{"X25519", "P-384"}));
  ASSERT_TRUE(config->rate_limit);
  EXPECT_EQ(config->rate_limit->interval, std::chrono::milliseconds{60'500});
  EXPECT_EQ(config->rate_limit->burst, 20);
  // As the toolkit has it: an interval of 0 is no limit.
  EXPECT_FALSE(read("rate_limit:\n  interval: 0\n  burst: 1\n")->rate_limit);
}

TEST(WebConfig, AnEmptyFileAsksForNothing) {
  const auto config = read("");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_FALSE(config->tls);
  EXPECT_TRUE(config->users.empty());
}

TEST(WebConfig, ErrorsNameTheKey) {
  const std::string tls = "tls_server_config:\n  cert_file: a\n  key_file: b\n";
  const std::pair<std::string, std::string> cases[] = {
      {"tls: 1\n", "'tls' is unknown"},
      {"- a\n", "must be a mapping"},
      {"a: [\n", "is no YAML"},
      {"tls_server_config:\n  key_file: b\n", "'tls_server_config.cert_file' is missing"},
      {"tls_server_config:\n  cert_file: b\n", "'tls_server_config.key_file' is missing"},
      {tls + "  client_auth_type: Maybe\n", "none of the toolkit's types"},
      {tls + "  client_auth_type: RequireAndVerifyClientCert\n", "client_ca_file' is missing"},
      {tls + "  min_version: TLS10\n", "must be TLS12 or TLS13"},
      {tls + "  min_version: TLS13\n  max_version: TLS12\n", "is below min_version"},
      {tls + "  cipher_suites: X\n", "'tls_server_config.cipher_suites' must be a list"},
      {tls + "  curve_preferences: [P9]\n", "curve_preferences' has the unknown 'P9'"},
      {tls + "  client_allowed_sans: [X]\n", "is not supported"},
      {"rate_limit:\n  interval: 1min\n  burst: 1\n", "'rate_limit.interval' must be a time"},
      {"rate_limit:\n  interval: -1s\n  burst: 1\n", "'rate_limit.interval' must be a time"},
      {"rate_limit:\n  interval: 1s\n", "'rate_limit.burst' must be at least 1"},
      {"rate_limit:\n  burst: 1.5\n", "'rate_limit.burst' must be a whole number"},
      {"rate_limit:\n  every: 1s\n", "'rate_limit.every' is unknown"},
      {tls + "  cert: inline\n", "is not supported"},
      {tls + "  other: 1\n", "'tls_server_config.other' is unknown"},
      {"basic_auth_users:\n  ann: secret\n", "'basic_auth_users.ann' is no bcrypt hash"},
      {"basic_auth_users: ann\n", "must be a mapping"},
      {"http_server_config:\n  headers:\n    Server: x\n", "cannot be set"},
      {"http_server_config:\n  headers:\n    X-Frame-Options: \"a\\nb\"\n", "has a line break"},
      {"http_server_config:\n  port: 1\n", "'http_server_config.port' is unknown"},
  };
  for (const auto& [text, message] : cases) {
    const auto config = read(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(config.error().message, HasSubstr(message)) << text;
  }
  EXPECT_EQ(read_web_config("/nonexistent/web.yml").error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace jouleprof::serve
