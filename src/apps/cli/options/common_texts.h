// Options that several verbs have: one text each.
#pragma once

#include "apps/cli/options/option_table.h"

namespace jouleprof::cli {

inline constexpr OptionText kJson{"--json", "",
                                  "write JSON to stdout (docs/json.md) instead of text"};
inline constexpr OptionText kDevices{"-i,--devices", "LIST",
                                     "these GPUs only, by index or UUID: several with commas; "
                                     "default: all, of a command those that it sees",
                                     "JOULEPROF_DEVICES"};
inline constexpr OptionText kCpuTdp{
    "--cpu-tdp", "WATTS",
    "the CPU's thermal design power, for its estimate: that of this machine's share",
    "JOULEPROF_CPU_TDP"};
inline constexpr OptionText kGuestFile{
    "--guest-file", "FILE",
    "in a virtual machine: the share of the host's energy, which `serve --guest` on the host "
    "writes to FILE, instead of RAPL"};
inline constexpr OptionText kWallMeter{
    "--wall-meter", "SPEC",
    "also read a meter at the machine's supply: ipmi, redfish:https://BMC, snmp,oid=OID:HOST, "
    "shelly:HOST, tasmota:HOST or command:COMMAND that prints watts (docs/measurement.md)",
    "JOULEPROF_WALL_METER"};
inline constexpr OptionText kNoService{
    "--no-service", "",
    "read the sensors here, even if a service shares its own (docs/metrics.md); as with --cpu-tdp"};
inline constexpr OptionText kForce{"-f,--force", "",
                                   "overwrite files that exist; run: once the command has started"};
inline constexpr OptionText kRedact{"--redact", "",
                                    "of pages and figures: leave out the command line and the "
                                    "names of files, folders, hosts and processes"};
inline constexpr OptionText kPerUnits{
    "--per", "N:UNIT",
    "the work is N units, such as 22600:inference; also print energy and costs of one"};
inline constexpr OptionText kWholeMachine{
    "--whole-machine", "",
    "quote the energy of all devices, also in costs and units, instead of the command's"};
inline constexpr OptionText kDetails{"--details", "",
                                     "also print levels, balance, own cost, all findings"};
inline constexpr OptionText kReadMemory{"--no-memory", "",
                                        "ignore the power of kernels that earlier runs found"};
inline constexpr OptionText kRun{"--run", "N", "recording N of a sweep or a merged file"};
inline constexpr OptionText kFrom{"--from", "TIME",
                                  "only the part after this time since the start; such as 90s"};
inline constexpr OptionText kTo{"--to", "TIME", "only the part before this time since the start"};
inline constexpr OptionText kPrice{
    "--price", "PRICE",
    "also print the cost at a price such as 0.30/kWh; '0.30 EUR/kWh' names the currency"};
inline constexpr OptionText kCarbon{"--carbon", "GRAMS",
                                    "also print the CO2e at grams per kWh such as 230; or at those "
                                    "of Electricity Maps' CSV of a zone"};
inline constexpr OptionText kCarbonNumber{"--carbon", "GRAMS",
                                          "also print the CO2e at grams per kWh such as 230"};
inline constexpr OptionText kPue{"--pue", "RATIO",
                                 "with these: power usage effectiveness, the energy of the whole "
                                 "site for one joule of its machines"};
inline constexpr OptionText kPython{
    "--python", "PATH",
    "the Python that has jouleprof (default: that of this package, else python3)",
    "JOULEPROF_PYTHON"};
inline constexpr OptionText kSeqLength{"-s,--seq-length", "N",
                                       "tokens of each sequence (default 128)"};
inline constexpr OptionText kMode{
    "--mode", "MODE",
    "eager, compile, graph, train or generate; eager is the default, compile is torch.compile, "
    "graph a CUDA graph; of generate, prefill and decode are measured apart"};
inline constexpr OptionText kNewTokens{"--new-tokens", "N",
                                       "tokens of each answer of --mode generate (default 128)"};
inline constexpr OptionText kDtype{
    "--dtype", "TYPE",
    "float32, float16, bfloat16, amp or amp-bfloat16; amp is autocast to float16. Default on a "
    "GPU: amp; train: amp-bfloat16; generate: bfloat16. On a CPU: float32"};
inline constexpr OptionText kDevice{"--device", "DEVICE",
                                    "such as cuda:1 or cpu; default: the first GPU, else the CPU"};
inline constexpr OptionText kMinTime{"--min-time", "TIME", "measure at least so long (default 3s)"};
inline constexpr OptionText kMaxWarmUp{
    "--max-warm-up", "TIME",
    "give up waiting for a steady state after TIME (default 15s); the result then says NOT STEADY"};
inline constexpr OptionText kObjective{
    "--objective", "WHAT",
    "energy, edp, ed2p, cost or time; energy is the default, edp is energy x time, ed2p energy x "
    "time^2, cost eta x energy + (1 - eta) x highest limit x GPUs x time"};
inline constexpr OptionText kEta{"--eta", "X",
                                 "weight of energy in cost, from 0 to 1; default 0.5"};
inline constexpr OptionText kMaxSlowdown{
    "--max-slowdown", "P",
    "only settings at most P slower, such as 5%: than the reference, with a probability of 95 %"};
inline constexpr OptionText kMaxPower{
    "--max-power", "W", "only settings with at most this mean power, with a probability of 95 %"};
inline constexpr OptionText kShared{"--shared", "",
                                    "also set GPUs that others use, or that MIG divides"};

}  // namespace jouleprof::cli
