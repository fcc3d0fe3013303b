#include "base/signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

namespace hsm {
namespace {

// A signal handler can reach nothing but static storage.
std::atomic<bool> stop_flag{false};
std::atomic<bool> checkpoint_flag{false};
std::array<struct sigaction, 3> previous{};
constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGUSR1};

extern "C" void on_signal(int signal) {
  if (signal == SIGUSR1) {
    checkpoint_flag.store(true);
  } else if (stop_flag.exchange(true)) {
    _exit(128 + signal);
  }
}

}  // namespace

SignalRequests::SignalRequests() {
  stop_flag.store(false);
  checkpoint_flag.store(false);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals.at(i), &action, &previous.at(i));
}

SignalRequests::~SignalRequests() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals.at(i), &previous.at(i), nullptr);
}

bool SignalRequests::stop_requested() const noexcept {
  return stop_flag.load();
}
bool SignalRequests::take_checkpoint_request() noexcept {
  return checkpoint_flag.exchange(false);
}

}  // namespace hsm
