#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/serve/pages.h"

namespace jouleprof::serve {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Api : public testing::Test {
 protected:
  HttpResponse ask(const std::string& method, const std::string& path, bool may_change = true) {
    HttpRequest request;
    request.method = method;
    request.path = "/api/v1/windows/" + path;
    request.received = now;
    request.may_change = may_change;
    EXPECT_TRUE(WindowApi::is_for(request));
    return api.respond(request);
  }

  HostTime now{1h};
  session::MachineWindows windows;
  WindowApi api{windows, [](const analysis::MachineWindow& window) {
                  return window.name + (window.end ? " ended" : " open");
                }};
};

TEST_F(Api, WindowsBeginAndEnd) {
  const auto begun = ask("POST", "epoch/begin");
  EXPECT_EQ(begun.status, 201u);
  EXPECT_EQ(begun.type, "application/json");
  EXPECT_EQ(*begun.body, "epoch open");
  EXPECT_TRUE(begun.is_final);
  EXPECT_TRUE(ask("GET", "epoch").is_final);
  now += 1s;
  const auto ended = ask("POST", "epoch/end");
  EXPECT_EQ(ended.status, 200u);
  EXPECT_FALSE(ended.is_final);  // its energy is not known yet
  analysis::LiveEnergy none({}, {}, 10s);
  windows.settle(now, none);
  EXPECT_TRUE(ask("POST", "epoch/end").is_final);
  EXPECT_EQ(*ask("GET", "epoch").body, "epoch ended");
}

TEST_F(Api, ErrorsHaveTheirStatus) {
  EXPECT_EQ(ask("POST", "epoch/end").status, 404u);
  EXPECT_EQ(ask("GET", "epoch").status, 404u);
  EXPECT_EQ(ask("POST", "a%20b/begin").status, 400u);
  EXPECT_EQ(ask("POST", "/begin").status, 400u);
  EXPECT_EQ(ask("GET", "epoch/begin").status, 405u);
  EXPECT_EQ(ask("POST", "epoch").status, 405u);
  EXPECT_EQ(ask("POST", "epoch/begin/now").status, 404u);
  EXPECT_EQ(ask("POST", "epoch/begin").status, 201u);
  EXPECT_EQ(ask("POST", "epoch/begin").status, 409u);
}

TEST_F(Api, OthersMayNotUseIt) {
  const auto refused = ask("POST", "epoch/begin", false);
  EXPECT_EQ(refused.status, 403u);
  EXPECT_THAT(*refused.body, HasSubstr("--web.config.file"));
  EXPECT_EQ(ask("GET", "epoch", false).status, 403u);
  EXPECT_FALSE(windows.find("epoch"));
}

}  // namespace
}  // namespace jouleprof::serve
