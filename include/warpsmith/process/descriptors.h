// What one process hands another over a Unix socket besides bytes.
#pragma once

#include <sys/types.h>

namespace warpsmith::process {

// Sends `fd` along with one byte. Does not wait, and says nothing where nobody is there.
void send_descriptor(int socket, int fd);
// Waits for a byte and what came along with it; closed over exec. -1 where no descriptor came.
int receive_descriptor(int socket);
// Who sent the byte that is there, in our numbers, as the kernel has it; 0 where it does not say. The socket
// has SO_PASSCRED.
pid_t sender_of(int socket);

}  // namespace warpsmith::process
