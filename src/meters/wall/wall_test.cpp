#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "meters/wall/wall_source.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::meters {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using namespace std::chrono_literals;

TEST(WallSpec, KindKeysAndAddress) {
  const auto spec =
      parse_wall_spec("redfish,error=1.5%,every=2s,mean=10s,ca=/etc/bmc.pem:https://10.0.0.9");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->kind, "redfish");
  EXPECT_EQ(spec->address, "https://10.0.0.9");
  EXPECT_DOUBLE_EQ(spec->gain_error, 0.015);
  EXPECT_EQ(spec->every, 2s);
  EXPECT_EQ(spec->mean_over, Duration{10s});
  EXPECT_EQ(spec->keys.at("ca"), "/etc/bmc.pem");
  const auto command = parse_wall_spec("command:read-meter --port=/dev/tty,1 | tail -1");
  ASSERT_TRUE(command);
  EXPECT_EQ(command->address, "read-meter --port=/dev/tty,1 | tail -1");
  EXPECT_TRUE(parse_wall_spec("ipmi"));
}

TEST(WallSpec, WhatItRefuses) {
  for (const char* text :
       {"", "watts", "shelly", "shelly:", "ipmi:host", "shelly,error=x:plug", "shelly,error:plug",
        "shelly,every=1ms:plug", "shelly,channel=two:plug", "tasmota,channel=-1:plug",
        "shelly,oid=1.2:plug", "redfish,password=1234:https://bmc"}) {
    const auto spec = parse_wall_spec(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, Errc::kInvalidArgument) << text;
  }
  // Neither taken nor repeated.
  const auto secret = parse_wall_spec("redfish:https://admin:hunter2@bmc");
  ASSERT_FALSE(secret);
  EXPECT_THAT(secret.error().message, Not(HasSubstr("hunter2")));
  EXPECT_THAT(secret.error().message, HasSubstr("JOULEPROF_WALL_CREDENTIALS"));
}

TEST(WallAnswers, Redfish) {
  const auto watts = [](const char* text) { return redfish_watts(text).value_or(-1); };
  EXPECT_EQ(watts(R"({"Id":"EnvironmentMetrics","PowerWatts":{"Reading":374.5}})"), 374.5);
  EXPECT_EQ(watts(R"({"PowerWatts":374})"), 374);
  EXPECT_EQ(watts(R"({"InputPowerWatts":{"Reading":410},"OutputPowerWatts":{"Reading":380}})"),
            410);
  EXPECT_EQ(watts(R"({"PowerControl":[{"PowerConsumedWatts":344}],
                      "PowerSupplies":[{"PowerInputWatts":200}]})"),
            344);
  EXPECT_EQ(watts(R"({"PowerSupplies":[{"PowerInputWatts":200.5,"PowerOutputWatts":190},
                                       {"PowerInputWatts":150}]})"),
            350.5);
  // One supply without a figure: the sum would be a part.
  EXPECT_EQ(watts(R"({"PowerSupplies":[{"PowerInputWatts":200},{"PowerInputWatts":null}]})"), -1);
  for (const char* none : {"", "[]", "{}", R"({"PowerWatts":{"Reading":null}})",
                           R"({"PowerWatts":{"Reading":-4}})", R"({"PowerWatts":9e9})"}) {
    EXPECT_EQ(watts(none), -1) << none;
  }
}

TEST(WallAnswers, Plugs) {
  EXPECT_EQ(shelly_watts(R"({"sys":{},"switch:0":{"apower":61.2},"switch:1":{"apower":3}})", 1),
            3.0);
  EXPECT_EQ(shelly_watts(R"({"em:0":{"total_act_power":700.25}})", 0), 700.25);
  EXPECT_EQ(shelly_watts(R"({"meters":[{"power":12.5,"is_valid":true}]})", 0), 12.5);
  EXPECT_FALSE(shelly_watts(R"({"meters":[{"power":12.5}]})", 1));
  EXPECT_FALSE(shelly_watts(R"({"meters":[{"power":0,"is_valid":false}]})", 0));
  EXPECT_FALSE(shelly_watts(R"({"switch:0":{"output":true}})", 0));
  EXPECT_EQ(tasmota_watts(R"({"StatusSNS":{"ENERGY":{"Power":88}}})", 0), 88.0);
  EXPECT_EQ(tasmota_watts(R"({"StatusSNS":{"ENERGY":{"Power":[88,9]}}})", 1), 9.0);
  EXPECT_FALSE(tasmota_watts(R"({"StatusSNS":{"ENERGY":{"Power":88}}})", 1));
  EXPECT_FALSE(tasmota_watts(R"({"Command":"Unknown"})", 0));
}

TEST(WallAnswers, Dcmi) {
  // 0x0154 W; the last byte says that the BMC measures.
  std::string bytes("\x00\xdc\x54\x01\x20\x00\x90\x02\x30\x01", 10);
  bytes += std::string("\x11\x22\x33\x44\xe8\x03\x00\x00\x40", 9);
  const auto reading = parse_dcmi_answer(bytes);
  ASSERT_TRUE(reading) << reading.error().message;
  EXPECT_EQ(reading->power, Power::watts(340));
  EXPECT_EQ(parse_dcmi_answer(std::string(bytes).replace(2, 2, "\xff\xff")).error().code,
            Errc::kUnavailable);
  bytes[18] = 0;
  EXPECT_EQ(parse_dcmi_answer(bytes).error().code, Errc::kUnavailable);
  EXPECT_EQ(parse_dcmi_answer(bytes.substr(0, 18)).error().code, Errc::kCorrupt);
  EXPECT_EQ(parse_dcmi_answer("").error().code, Errc::kCorrupt);
  EXPECT_EQ(parse_dcmi_answer("\xc1").error().code, Errc::kUnsupported);
  EXPECT_EQ(parse_dcmi_answer("\xc0").error().code, Errc::kUnavailable);
  EXPECT_EQ(parse_dcmi_answer("\xc3").error().code, Errc::kTimeout);
  EXPECT_EQ(parse_dcmi_answer("\xd4").error().code, Errc::kPermissionDenied);
  EXPECT_EQ(parse_dcmi_answer("\x93").error().code, Errc::kUnsupported);
  EXPECT_THAT(parse_dcmi_answer("\xcb").error().message,
              AllOf(HasSubstr("no sensor"), HasSubstr("0xcb")));

  const auto text = parse_dcmi_text(
      "Current Power                        : 164 Watts\n"
      "Minimum Power over sampling duration : 8 watts\n"
      "Power Measurement                    : Active\n");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->power, Power::watts(164));
  EXPECT_FALSE(parse_dcmi_text("ipmi-dcmi: command unsupported\n"));
  for (const char* none : {"Current Power : 0 Watts\nPower Measurement : Not Available\n",
                           "Current Power : 65535 Watts\nPower Measurement : Active\n"}) {
    const auto refused = parse_dcmi_text(none);
    ASSERT_FALSE(refused) << none;
    EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  }
}

TEST(ShellTool, AnswersErrorsAndHangingCommands) {
  auto tool = ShellTool::start("echo warning >&2; echo one; echo two", 5s);
  ASSERT_TRUE(tool);
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*tool)->run().value_or("?"), "one\ntwo");

  tool = ShellTool::start("echo part; echo 'no such meter' >&2; exit 3", 5s);
  ASSERT_TRUE(tool);
  const auto failed = (*tool)->run();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kUnavailable);
  EXPECT_THAT(failed.error().message, HasSubstr("status 3"));

  TempTree tree;
  const std::string flag = (tree / "first").string();
  tool = ShellTool::start("if mkdir " + flag + "; then sleep 60; fi; echo 7", 2s);
  ASSERT_TRUE(tool);
  const auto late = (*tool)->run();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::kTimeout);
  EXPECT_EQ((*tool)->run().value_or("?"), "7");  // the next is not the last one's
}

TEST(ShellTool, AdoptsWhatItsCommandLeavesRunning) {
  int before = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &before);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // as the tool does: its orphans are the command's
  auto tool = ShellTool::start("sleep 60 >/dev/null 2>&1 & echo $!", 5s);
  ASSERT_TRUE(tool) << tool.error().message;
  const auto left = (*tool)->run();
  ASSERT_TRUE(left) << left.error().message;
  std::ifstream stat("/proc/" + *left + "/stat");
  std::string pid, name, state;
  pid_t parent = 0;
  stat >> pid >> name >> state >> parent;
  EXPECT_EQ(pid, *left);
  EXPECT_NE(parent, ::getpid());
  ::kill(std::stoi(*left), SIGKILL);
  ::prctl(PR_SET_CHILD_SUBREAPER, before);
}

TEST(WallMeter, IsADomainThatContainsTheRest) {
  TempTree tree{{"watts", "123.5 W\n"}};
  const std::string file = (tree / "watts").string();
  auto meter = WallMeter::open({.spec = "command,error=1,mean=2s:cat " + file});
  ASSERT_TRUE(meter) << meter.error().message;
  ASSERT_THAT((*meter)->domains(), SizeIs(1));
  EXPECT_EQ((*meter)->domains()[0].kind, model::DomainKind::kPlatform);
  EXPECT_EQ((*meter)->domains()[0].device, "wall");
  EXPECT_EQ((*meter)->domains()[0].name, "Wall meter (command)");  // it may hold a secret
  ASSERT_THAT((*meter)->sensors(), SizeIs(1));
  EXPECT_EQ((*meter)->sensors()[0].traits.scale.gain_half(), 0.01);
  EXPECT_EQ((*meter)->sensors()[0].traits.window, Duration{2s});
  EXPECT_EQ((*meter)->probes()[0].period, 1s);
  model::Readings out;
  (*meter)->read(0, out);
  tree.write("watts", "0.25\n");
  (*meter)->read(0, out);
  ASSERT_THAT(out.powers, SizeIs(2));
  EXPECT_EQ(out.powers[0].power, Power::watts(123.5));
  EXPECT_EQ(out.powers[1].power, Power::watts(0.25));
  out.clear();
  tree.write("watts", "230 V, 5 A, 1100 W");
  (*meter)->read(0, out);
  ASSERT_THAT(out.powers, SizeIs(1));
  EXPECT_EQ(out.powers[0].power, Power::watts(1100));
  for (const char* bad : {"-3", "nothing", "", "2000000", "1.2 kW", "400000 mW", "12 kWh"}) {
    out.clear();
    tree.write("watts", bad);
    (*meter)->read(0, out);
    EXPECT_THAT(out.powers, IsEmpty()) << bad;
    EXPECT_THAT(out.failures, SizeIs(1)) << bad;
  }
}

TEST(WallMeter, OneThatComesLaterIsReadFromThenOn) {
  const TempTree tree;
  const std::string file = tree / "meter";
  auto meter = WallMeter::open({.spec = "command:cat " + file});
  ASSERT_TRUE(meter) << meter.error().message;
  ASSERT_TRUE((*meter)->absent());
  model::Readings readings;
  tree.write("meter", "400");
  (*meter)->read(0, readings);
  ASSERT_EQ(readings.failures.size(), 1);  // why there was no first reading
  EXPECT_EQ(readings.failures[0].error, *(*meter)->absent());
  (*meter)->read(0, readings);
  ASSERT_EQ(readings.powers.size(), 1);
  EXPECT_EQ(readings.powers[0].power, Power::watts(400));
}

TEST(WallMeter, SnmpByTheToolOfThatName) {
  TempTree tree;
  tree.write("snmpget", "#!/bin/sh\necho \"$*\" > " + (tree / "asked").string() + "\necho 42\n");
  std::filesystem::permissions(tree / "snmpget", std::filesystem::perms::owner_all);
  const std::string before = std::getenv("PATH");
  ::setenv("PATH", (tree.root().string() + ":" + before).c_str(), 1);
  auto meter = WallMeter::open({.spec = "snmp,oid=1.3.6.1.4.1.318.1.1.26.4.3.1.5.1,unit=10:pdu-7"});
  ::setenv("PATH", before.c_str(), 1);
  ASSERT_TRUE(meter) << meter.error().message;
  model::Readings out;
  (*meter)->read(0, out);
  ASSERT_THAT(out.powers, SizeIs(1));
  EXPECT_EQ(out.powers[0].power, Power::watts(420));
  std::ifstream asked(tree / "asked");
  std::string line;
  std::getline(asked, line);
  EXPECT_EQ(line, "-Oqv -t 3 -r 0 pdu-7 1.3.6.1.4.1.318.1.1.26.4.3.1.5.1");
  for (const char* spec : {"snmp:pdu", "snmp,oid=1;reboot:pdu", "snmp,oid=1.2:a'b",
                           "snmp,oid=1.2,unit=x:pdu", "snmp,oid=1.2:-v1"}) {
    EXPECT_FALSE(WallMeter::open({.spec = spec})) << spec;
  }
}

}  // namespace
}  // namespace jouleprof::meters
