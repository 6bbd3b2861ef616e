#include <crypt.h>
#include <gtest/gtest.h>

#include <memory>

#include "apps/serve/web_security.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::serve {
namespace {

using Verdict = BasicAuth::Verdict;

std::string hash_of(const char* password) {
  const auto work = std::make_unique<crypt_data>();
  return crypt_rn(password, "$2y$04$abcdefghijklmnopqrstuu", work.get(), sizeof(crypt_data));
}

constexpr const char* kAnn = "Basic YW5uOnNlY3JldA==";    // ann:secret
constexpr const char* kOther = "Basic YW5uOnNlY3JldDE=";  // ann:secret1
constexpr const char* kBob = "Basic Ym9iOnNlY3JldA==";    // bob:secret

TEST(BasicAuth, ChecksNameAndPassword) {
  const BasicAuth auth({{"ann", hash_of("secret")}});
  EXPECT_TRUE(auth.verify(kAnn));
  EXPECT_TRUE(auth.verify("bAsIC  YW5uOnNlY3JldA=="));
  EXPECT_FALSE(auth.verify(kOther));
  EXPECT_FALSE(auth.verify(kBob));
}

TEST(BasicAuth, NamesWhoAsks) {
  EXPECT_EQ(BasicAuth::user_in(kBob), "bob");
  EXPECT_EQ(BasicAuth::user_in("Bearer x"), "");
}

TEST(WebSecurity, ALimitOfRequestsFillsUpAgain) {
  const TempTree tree{{"web.yml", "rate_limit:\n  interval: 2s\n  burst: 3\n"}};
  const auto security = WebSecurity::open(tree / "web.yml");
  ASSERT_TRUE(security) << security.error().message;
  HostTime now{std::chrono::hours{1}};
  const auto admitted = [&] {
    int n = 0;
    while (n < 100 && (*security)->admits(now)) ++n;
    return n;
  };
  EXPECT_EQ(admitted(), 3);
  now += std::chrono::seconds{4};
  EXPECT_EQ(admitted(), 2);
  now += std::chrono::hours{1};
  EXPECT_EQ(admitted(), 3);
}

TEST(UserOfConnection, IsReadFromTheKernelsTable) {
  const TempTree tree{
      {"tcp",
       "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
       "   0: 0100007F:2695 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0   0 7\n"
       "   1: 0100007F:C350 0100007F:2695 01 00000000:00000000 00:00000000 00000000  1000   0 "
       "8\n"}};
  EXPECT_EQ(user_of_connection("0100007F:C350", "0100007F:2695", tree / "tcp"), 1000u);
  EXPECT_EQ(user_of_connection("0100007F:2695", "0100007F:C350", tree / "tcp"), 0u);
  EXPECT_EQ(user_of_connection("0100007F:C351", "0100007F:2695", tree / "tcp"), std::nullopt);
  EXPECT_EQ(user_of_connection("0100007F:C350", "0100007F:2695", tree / "none"), std::nullopt);
}

TEST(BasicAuth, RemembersWhatWasCorrect) {
  BasicAuth auth({{"ann", hash_of("secret")}});
  EXPECT_EQ(auth.verdict(kAnn), Verdict::kUnknown);
  auth.remember(kAnn);
  EXPECT_EQ(auth.verdict(kAnn), Verdict::kAllowed);
  EXPECT_EQ(auth.verdict(kOther), Verdict::kUnknown);
}

TEST(BasicAuth, DeniesWhatIsNoCredential) {
  const BasicAuth auth({{"ann", hash_of("secret")}});
  for (const char* header :
       {"", "Basic", "Basic ", "Bearer YW5uOnNlY3JldA==", "Basic YW5uOnNlY3JldA",
        "Basic ====", "Basic !!!!", "Basic YW5u", "Basic YW5uOnMAYQ=="}) {
    EXPECT_EQ(auth.verdict(header), Verdict::kDenied) << header;
    EXPECT_FALSE(auth.verify(header)) << header;
  }
  EXPECT_EQ(auth.verdict("Basic " + std::string(4000, 'A')), Verdict::kDenied);
}

TEST(BasicAuth, WithoutUsersNothingIsAsked) {
  EXPECT_EQ(BasicAuth({}).verdict(""), Verdict::kAllowed);
}

}  // namespace
}  // namespace jouleprof::serve
