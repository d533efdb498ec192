// One HTTP request by libcurl, and what came of it.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>

#include "warpsmith/endpoint/client.h"

namespace warpsmith::endpoint {

inline constexpr std::size_t kLargestAnswer = 64 << 20;  // bytes

// What all requests to a server have in common.
struct Way {
  Way(const Server& server);  // throws Error, as Client's constructor
  const Server server;
  std::string base;  // the URL without slashes at its end
  std::string root;  // "http://host:port"
  // No text that leaves this module holds the key.
  std::string without_key(std::string text) const;

 private:
  friend class Transfer;
  std::string key_;
};

class Transfer {
 public:
  // POST of `body`; GET where it is empty.
  Transfer(const Way& way, const std::string& url, std::string body);
  CURL* handle() const { return handle_.get(); }
  // Once libcurl is done with it: status 0 where there is no whole answer, and then why.
  int status(CURLcode result) const;
  std::string problem(CURLcode result) const;
  const std::string& answer() const { return answer_; }
  double seconds() const;
  bool was_sent() const;  // at least a part of the request
  // As the server asks for, in seconds; 0: it asks for none.
  double retry_after_s() const;

 private:
  static std::size_t take(char* data, std::size_t size, std::size_t count, void* self);
  struct Close {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  const Way& way_;
  std::unique_ptr<CURL, Close> handle_;
  std::unique_ptr<curl_slist, Close> headers_;
  std::string body_, answer_;
  char words_[CURL_ERROR_SIZE] = "";
};

}  // namespace warpsmith::endpoint
