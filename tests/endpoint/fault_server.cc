#include "fault_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>

namespace warpsmith::endpoint {

namespace {

void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Empty where the other side has gone.
std::string receive(int fd) {
  std::string text;
  std::size_t body = std::string::npos, length = 0;
  while (body == std::string::npos || text.size() < body + length) {
    char buffer[65536];
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) return "";
    text.append(buffer, static_cast<std::size_t>(n));
    if (body != std::string::npos) continue;
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos) continue;
    body = end + 4;
    const std::string key = "Content-Length: ";
    if (const std::size_t at = text.find(key); at < end) length = std::stoul(text.substr(at + key.size()));
  }
  return text;
}

}  // namespace

Reply chat_reply(const std::vector<std::string>& texts, int prompt_tokens, int completion_tokens) {
  Json choices = Json::array();
  for (const std::string& text : texts)
    choices.push_back({{"message", {{"role", "assistant"}, {"content", text}}}, {"finish_reason", "stop"}});
  return {.body =
              Json{{"model", "coder"},
                   {"choices", choices},
                   {"usage", {{"prompt_tokens", prompt_tokens}, {"completion_tokens", completion_tokens}}}}
                  .dump()};
}

FaultServer::FaultServer(Answer answer) : answer_(std::move(answer)) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (socket_ < 0 || ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(socket_, 512) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no socket for a server");
  port_ = ntohs(address.sin_port);
  listener_ = std::thread([this] { listen(); });
}

FaultServer::~FaultServer() {
  ends_ = true;
  listener_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(socket_);
}

std::vector<Got> FaultServer::got() const {
  const std::lock_guard lock(mutex_);
  return got_;
}

void FaultServer::listen() {
  while (!ends_) {
    pollfd waiting{socket_, POLLIN, 0};
    if (::poll(&waiting, 1, 20) <= 0) continue;
    const int fd = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void FaultServer::serve(int fd) {
  const std::string text = receive(fd);
  if (!text.empty()) {
    Got got;
    got.method = text.substr(0, text.find(' '));
    got.path =
        text.substr(got.method.size() + 1, text.find(' ', got.method.size() + 1) - got.method.size() - 1);
    const std::size_t end = text.find("\r\n\r\n");
    got.head = text.substr(0, end);
    if (text.size() > end + 4) got.body = Json::parse(text.substr(end + 4));
    const int now = ++at_once_;
    for (int most = most_at_once_; now > most && !most_at_once_.compare_exchange_weak(most, now);) {
    }
    {
      const std::lock_guard lock(mutex_);
      got_.push_back(got);
    }
    const Reply reply = answer_(got);
    for (double waited = 0; waited < reply.wait_s && !ends_; waited += 0.01)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    --at_once_;
    if (!reply.hang_up) {
      std::string head =
          "HTTP/1.1 " + std::to_string(reply.status) + " X\r\nContent-Type: application/json\r\n";
      for (const std::string& line : reply.headers) head += line + "\r\n";
      head += "Connection: close\r\nContent-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n";
      send_all(fd, head + reply.body.substr(0, reply.cut_after));
    }
  }
  ::close(fd);
}

}  // namespace warpsmith::endpoint
