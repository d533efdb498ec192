#include "warpsmith/base/json.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "warpsmith/base/files.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith {

namespace {

// Where the text goes deeper than it may; npos where it does not. What stands in strings does not count.
std::size_t too_deep_at(std::string_view text) {
  if (text.size() <= kDeepestJson) return std::string_view::npos;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

std::string too_deep() { return "nested deeper than " + std::to_string(kDeepestJson) + " at "; }

// The value of a line, or what is wrong with it.
Json parse_line(std::string_view line, std::string& problem) {
  if (line.empty()) {
    problem = "it is empty";
    return {};
  }
  if (const std::size_t deep = too_deep_at(line); deep != std::string_view::npos) {
    problem = too_deep() + "its byte " + std::to_string(deep + 1);
    return {};
  }
  try {
    return Json::parse(line);
  } catch (const Json::exception& e) {
    const std::size_t odd = first_not_utf8(line);
    const auto* parse = dynamic_cast<const Json::parse_error*>(&e);  // else a number beyond all ranges
    problem = odd < line.size()  ? "its byte " + std::to_string(odd + 1) + " is not UTF-8"
              : parse == nullptr ? std::string("a number is too large")
                                 : "no JSON at its byte " + std::to_string(parse->byte);
    return {};
  }
}

// Lines of a file, in pieces as they are read.
class LineReader {
 public:
  explicit LineReader(InputFile& file) : file_(file) {}

  // False at the end. `whole`: a newline stands behind it.
  bool next(std::string& line, bool& whole) {
    line.clear();
    for (;;) {
      if (at_ == have_) {
        at_ = 0;
        have_ = file_.read(buffer_.data(), buffer_.size());
        whole = false;
        if (have_ == 0) return !line.empty();
      }
      const char* begin = buffer_.data() + at_;
      const auto* newline = static_cast<const char*>(std::memchr(begin, '\n', have_ - at_));
      const std::size_t length = newline != nullptr ? static_cast<std::size_t>(newline - begin) : have_ - at_;
      line.append(begin, length);
      at_ += length;
      if (newline == nullptr) continue;
      ++at_;
      whole = true;
      return true;
    }
  }

 private:
  InputFile& file_;
  std::string buffer_ = std::string(1 << 16, '\0');
  std::size_t at_ = 0, have_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view what) {
  const std::filesystem::path path(what);
  if (const std::size_t deep = too_deep_at(text); deep != std::string_view::npos)
    throw BadContent(path, std::string(what) + ": " + too_deep() + "byte " + std::to_string(deep + 1));
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    throw BadContent(path, std::string(what) + ": bad JSON at byte " + std::to_string(e.byte));
  } catch (const Json::exception&) {
    throw BadContent(path, std::string(what) + ": bad JSON: a number is too large");
  }
}

Json read_json_file(const std::filesystem::path& path) { return parse_json(read_file(path), path.string()); }

namespace {

// Hands on the lines of a file that are whole, and tells which are not. Whether lines of the file carry
// checksums is seen from the first two: the first is held back until then.
class LineScan {
 public:
  LineScan(const std::filesystem::path& path, const std::function<void(Json&&, std::uint64_t)>& take,
           const std::function<void(const BadContent&)>& bad)
      : path_(path), take_(take), bad_(bad) {}

  // Some line follows, so the one before was not the last.
  void goes_on() {
    if (!problem_.empty()) tell(problem_at_, std::exchange(problem_, ""));
  }

  void line(std::string_view text, std::uint64_t at) {
    const LineCrc crc = check_line_crc(text);
    if (crc == LineCrc::kWrong) {
      release();
      return tell(at, "its checksum is wrong");
    }
    Json value = parse_line(text, problem_);
    if (!problem_.empty()) {
      problem_at_ = at;
      return;
    }
    if (crc == LineCrc::kGood) {
      value.erase("crc");
      if (held_) tell(std::exchange(held_, std::nullopt)->second, kLacks);
      checked_ = true;
    } else if (checked_) {
      return tell(at, kLacks);
    } else if (seen_ == 0) {
      ++seen_;
      held_.emplace(std::move(value), at);
      return;
    }
    release();
    ++seen_;
    take_(std::move(value), at);
  }

  // At the end of the file. False: the last line was left.
  bool finish() {
    release();
    return problem_.empty();
  }

 private:
  static constexpr const char* kLacks = "it has no checksum, and other lines do";

  void release() {
    if (!held_) return;
    auto [value, at] = std::move(*std::exchange(held_, std::nullopt));
    take_(std::move(value), at);
  }

  void tell(std::uint64_t at, const std::string& problem) {
    const BadContent error(path_,
                           path_.string() + ": bad line at byte " + std::to_string(at) + ": " + problem);
    if (!bad_) throw error;
    bad_(error);
  }

  const std::filesystem::path& path_;
  const std::function<void(Json&&, std::uint64_t)>& take_;
  const std::function<void(const BadContent&)>& bad_;
  std::optional<std::pair<Json, std::uint64_t>> held_;
  std::string problem_;  // of the line before, which may be the last
  std::uint64_t problem_at_ = 0, seen_ = 0;
  bool checked_ = false;  // lines of this file carry checksums
};

}  // namespace

JsonLinesScan scan_json_lines(const std::filesystem::path& path, std::uint64_t offset,
                              const std::function<void(Json&&, std::uint64_t)>& take,
                              const std::function<void(const BadContent&)>& bad) {
  JsonLinesScan scan;
  scan.whole_bytes = offset;
  std::optional<InputFile> file;
  try {
    file.emplace(path);
    file->seek(offset);
  } catch (const Error& e) {
    if (e.error_number() == ENOENT || e.error_number() == ENOTDIR) return scan;
    throw;
  }
  LineReader lines(*file);
  LineScan content(path, take, bad);
  std::string line;
  std::uint64_t at = offset, last = offset;
  for (bool whole = false; lines.next(line, whole);) {
    content.goes_on();
    if (!whole) {
      scan.cut_tail = true;
      break;
    }
    last = at;
    at += line.size() + 1;
    ++scan.lines;
    content.line(line, last);
  }
  scan.whole_bytes = at;
  if (content.finish()) return scan;
  scan.cut_tail = true;
  scan.whole_bytes = last;
  --scan.lines;
  return scan;
}

constexpr std::string_view kCrcKey = ",\"crc\":\"";

LineCrc check_line_crc(std::string_view line) {
  if (line.size() < kLineCrcBytes + 2 || line.front() != '{' || !line.ends_with("\"}")) return LineCrc::kNone;
  const std::string_view tail = line.substr(line.size() - kLineCrcBytes);
  if (!tail.starts_with(kCrcKey)) return LineCrc::kNone;
  std::uint32_t crc = 0;
  for (const char digit : tail.substr(kCrcKey.size(), 8)) {  // lower case only: there is one way to write it
    const bool decimal = digit >= '0' && digit <= '9', letter = digit >= 'a' && digit <= 'f';
    if (!decimal && !letter) return LineCrc::kWrong;
    crc = crc << 4 | static_cast<std::uint32_t>(decimal ? digit - '0' : digit - 'a' + 10);
  }
  return crc == crc32(line.substr(0, line.size() - kLineCrcBytes)) ? LineCrc::kGood : LineCrc::kWrong;
}

void append_line_crc(std::string& out, std::size_t begin) {
  const std::uint32_t crc = crc32(std::string_view(out).substr(begin));
  out += kCrcKey;
  for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[crc >> shift & 0xF];
  out += "\"}";
}

std::string line_with_crc(const Json& object) {
  std::string line = object.dump(-1, ' ', false, Json::error_handler_t::replace);
  line.pop_back();
  append_line_crc(line, 0);
  return line + "\n";
}

std::size_t first_not_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) {
      return static_cast<unsigned char>(at < text.size() ? text[at] : 0);
    };
    const unsigned char first = byte(i);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xc2 ? 0
                               : first < 0xe0 ? 2
                               : first < 0xf0 ? 3
                               : first < 0xf5 ? 4
                                              : 0;
    if (length == 0) return i;
    // Longer than need be, a surrogate, or beyond U+10FFFF: told by the second byte.
    const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (length > 1 && (byte(i + 1) < low || byte(i + 1) > high)) return i;
    for (std::size_t k = 2; k < length; ++k)
      if (byte(i + k) < 0x80 || byte(i + k) > 0xbf) return i;
    i += length;
  }
  return text.size();
}

std::string in_words(const Json::exception& e) {
  const std::string_view text = e.what();
  const std::size_t name = text.starts_with("[json.exception.") ? text.find("] ") : std::string_view::npos;
  return std::string(name == std::string_view::npos ? text : text.substr(name + 2));
}

std::string set_aside_damaged(const std::filesystem::path& path) {
  const std::filesystem::path aside = path.string() + ".damaged";
  std::error_code error;
  std::filesystem::rename(path, aside, error);
  return error ? "it cannot be set aside: " + error.message() : "kept as " + aside.filename().string();
}

void use_json(const std::filesystem::path& path, const std::function<void(const Json&)>& use) {
  const Json json = read_json_file(path);
  if (!json.is_structured()) throw BadContent(path, path.string() + ": neither a JSON object nor a list");
  try {
    use(json);
  } catch (const Json::exception& e) {
    throw BadContent(path,
                     path.string() + ": its values are not of the types that they should be: " + in_words(e));
  }
}

bool use_json_or_set_aside(const std::filesystem::path& path, const std::function<void(const Json&)>& use,
                           const std::function<void(const std::string&)>& warn) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return false;
  try {
    use_json(path, use);
    return true;
  } catch (const BadContent& e) {
    warn(std::string(e.what()) + "; " + set_aside_damaged(path) + ", and done without");
  }
  return false;
}

namespace {

// kCrc[k][b]: what byte b does to the sum when k further bytes follow it.
constexpr auto kCrc = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    tables[0][b] = c;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t before = tables[k - 1][b];
      tables[k][b] = tables[0][before & 0xFF] ^ (before >> 8);
    }
  return tables;
}();

std::uint32_t little_endian(const char* p) {
  const auto at = [p](int i) { return std::uint32_t{static_cast<unsigned char>(p[i])} << (8 * i); };
  return at(0) | at(1) | at(2) | at(3);
}

}  // namespace

// Eight bytes at a time ("slicing by 8"): raw samples are checked each time that they are read.
std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t c = 0xFFFFFFFFu;
  const char* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    const std::uint32_t low = c ^ little_endian(p), high = little_endian(p + 4);
    c = kCrc[7][low & 0xFF] ^ kCrc[6][(low >> 8) & 0xFF] ^ kCrc[5][(low >> 16) & 0xFF] ^ kCrc[4][low >> 24] ^
        kCrc[3][high & 0xFF] ^ kCrc[2][(high >> 8) & 0xFF] ^ kCrc[1][(high >> 16) & 0xFF] ^
        kCrc[0][high >> 24];
  }
  for (; left > 0; ++p, --left) c = kCrc[0][(c ^ static_cast<unsigned char>(*p)) & 0xFF] ^ (c >> 8);
  return c ^ 0xFFFFFFFFu;
}

}  // namespace warpsmith
