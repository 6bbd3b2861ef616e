// What attribution takes for granted where a recording says nothing of it.
#pragma once

namespace jouleprof::analysis {

// Standard deviations, unless it says otherwise. "Measured": on boards of the Hopper generation, in
// docs/validation.md or docs/measurement.md; other boards may differ, and none was measured.
struct AttributionBelief {
  // Of a signature's energy. Measured: kernels in a loop against the same in place, 20 operators on
  // H100 and H200.
  double model = 0.035;
  // Of its energy in overlapped time. Measured: ranges of one recording with other partners, up to
  // 6 % apart (two H200s).
  double overlapped = 0.05;
  // Watts above idle between launches. Measured: 0 to 5 W in gaps below 30 us (H100).
  double idle_between = 4;
  // Priors, of the mean busy power: a signature's, a variant's difference, one in overlapped time.
  // Chosen.
  double prior_width = 0.5;
  double variant_width = 0.2;
  double overlapped_width = 0.5;
  // Times the highest observed power or the board's limit: the most that a kernel draws. Chosen:
  // sensors average over bursts, and a limit is held only in the mean.
  double headroom = 1.3;
  double above_mean = 3;  // times the mean busy power, where no limit is known; chosen
  // Seconds by which samples and the counter's updates come later than the sensor's known lag.
  // Measured: samples within 0.5 ms (two recordings of an H100), and updates of a counter are first
  // seen up to 16 ms late.
  double samples_late = 2e-3;
  double counter_late = 4e-3;
  // The same of samples that see one phase of a load: how well they fit says nothing of their times
  // there, and the response is not exactly first-order. Chosen: three standard deviations of the
  // lags that fit 50 other loops on an H100 (1.5 to 3.4 ms).
  double locked_late = 1e-3;
  double far_share = 0.02;  // probability of any offset within `farthest`: badly converted times
  double farthest = 0.06;
  // Of the time constant, among boards. Measured: they differ by a tenth (H100, H200).
  double time_constant = 0.07;
  double least_time_constant = 0.5e-3;  // seconds; chosen: the response is not exactly first-order
  // So many rows are worth one, where timings are compared: their errors persist. Chosen so that
  // simulated loops are covered (docs/validation.md).
  double persistence = 8;
  // Their spread counts so many times: a dozen of them are few. Chosen likewise.
  double few_timings = 1.25;
  // Probability that a counter adds up samples 20 ms apart; unknown. Measured: it aliases like that
  // at 20 ms, and integrates in bursts of random length, on H100s.
  double adds_up = 0.5;
  // Watts that a context holds above a board at rest, where it was not seen. Measured: 45 to 47 W
  // on Hopper, none where the pause had a context.
  double held = 15;
};
inline constexpr AttributionBelief kBelief;

}  // namespace jouleprof::analysis
