// Descriptors of open files, handed from one process to another over a Unix socket.
#pragma once

namespace warpsmith::process {

// Sends `fd` along with one byte. Does not wait, and says nothing where nobody is there.
void send_descriptor(int socket, int fd);
// Waits for a byte and what came along with it; closed over exec. -1 where no descriptor came.
int receive_descriptor(int socket);

}  // namespace warpsmith::process
