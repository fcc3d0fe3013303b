#pragma once

namespace hsm {

/// Signals turned into requests that a loop asks for between its steps. SIGINT and SIGTERM ask to stop (a
/// second one ends the process at once), SIGUSR1 asks for a checkpoint. One object at a time; its
/// destructor gives the signals back.
class SignalRequests {
 public:
  SignalRequests();
  ~SignalRequests();
  SignalRequests(const SignalRequests&) = delete;
  SignalRequests& operator=(const SignalRequests&) = delete;

  [[nodiscard]] bool stop_requested() const noexcept;
  /// True once for each SIGUSR1 (several before the question count as one).
  bool take_checkpoint_request() noexcept;
};

}  // namespace hsm
