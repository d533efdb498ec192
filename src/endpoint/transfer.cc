#include "transfer.h"

#include <cstdlib>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/base/text.h"

namespace warpsmith::endpoint {

namespace {

constexpr std::size_t kShortestKey = 4;  // what is shorter is no secret, and stands in every text

void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw Error(std::string("libcurl: ") + curl_easy_strerror(started));
}

}  // namespace

Way::Way(const Server& given) : server(given), base(given.url) {
  start_curl();
  const bool plain = base.starts_with("http://"), safe = base.starts_with("https://");
  const std::size_t host = plain ? 7 : 8;
  if ((!plain && !safe) || base.size() <= host || base[host] == '/')
    throw Error("`" + printable(server.url) + "` is no address of a server, such as http://localhost:8000/v1",
                kExitUsage);
  if (base.find('@', host) < base.find('/', host))
    throw Error("the address of a server holds no user and password: name the variable that holds its key",
                kExitUsage);
  while (base.ends_with('/')) base.pop_back();
  root = base.substr(0, base.find('/', host));
  if (server.key_variable.empty()) return;
  const char* key = std::getenv(server.key_variable.c_str());
  if (key == nullptr || *key == '\0')
    throw Error(
        "the environment variable " + server.key_variable + ", which holds the server's key, is not set",
        kExitUsage);
  key_ = trim(key);
  if (key_.find_first_of("\r\n") != std::string::npos)
    throw Error("the key in " + server.key_variable + " has more than one line", kExitUsage);
}

std::string Way::without_key(std::string text) const {
  if (key_.size() < kShortestKey) return text;
  return replaced(std::move(text), key_, "***");
}

Transfer::Transfer(const Way& way, const std::string& url, std::string body)
    : way_(way), handle_(curl_easy_init()), body_(std::move(body)) {
  if (!handle_) throw Error("libcurl: no memory for a request");
  const auto set = [&](CURLoption option, auto value) {
    const CURLcode result = curl_easy_setopt(handle_.get(), option, value);
    if (result != CURLE_OK) throw Error(std::string("libcurl: ") + curl_easy_strerror(result));
  };
  const auto add = [&](const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) throw Error("libcurl: no memory for a header");
    (void)headers_.release();
    headers_.reset(longer);
  };
  add("Content-Type: application/json");
  add("Expect:");  // no question whether the body may come: not all servers answer it
  if (!way.key_.empty()) add("Authorization: Bearer " + way.key_);
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTPHEADER, headers_.get());
  set(CURLOPT_USERAGENT, "warpsmith");
  set(CURLOPT_ERRORBUFFER, words_);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(way.server.connect_s * 1000));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(way.server.answer_s * 1000));
  set(CURLOPT_WRITEFUNCTION, &Transfer::take);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_PRIVATE, this);
  if (!way.server.ca_file.empty()) set(CURLOPT_CAINFO, way.server.ca_file.c_str());
  if (!way.server.proxy.empty()) set(CURLOPT_PROXY, way.server.proxy.c_str());
  if (body_.empty()) return;
  set(CURLOPT_POSTFIELDS, body_.data());
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
}

std::size_t Transfer::take(char* data, std::size_t size, std::size_t count, void* self) {
  std::string& answer = static_cast<Transfer*>(self)->answer_;
  if (answer.size() + size * count > kLargestAnswer) return 0;  // libcurl ends it: CURLE_WRITE_ERROR
  answer.append(data, size * count);
  return size * count;
}

int Transfer::status(CURLcode result) const {
  long status = 0;
  if (result == CURLE_OK) curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

std::string Transfer::problem(CURLcode result) const {
  if (result == CURLE_WRITE_ERROR) return "the answer has more than " + format_size(kLargestAnswer);
  const std::string words = *words_ != '\0' ? words_ : curl_easy_strerror(result);
  return printable(way_.without_key(trim(words)));
}

double Transfer::seconds() const {
  curl_off_t microseconds = 0;
  curl_easy_getinfo(handle_.get(), CURLINFO_TOTAL_TIME_T, &microseconds);
  return static_cast<double>(microseconds) * 1e-6;
}

bool Transfer::was_sent() const {
  long bytes = 0;
  curl_easy_getinfo(handle_.get(), CURLINFO_REQUEST_SIZE, &bytes);
  return bytes > 0;
}

double Transfer::retry_after_s() const {
  curl_off_t seconds = 0;
  curl_easy_getinfo(handle_.get(), CURLINFO_RETRY_AFTER, &seconds);
  return static_cast<double>(seconds);
}

}  // namespace warpsmith::endpoint
