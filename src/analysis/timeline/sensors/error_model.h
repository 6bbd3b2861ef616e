// Every constant of the 95 % intervals that does not follow from a sensor's definition, with its
// source. All boards that were measured are of the Hopper generation; others may differ.
//
// Sources. "H100", "H200": measured on that board with driver 580.159.04, in 2026;
// docs/validation.md and docs/measurement.md have the tables. "Model": chosen so that simulated
// sensors and loads of known truth are covered, by tests/coverage and the tests of this folder.
// "Definition": a bound that follows from what the quantity is. "Chosen": none of these.
#pragma once

namespace jouleprof::analysis {

struct ErrorModel {
  double normal95 = 1.96;

  // Exponent by which the active power of kernels grows with the SM clock, and what one kernel's
  // may be off, one sigma. H100, 28 Nov: 12 kernels at 1.4 to 2 GHz, 0.8 to 4.
  double power_of_clock = 2.2;
  double power_of_clock_sigma = 0.9;
  double power_of_clock_mean = 0.5;  // the same of several kernels together: the mean of three
  // The exponent where it is known by which power x of the clock a launch becomes shorter, from 0
  // of one that waits for memory to 1: least + grows x^2, and one sigma: sigma + sigma_grows x^2.
  // The same kernels; of eight others on an H200, 28 Nov, power was within 4 %.
  double clock_least = 1;
  double clock_grows = 2.2;
  double clock_sigma = 0.2;
  double clock_sigma_grows = 0.3;
  // One sigma of what else may make times of a launch at two clocks differ, such as warm caches.
  // Chosen.
  double clock_launch = 0.015;

  // --- Energy of a time: EnergyTimeline ---

  // Time, in parts of a sample's window, at which power changed. Model, bursts of 10 to 500 ms.
  double placed_by_samples = 0.12;
  double placed_at_mark = 0.03;
  // With a first-order lag: H200, 21 Nov, bursts of 50 and 100 ms ("bursts of work").
  double placed_at_mark_lagged = 0.07;

  // Seconds by which a driver's buffer may show all of it late. H100, one board: 0 to 5 ms.
  double late = 1.5e-3;
  // For steps that have one place among all samples, up to 1.5 ms. Model: steps of 0.5 s, means
  // over 25 ms every 20 ms.
  double late_by_place = 0.9e-3;
  // How far a change between two samples' windows is out of place, in parts of the time between
  // them: it shows as a slope. Definition.
  double unseen_edge = 0.5;

  // Parameters of the fit of power to samples. `jitter`: error of a sample due to timestamp jitter,
  // of the step between its neighbours. `noise` and `jump`: changes of power that are noise, and
  // those usual at a mark, of the highest power.
  struct Fit {
    double jitter, noise, jump;
  };
  Fit plain_mean{0.056, 0.005, 0.5};  // model, bursts of 10 to 500 ms
  Fit lagged{0.1, 0.04, 2.0};         // H200, 21 Nov, bursts of 10 to 100 ms: short windows

  // Seconds: the window of a moving average that does not say it. Chosen: twice that of
  // NVML's average.
  double unknown_window = 2;

  // A window shorter than a sample's: parts of (sample's window - length) x swing. Model.
  double hidden_pulse = 0.6;
  double hidden_pulse_lagged = 1.2;
  double hidden_pulse_lagged_marked = 0.75;  // H200, 21 Nov, bursts of 10 ms

  // Parts of the energy. Noise and scale: closure of counter and samples is within 0.1 to 0.4 %
  // (H100 and H200, 21 and 22 Nov: square waves, steady loops, a mix).
  double sample_noise = 0.005;
  double scale = 0.01;
  double unseen_time = 0.03;  // model, random loads on sensors that see 25 to 50 % of the time
  // The least mean change between samples of such a load, in parts of their mean, and how many
  // samples show that it is none. Model, the same loads; boards in steps of seconds against a meter
  // (A5000, K40m).
  double unsteady_step = 0.2;
  double steady_samples = 20;
  double between_anchors = 0.1;  // model, a counter alone
  double beyond_anchors = 0.5;   // definition: any power between zero and twice the mean
  double beyond_data = 0.5;      // definition, likewise

  // How wrong a stamp may be, in parts of the time between two. Model; stamps that are late by up
  // to half of it (H100 and H200, 26 Nov) are mended before.
  double stamp_noise = 0.2;

  // Differences of counter and samples below this part of the energy are no contradiction: five
  // times the closure measured on an H100 and H200.
  double closure = 0.02;

  // Seconds. An update is seen up to 16 ms (H100) or 28 ms (H200, both 21 Nov) after it was due, at
  // a period of 100 ms.
  double latest_visible = 0.028;
  double finest_phase = 0.0005;   // no edge is known better: the spread of fitted phases, H200
  double longest_phase = 0.004;   // of a phase that is followed, seconds on either side; chosen
  double clock_drift = 3e-5;      // of the device's clock against the host's; chosen
  double increment_noise = 0.02;  // of a counter's increment against its samples; chosen
  double increment_least = 0.01;  // of the energy of one period; chosen
  // Definition: a counter whose value is older than this many periods does not count any more.
  double frozen_periods = 1.25;

  // Samples of a board with a power limit: it is a mean over longer. H100 at its limit of 700 W,
  // 25 Nov: the highest of 1,642 samples, means over 25 ms, is 885 W, 1.26 times the limit.
  double most_of_limit = 1.6;
  double most_of_idle = 10;  // times: what a board of unknown limit draws at most; chosen

  // A load at a fixed rate. A sample pattern that recurs with this correlation is locked to the
  // sensor, and its errors add linearly. Model: random loads stay below it.
  double recurs_from = 0.5;
  double recurs_surely = 0.75;
  // A board that is busy for less or more of the time is not half idle. NVML rounds to percents.
  double idle_below = 0.03;
  double busy_above = 0.97;
  // Below, constant power contradicts the utilisation, and the board may draw more in between.
  // Chosen.
  double mostly_busy = 0.9;
  // Samples whose windows hold more of the time see all phases of a load. Of the energy: a smaller
  // error by a lock is none; of traced kernels, whose phases are known. Both chosen.
  double locked_seen = 0.7;
  double least_locked = 0.02;
  double least_locked_kernels = 0.01;
  // Relative standard deviation of power above rest: samples that do not vary. Chosen.
  double flat_samples = 0.01;
  // Mean step between samples that are one value, of their mean. Model.
  double one_value = 0.05;
  // The mean change of samples, in parts of their range, where they drift from phase to phase.
  // A100, a square wave of 104 ms against a meter. And what a busy share that is rounded to
  // percents leaves open, in parts of the range of power. Chosen.
  double drifting_step = 0.15;
  double beat_power = 0.02;
  double flat_range = 0.6;  // of their mean: the range of samples that do not show the pauses
  // A factor of the steps' bound: a sample's window can hold part of an edge. Model.
  double locked_edges = 1.3;
  // Pauses that samples do not show blur the ends of an interval by this part of window + spacing.
  // Model.
  double blurred_end = 0.3;
  double short_seconds = 0.2;  // below, few samples show a load's shape: model, 50 to 200 ms
  double short_factor = 2.75;  // of what both ends leave open; model
  // Fewer samples than these do not show how power varied between them. Model, work of 30 to 200 ms
  // on sensors that see 25 of 100 ms. In that case the range of so many on either side counts.
  double few_samples = 4;
  double samples_around = 20;

  // --- Levels of a board's power ---

  // What power at rest may still have to fall, in watts a second and of the power, and how far
  // above the lowest it may lie. Chosen.
  double fall_watts = 0.5;
  double fall_ratio = 0.005;
  double above_ratio = 0.02;
  double above_watts = 1;
  double cooling = 4;  // seconds: time constant of power after a context ended; chosen
  // Half of the interval of a held level, in watts: of one or two readings, and at least. Chosen.
  double few_error = 3;
  double least_error = 1;
  // Steady power differs by no more within 0.3 s. Chosen.
  double steady_watts = 3;
  double steady_ratio = 0.03;
  double after_alone = 0.1;  // of the idle power of a processor, known after the work only; chosen

  // --- Who used a board ---

  // How much more a program may draw than another in the same time. H100, 25 Nov: looped operators
  // drew 60 to 590 W above the held level, most of them 150 to 450 W; programs mix them.
  double watts_ratio = 3;
  // A machine's own processes stay below this part of a processor's or memory's energy. Chosen.
  double used_by_others = 0.1;
  // The board's own utilisation above the sum of its processes'. H100, 25 Nov: one at full load had
  // 95 %, its process 83 %.
  double utilisation = 0.15;

  // --- Power of kernels (standard deviations, unless it says otherwise) ---

  // The error of a signature's energy. H100 and H200, 22 Nov: kernels in a loop against the same in
  // place, 20 operators.
  double kernel_power = 0.035;
  // The error of its energy in overlapped time. Ranges of one recording with other partners, up to
  // 6 % apart: two H200s, 22 Nov, tests/gpu/streams.py.
  double overlapped = 0.05;
  // Watts above idle between launches. H100: 0 to 5 W in gaps below 30 us.
  double idle_between = 4;
  // The change of a kernel's power between runs on one board, where too few runs say more. Two runs
  // on one H200, 23 Nov, differed by 1.3 % (median of the signatures) to 8.8 %.
  double between_runs = 0.05;
  double least_between_runs = 0.02;  // chosen
  // The change, by one factor, of the powers of all kernels that an earlier run knows. Chosen:
  // between the median and the most of the above.
  double known_together = 0.03;
  // How far power in isolated re-runs is from that in place, in percent; at most 50. H200, 22 Nov:
  // caches are warmer and the board is cooler.
  double rerun_percent = 7;
  // Priors, of the mean busy power: a signature's, a variant's difference, one in overlapped time.
  // Chosen.
  double prior_width = 0.5;
  double variant_width = 0.2;
  double overlapped_width = 0.5;
  // Times the highest observed power or the board's limit: the most that a kernel draws. Chosen:
  // sensors average over bursts, and a limit is held only in the mean (matrix products on an H100
  // of 700 W: readings of up to 877 W).
  double headroom = 1.5;
  double above_mean = 3;  // times the mean busy power, where no limit is known; chosen
  // Seconds by which samples and the counter's updates come later than the sensor's known lag.
  // Samples within 0.5 ms (two recordings of an H100, 21 Nov), and updates of a counter are first
  // seen up to 16 ms late.
  double samples_late = 2e-3;
  double counter_late = 4e-3;
  // For samples that see one phase of a load: how well they fit says nothing of their times
  // there, and the response is not exactly first-order. Chosen: three standard deviations of the
  // lags that fit 50 other loops on an H100, 26 Nov (1.5 to 3.4 ms).
  double locked_late = 1e-3;
  double far_share = 0.02;  // probability of any offset within `farthest`: badly converted times
  double farthest = 0.06;   // both chosen
  // The spread of the time constant among boards. They differ by a tenth (H100 and H200, 21 Nov).
  double time_constant = 0.07;
  double least_time_constant = 0.5e-3;  // seconds; chosen: the response is not exactly first-order
  // So many rows are worth one, where timings are compared: their errors persist. Model, loops.
  double persistence = 8;
  // Their spread counts so many times: a dozen of them are few. Model, loops.
  double few_timings = 1.25;
  // Probability that a counter adds up samples 20 ms apart; unknown. It aliases like that at 20 ms,
  // and integrates in bursts of random length (H100, 26 Nov).
  double adds_up = 0.5;
  // The least noise of a row of the regression, in parts of the mean power. Chosen: no model of
  // power is better.
  double least_row_noise = 0.01;
  // Seconds over which errors of rows may be correlated. Chosen.
  double clustered = 1;
  // Watts: of an idle power that drifts, at first and at least. Model, drifts of 6 to 20 W.
  double first_drift = 4;
  double least_drift = 0.3;
  // More is no drift of idle power: kernels' powers at other clocks are wrong (JAX at its limit on
  // an H200, 28 Nov: up to 79 W below what its pauses drew).
  double most_drift = 20;
  // Watts that a context holds above a board at rest, where it was not seen. 45 to 47 W on H100 and
  // H200, none where the pause had a context.
  double held = 20;
  double other_run = 2;  // watts: the least of a level that another run saw; chosen
  // Watts that a context and its clocks may add to an idle power that was not seen. H100: 45 to 47,
  // of which pauses without launches show most. Chosen.
  double no_context = 25;
  double warm = 5;             // seconds: time constant of a board's cooling; chosen
  double drift_knot = 8;       // seconds between two values of an idle power that drifts; chosen
  double well_known_idle = 5;  // watts: below, idle power is fixed; chosen
  double any_watts = 200;      // a prior that says nothing of a kernel; chosen
  // Offsets with a smaller spread are certain, in seconds; and so is how the counter works, above
  // this probability. Chosen.
  double certain_offset = 0.4e-3;
  double certain_counter = 0.99;
  double clearly_busy = 3;  // sigmas of idle_between: launches without a record; chosen

  // --- What is stated: parts of the energy, as 95 % half-widths. Chosen. ---

  double unresolved = 0.5;
  // For loads in step with the sensor, whose few phases make wide intervals a poor guide. Model.
  double unresolved_locked = 0.2;
  double anticorrelated = -0.3;  // correlation of errors within a group
  // A fit with less of the variance explained, and more left over of the mean active power,
  // resolves nothing.
  double little_explained = 0.5;
  double far_off = 0.2;
  // For a load in step with the sensor; the least of 80 on an H100, 26 Nov, is 0.99. Model.
  double locked_explained = 0.9;
  double rests_on_known = 1.25;  // times the interval without earlier runs
  double widest_repeated = 0.3;

  // --- Earlier runs, isolated re-runs, many windows of one name ---

  double prior_runs = 2;  // that `between_runs` is worth; chosen
  // Later runs may use a power with a smaller error than this part of it, or than so many watts.
  // Chosen.
  double resolved = 0.5;
  double resolved_watts = 10;
  // Sigmas by which an earlier run contradicts this one; the least of another explanation, and the
  // difference in squared sigmas (twice the log-likelihood) of one that is nearly as good. Chosen.
  double contradicts = 2.5;
  double suspected = 2;
  double nearly_as_well = 4;
  // How far the time of a re-run may be from that in place, in parts of it: of one that counts; of
  // a kernel's, with a wider interval; and from where its power has an error that the model's own
  // does not hold. Chosen.
  double rerun_apart = 0.1;
  double rerun_kernel_apart = 0.3;
  double rerun_noted = 0.05;
  double repeated_model = 0.015;  // of the energy: power differs from window to window; chosen
  // A part of an observation's length, times the power next to a window: chosen so that phases
  // whose power runs from 0.6 to 1.25 of its mean have their energy within the interval
  // (simulated).
  double repeated_ends = 0.014;
  double repeated_drift = 0.01;  // of all power, by the second: less stays in; chosen
  double layer_time = 0.3;       // of a layer's energy by its time: layers differ in power; chosen
};

inline constexpr ErrorModel kErrors;

}  // namespace jouleprof::analysis
