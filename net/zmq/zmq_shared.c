/* What the files of this folder share: texts of failures, and waking the socket thread. */
#include <stdint.h>
#include <unistd.h>

#include "net/zmq/zmq_internal.h"

int drps_zmq_failed(const char *doing, const char *what, struct drps_err *err)
{
    const int e = zmq_errno();
    /* ZeroMQ's own numbers lie beyond those of the system. */
    return drps_err_set(err, e > 0 && e < 4096 ? -e : DRPS_E_BACKEND, "ZeroMQ cannot %s %s: %s",
                        doing, what, zmq_strerror(e));
}

void drps_zmq_wake(struct net_zmq *z)
{
    const uint64_t one = 1;
    (void)!write(z->wake, &one, sizeof(one)); /* a full counter wakes, too */
}
