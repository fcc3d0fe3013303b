#include "base/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cmath>

namespace hsm {
namespace {

TEST(RenderProgress, ShowsLabelBarPercentAndDetails) {
  EXPECT_EQ(render_progress(0.5, "epoch 1/2", "12 words/s", 40), "epoch 1/2 [======>     ]  50% 12 words/s");
}

TEST(RenderProgress, EndsAreEmptyAndFull) {
  EXPECT_EQ(render_progress(0, "x", "", 19), "x [>         ]   0%");
  EXPECT_EQ(render_progress(1, "x", "", 19), "x [==========] 100%");
}

TEST(RenderProgress, ClampsWhatIsNoFraction) {
  EXPECT_EQ(render_progress(-3, "x", "", 10), render_progress(0, "x", "", 10));
  EXPECT_EQ(render_progress(7, "x", "", 10), render_progress(1, "x", "", 10));
  EXPECT_EQ(render_progress(std::nan(""), "x", "", 10), render_progress(0, "x", "", 10));
}

TEST(RenderProgress, NeverWiderThanTheTerminal) {
  for (size_t width = 0; width < 100; ++width) {
    EXPECT_LE(render_progress(0.33, "epoch 11/13", "33,120 words/s  perplexity 122.7", width).size(), width);
  }
}

TEST(RenderProgress, DropsTheBarBeforeTheText) {
  EXPECT_EQ(render_progress(0.25, "read", "details here", 22), "read  25% details here");
}

TEST(ProgressLine, IsSilentWhereThereIsNoTerminal) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  {
    ProgressLine line(ends[1]);
    EXPECT_FALSE(line.active());
    EXPECT_FALSE(line.due());
    line.draw(0.5, "label", "details");
    line.clear();
  }
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

TEST(ProgressLine, RedrawsInPlaceOnATerminalAndCleansUp) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0)
    GTEST_SKIP() << "no terminals here";
  const int user = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(user, 0);
  winsize size{};
  size.ws_col = 41;
  ::ioctl(user, TIOCSWINSZ, &size);
  ::setenv("TERM", "xterm", 1);
  {
    ProgressLine line(user);
    EXPECT_TRUE(line.active());
    EXPECT_TRUE(line.due());
    line.draw(0.5, "epoch 1/2", "12 words/s");
    EXPECT_FALSE(line.due());
  }
  const std::string expected =
      "\r" + render_progress(0.5, "epoch 1/2", "12 words/s", 40) + "\x1b[K" + "\r\x1b[K";
  std::string seen(expected.size() + 1, '\0');
  size_t count = 0;  // a terminal may hand over the two writes one by one
  while (count < expected.size()) {
    const ssize_t got = ::read(terminal, seen.data() + count, seen.size() - count);
    ASSERT_GT(got, 0);
    count += static_cast<size_t>(got);
  }
  seen.resize(count);
  EXPECT_EQ(seen, expected);
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(ProgressLine(user).active());
  ::close(user);
  ::close(terminal);
}

}  // namespace
}  // namespace hsm
