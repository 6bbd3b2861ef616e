#include "apps/serve/web_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
      {tls + "  cipher_suites: [X]\n", "is not supported"},
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
