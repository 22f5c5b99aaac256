/* A request of HTTP 1.0, whose answer ends where the connection does. */
#include "tools/top/ask.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"

enum { LIMIT_MS = 2000, PIECE = 1 << 14 };

struct ask {
    int fd;
    uint64_t until_ns;
    char *text; /* own */
    size_t n, cap;
};

/* Waits until the socket can be written, or read. */
static int wait_for(const struct ask *a, short what)
{
    const uint64_t now = drps_clock_ns();
    struct pollfd p = {.fd = a->fd, .events = what};
    const int ms = now < a->until_ns ? (int)((a->until_ns - now) / 1000000) : 0;
    return poll(&p, 1, ms) == 1 ? 0 : -ETIMEDOUT;
}

static int connect_to(struct ask *a, const struct addrinfo *at)
{
    int why = 0;
    socklen_t n = sizeof(why);
    a->fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (a->fd < 0) return -errno;
    if (connect(a->fd, at->ai_addr, at->ai_addrlen) && errno != EINPROGRESS) return -errno;
    const int rc = wait_for(a, POLLOUT);
    if (rc < 0) return rc;
    return getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &why, &n) ? -errno : -why;
}

static int receive(struct ask *a, size_t most)
{
    for (;;) {
        if (drps_array_reserve(&a->text, &a->cap, a->n + PIECE + 1, 1)) return -ENOMEM;
        const int rc = wait_for(a, POLLIN);
        if (rc < 0) return rc;
        const ssize_t got = recv(a->fd, a->text + a->n, PIECE, 0);
        if (got < 0 && errno != EINTR && errno != EAGAIN) return -errno;
        if (got > 0) a->n += (size_t)got;
        a->text[a->n] = '\0';
        if (got == 0) return 0;
        if (a->n > most) return -EMSGSIZE;
    }
}

static int talk(struct ask *a, const char *host, const char *port, size_t most)
{
    char request[512];
    const int n = snprintf(request, sizeof(request), "GET /metrics HTTP/1.0\r\nHost: %s:%s\r\n\r\n",
                           host, port);
    if (n < 0 || (size_t)n >= sizeof(request)) return -EINVAL;
    if (send(a->fd, request, (size_t)n, MSG_NOSIGNAL) != n) return -EIO;
    const int rc = receive(a, most);
    if (rc < 0) return rc;
    char *body = strstr(a->text, "\r\n\r\n");
    if (!body || strncmp(a->text, "HTTP/1.", 7) != 0 || !strstr(a->text, " 200 ")) return -EPROTO;
    memmove(a->text, body + 4, strlen(body + 4) + 1);
    return 0;
}

int top_ask(const char *host, const char *port, size_t most, char **text_out, struct drps_err *err)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct ask a = {.fd = -1, .until_ns = drps_clock_ns() + LIMIT_MS * UINT64_C(1000000)};
    struct addrinfo *at;
    *text_out = NULL;
    if (getaddrinfo(host, port, &wanted, &at))
        return drps_err_set(err, DRPS_E_PEER, "%s is not known", host);
    int rc = -ENOENT;
    for (const struct addrinfo *i = at; i && rc < 0; i = i->ai_next) {
        if (a.fd >= 0) (void)close(a.fd);
        rc = connect_to(&a, i);
    }
    freeaddrinfo(at);
    if (rc == 0) rc = talk(&a, host, port, most);
    if (a.fd >= 0) (void)close(a.fd);
    if (rc == 0) {
        *text_out = a.text;
        return 0;
    }
    free(a.text);
    return drps_err_set(err, DRPS_E_PEER, "%s:%s: %s", host, port, strerror(-rc));
}
