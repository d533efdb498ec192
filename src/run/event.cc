// The journal's lines, written and read by hand: a general JSON library takes ten times as long, and a
// million lines are read when a large run goes on. What is written is JSON all the same.
#include "warpsmith/run/event.h"

#include <array>
#include <charconv>
#include <cstring>

#include "warpsmith/base/json.h"

namespace warpsmith::run {

namespace {

constexpr std::array<std::string_view, kEventKinds> kNames = {
    "opened",         "stage_started", "job_added",     "submitted",  "shard_started", "shard_ended",
    "stage_finished", "stage_failed",  "stage_dropped", "service_up", "closed"};

// --- writing

void put_key(std::string& out, std::string_view key) {
  out += ",\"";
  out += key;
  out += "\":";
}

template <typename T>
void put_number(std::string& out, T value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

template <typename T>
void put(std::string& out, std::string_view key, T value) {
  if (value == T{}) return;
  put_key(out, key);
  put_number(out, value);
}

void put_text(std::string& out, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  put_key(out, key);
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

// --- reading

struct Cursor {
  const char* at;
  const char* end;

  bool eat(char c) {
    if (at == end || *at != c) return false;
    ++at;
    return true;
  }
  // A string without its quotes; escapes are what put_text() writes.
  bool text(std::string& out) {
    out.clear();
    if (!eat('"')) return false;
    for (;;) {
      const char* run = at;
      while (at != end && *at != '"' && *at != '\\') ++at;
      out.append(run, at);
      if (at == end) return false;
      if (*at++ == '"') return true;
      if (at == end) return false;
      if (*at == '"' || *at == '\\') {
        out += *at++;
      } else if (end - at >= 5 && std::memcmp(at, "u00", 3) == 0) {
        unsigned value = 0;
        const auto parsed = std::from_chars(at + 3, at + 5, value, 16);
        if (parsed.ptr != at + 5) return false;
        out += static_cast<char>(value);
        at += 5;
      } else {
        return false;
      }
    }
  }
  bool key(std::string_view& out) {
    if (!eat('"')) return false;
    const char* begin = at;
    while (at != end && *at != '"') ++at;
    if (at == end) return false;
    out = std::string_view(begin, static_cast<std::size_t>(at - begin));
    ++at;
    return eat(':');
  }
  template <typename T>
  bool number(T& out) {
    const auto parsed = std::from_chars(at, end, out);
    if (parsed.ec != std::errc{}) return false;
    at = parsed.ptr;
    return true;
  }
};

bool read_member(Cursor& in, std::string_view key, DecodedEvent& out, std::string& scratch) {
  Event& e = out.event;
  if (key == "seq") return in.number(out.sequence);
  if (key == "ms") return in.number(e.time_ms);
  if (key == "event") {
    if (!in.text(scratch)) return false;
    for (std::size_t i = 0; i < kNames.size(); ++i)
      if (kNames[i] == scratch) {
        e.kind = static_cast<EventKind>(i);
        return true;
      }
    return false;
  }
  if (key == "job") return in.number(e.job);
  if (key == "shard") return in.number(e.shard);
  if (key == "end") return in.number(e.end);
  if (key == "cause") {
    if (!in.text(scratch)) return false;
    const auto cause = parse_end_cause(scratch);
    if (cause) e.cause = *cause;
    return cause.has_value();
  }
  if (key == "exit") return in.number(e.exit_code);
  if (key == "signal") return in.number(e.signal);
  if (key == "open") return in.number(e.open);
  if (key == "wall_s") return in.number(e.wall_s);
  if (key == "cpu_s") return in.number(e.cpu_s);
  if (key == "memory") return in.number(e.memory);
  if (key == "execution") return in.number(e.execution);
  if (key == "round") return in.number(e.round);
  if (key == "pid") return in.number(e.pid);
  if (key == "submission") return in.number(e.submission);
  if (key == "cpus") return in.number(e.cpus);
  if (key == "gpus") return in.number(e.gpus);
  if (key == "shards_a_gpu") return in.number(e.shards_a_gpu);
  if (key == "time_s") return in.number(e.time_s);
  if (key == "after") return in.number(e.after);
  if (key == "name") return in.text(e.name);
  if (key == "hash") return in.text(e.hash);
  if (key == "text") return in.text(e.text);
  return false;
}

}  // namespace

std::string_view to_string(EventKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

void encode_event(const Event& e, std::uint64_t sequence, std::string& out) {
  const std::size_t begin = out.size();
  out += "{\"seq\":";
  put_number(out, sequence);
  put(out, "ms", e.time_ms);
  put_key(out, "event");
  out += '"';
  out += to_string(e.kind);
  out += '"';
  put(out, "execution", e.execution);
  put(out, "job", e.job);
  put(out, "shard", e.shard);
  put(out, "end", e.end);
  put(out, "round", e.round);
  if (e.kind == EventKind::kShardEnded) put_text(out, "cause", to_string(e.cause));
  put(out, "exit", e.exit_code);
  put(out, "signal", e.signal);
  put(out, "open", e.open);
  put(out, "pid", e.pid);
  put(out, "submission", e.submission);
  put(out, "cpus", e.cpus);
  put(out, "gpus", e.gpus);
  put(out, "shards_a_gpu", e.shards_a_gpu);
  put(out, "after", e.after);
  put(out, "wall_s", e.wall_s);
  put(out, "cpu_s", e.cpu_s);
  put(out, "time_s", e.time_s);
  put(out, "memory", e.memory);
  put_text(out, "name", e.name);
  put_text(out, "hash", e.hash);
  put_text(out, "text", e.text);
  append_line_crc(out, begin);
}

std::optional<DecodedEvent> decode_event(std::string_view line) {
  if (check_line_crc(line) != LineCrc::kGood) return std::nullopt;
  const std::string_view body = line.substr(0, line.size() - kLineCrcBytes);
  std::optional<DecodedEvent> out(std::in_place);
  std::string scratch;
  Cursor in{body.data(), body.data() + body.size()};
  if (!in.eat('{')) return std::nullopt;
  do {
    std::string_view key;
    if (!in.key(key) || !read_member(in, key, *out, scratch)) return std::nullopt;
  } while (in.eat(','));
  if (in.at != in.end) return std::nullopt;
  return out;
}

}  // namespace warpsmith::run
