// The constants of EnergyTimeline's intervals, with the source of each.
//
// "Model": from the simulated sensors of the tests next to this file, whose truth is known.
// "H100", "H200": measured on that board; docs/validation.md has the tables. A constant with
// neither is a bound that follows from the sensor's definition.
#pragma once

namespace jouleprof::analysis {

struct ErrorModel {
  double normal95 = 1.96;

  // Time, in parts of a sample's window, at which power changed. Model, bursts of 10 to 500 ms.
  double placed_by_samples = 0.12;
  double placed_at_mark = 0.03;
  double placed_at_mark_lagged = 0.07;  // with a first-order lag: H200, bursts of 50 and 100 ms

  // Seconds: the window of a moving average that does not say it. Chosen: twice that of
  // NVML's average.
  double unknown_window = 2;

  // A window shorter than a sample's: parts of (sample's window - length) x swing. Model.
  double hidden_pulse = 0.6;
  double hidden_pulse_lagged = 1.2;
  double hidden_pulse_lagged_marked = 0.75;  // H200, bursts of 10 ms

  // Parts of the energy. Noise and scale: closure of counter and samples on an H100 and H200 is
  // within 0.1 to 0.4 % (square waves, steady loops, a mix).
  double sample_noise = 0.005;
  double scale = 0.01;
  double unseen_time = 0.03;     // model, random loads on sensors that see 25 to 50 % of the time
  double between_anchors = 0.1;  // model, a counter alone
  double beyond_anchors = 0.5;   // any power between zero and twice the mean
  double beyond_data = 0.5;

  // Differences of counter and samples below this part of the energy are no contradiction: five
  // times the closure measured on an H100 and H200.
  double closure = 0.02;

  // Seconds. An update is seen up to 16 ms (H100) or 28 ms (H200) after it was due, at a period of
  // 100 ms.
  double latest_visible = 0.028;
  double finest_phase = 0.0005;  // no edge is known better: the spread of fitted phases, H200
  // A counter whose value is older than this many periods does not count any more.
  double frozen_periods = 1.25;

  // Samples of a board with a power limit: it is a mean over longer. H100 at its limit of 700 W:
  // the highest of 1,642 samples, means over 25 ms, is 885 W, 1.26 times the limit.
  double most_of_limit = 1.6;

  // A load at a fixed rate. A sample pattern that recurs with this correlation is locked to the
  // sensor, and its errors add linearly. Model: random loads stay below it.
  double recurs_from = 0.5;
  double recurs_surely = 0.75;
  // Of the time: a board that is busy for less or more is not half idle. NVML rounds to percents.
  double idle_below = 0.03;
  double busy_above = 0.97;
  // Below, constant power contradicts the utilisation, and the board may draw more in between.
  double mostly_busy = 0.9;
  // Mean step between samples that are one value, of their mean.
  double one_value = 0.05;
  double flat_range = 0.6;  // of their mean: the range of samples that do not show the pauses
  // Of the steps' bound: a sample's window can hold part of an edge. Model.
  double locked_edges = 1.3;
  // Pauses that samples do not show blur the ends of an interval by this part of window + spacing.
  double blurred_end = 0.3;
  double short_seconds = 0.2;  // below, few samples show a load's shape: model, 50 to 200 ms
  double short_factor = 2.75;  // of what both ends leave open
};

inline constexpr ErrorModel kErrors;

}  // namespace jouleprof::analysis
