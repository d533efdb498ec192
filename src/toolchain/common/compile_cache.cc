#include "compile_cache.h"

#include <unistd.h>

#include <atomic>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kWhat = "compile cache";

}  // namespace

CacheEntry::CacheEntry(fs::path cache, std::string key, std::string suffix)
    : cache_(std::move(cache)), key_(std::move(key)), suffix_(std::move(suffix)) {}

std::optional<CompileResult> CacheEntry::read() const {
  std::error_code error;
  if (!fs::exists(answer(), error)) return std::nullopt;
  CompileResult result;
  try {
    const Json json = read_json_file(answer());
    const auto verdict = parse_verdict(json_at<std::string>(json, "verdict", kWhat));
    if (!verdict) return std::nullopt;
    result.verdict = *verdict;
    result.log = json_at<std::string>(json, "log", kWhat);
    if (*verdict == Verdict::kOk) {
      result.binary = binary();
      if (sha256_file_hex(result.binary) != json_at<std::string>(json, "binary_sha256", kWhat))
        return std::nullopt;
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  result.cached = true;
  return result;
}

void CacheEntry::write(const fs::path& scratch, const CompileResult& result, const Json& facts) const {
  Json json = {{"verdict", std::string(to_string(result.verdict))}, {"log", result.log}};
  if (result.verdict == Verdict::kOk) json["binary_sha256"] = sha256_file_hex(result.binary);
  if (!facts.is_null()) json["facts"] = facts;
  const fs::path made = scratch / "entry.json";
  write_file_atomic(made, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  publish(made, answer());
}

Scratch::Scratch(const fs::path& cache) {
  static std::atomic<unsigned> count{0};
  path_ = cache / (".scratch-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
  make_folders(path_);
}

Scratch::~Scratch() {
  std::error_code error;
  fs::remove_all(path_, error);
}

void publish(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw system_error("cannot write " + to.string(), error.value());
}

}  // namespace warpsmith::toolchain
