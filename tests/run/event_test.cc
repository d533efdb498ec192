#include "warpsmith/run/event.h"

#include <gtest/gtest.h>

#include "warpsmith/base/json.h"

namespace warpsmith::run {
namespace {

Event full_event() {
  return {.kind = EventKind::kShardEnded,
          .time_ms = 1700000000123,
          .execution = 3,
          .job = 7,
          .shard = 11,
          .end = 13,
          .round = -2,
          .cause = EndCause::kOutOfMemory,
          .exit_code = 137,
          .signal = 9,
          .open = 5,
          .pid = 4242,
          .submission = 17,
          .cpus = 4,
          .gpus = 2,
          .after = 1ull << 40,
          .wall_s = 1.25,
          .cpu_s = 0.1,
          .time_s = 1800,
          .memory = 1ull << 33,
          .name = "sft",
          .hash = "0123abcd",
          .text = "quote \" backslash \\ newline \n tab \t é"};
}

TEST(Event, RoundTripKeepsEveryMember) {
  std::string line;
  encode_event(full_event(), 99, line);
  const auto decoded = decode_event(line);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->sequence, 99u);
  EXPECT_EQ(decoded->event, full_event());
}

TEST(Event, EveryKindRoundTrips) {
  for (int kind = 0; kind < kEventKinds; ++kind) {
    const Event event{.kind = static_cast<EventKind>(kind), .job = 1};
    std::string line;
    encode_event(event, 1, line);
    const auto decoded = decode_event(line);
    ASSERT_TRUE(decoded) << line;
    EXPECT_EQ(decoded->event, event);
  }
}

TEST(Event, LineIsJsonThatAnyReaderTakes) {
  std::string line;
  encode_event(full_event(), 99, line);
  const Json json = parse_json(line, "line");
  EXPECT_EQ(json.at("seq"), 99);
  EXPECT_EQ(json.at("event"), "shard_ended");
  EXPECT_EQ(json.at("cause"), "out_of_memory");
  EXPECT_EQ(json.at("text"), full_event().text);
  EXPECT_EQ(json.at("wall_s"), 1.25);
  const std::size_t crc = line.rfind(",\"crc\":");
  char expected[9];
  std::snprintf(expected, sizeof expected, "%08x", crc32(std::string_view(line).substr(0, crc)));
  EXPECT_EQ(json.at("crc"), expected);
}

TEST(Event, EveryFlippedBitIsNoticed) {
  std::string line;
  encode_event(full_event(), 99, line);
  for (std::size_t byte = 0; byte < line.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = line;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      EXPECT_FALSE(decode_event(damaged)) << damaged;
    }
}

TEST(Event, EveryShorterLineIsNoticed) {
  std::string line;
  encode_event(full_event(), 99, line);
  for (std::size_t size = 0; size < line.size(); ++size) EXPECT_FALSE(decode_event(line.substr(0, size)));
}

}  // namespace
}  // namespace warpsmith::run
