/* A port that answers HTTP with the numbers of a monitor, by libmicrohttpd. The socket is our own:
 * the library's would share a port that is in use. */
#include "base/monitor/drps_monitor_out.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef DRPS_WITH_MICROHTTPD
#include <microhttpd.h>

enum {
    CLIENTS = 16, /* at a time; one more waits in the kernel's queue, or is refused */
    CLIENT_BYTES = 16384,
    CLIENT_SECONDS = 10,
    QUEUE = 16,
};

static const char hint[] = "drps: GET /metrics\n";
static const char type[] = "text/plain; version=0.0.4; charset=utf-8";

struct drps_monitor_port {
    struct drps_monitor *monitor;
    struct MHD_Daemon *daemon;
};

static int is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* What is sent: 200 with the numbers, or 404, 405, 503. `n` and status are filled in. */
static struct MHD_Response *response_to(struct drps_monitor *m, const char *path, const char *how,
                                        unsigned *status)
{
    size_t n;
    const int reads = is(how, MHD_HTTP_METHOD_GET) || is(how, MHD_HTTP_METHOD_HEAD);
    *status = !reads ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND;
    if (!reads || !is(path, "/metrics"))
        return MHD_create_response_from_buffer(sizeof(hint) - 1, (void *)(uintptr_t)hint,
                                               MHD_RESPMEM_PERSISTENT);
    char *text = drps_monitor_render(m, &n);
    *status = text ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
    struct MHD_Response *r = text
                                 ? MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE)
                                 : MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (!r) free(text);
    if (r) (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    return r;
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *client, const char *path,
                              const char *how, const char *version, const char *body,
                              size_t *body_bytes, void **seen)
{
    struct drps_monitor_port *p = ctx;
    unsigned status;
    (void)version, (void)body, (void)seen;
    *body_bytes = 0; /* a body is not looked at */
    struct MHD_Response *r = response_to(p->monitor, path, how, &status);
    if (!r) return MHD_NO;
    const enum MHD_Result sent = MHD_queue_response(client, status, r);
    MHD_destroy_response(r);
    return sent;
}

/* What the library says of broken requests is of no use to who trains. */
static void say_nothing(void *ctx, const char *format, va_list args)
{
    (void)ctx, (void)format, (void)args;
}

static int listen_at(const struct addrinfo *at)
{
    const int yes = 1;
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)); /* of a run that has ended */
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, QUEUE) == 0) return fd;
    const int why = -errno;
    (void)close(fd);
    return why;
}

static int open_socket(const char *address, uint32_t port, int *fd_out, struct drps_err *err)
{
    const struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                    .ai_socktype = SOCK_STREAM};
    struct addrinfo *at;
    char service[16];
    (void)snprintf(service, sizeof(service), "%u", port);
    if (port > UINT16_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "port %u: the largest is %d", port, UINT16_MAX);
    if (getaddrinfo(address, service, &wanted, &at))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is no address of this machine: give numbers, "
                            "such as 127.0.0.1 or 0.0.0.0",
                            address);
    const int fd = listen_at(at);
    freeaddrinfo(at);
    *fd_out = fd;
    if (fd >= 0) return 0;
    return drps_err_set(err, fd, "metrics cannot be served at port %u of %s: %s", port, address,
                        strerror(-fd));
}

int drps_monitor_port_open(struct drps_monitor *m, const char *address, uint32_t port,
                           struct drps_monitor_port **out, struct drps_err *err)
{
    int fd = -1;
    *out = NULL;
    int rc = open_socket(address ? address : "127.0.0.1", port, &fd, err);
    if (rc < 0) return rc;
    struct drps_monitor_port *p = calloc(1, sizeof(*p));
    if (p) {
        p->monitor = m; /* "auto" is not select(), which takes the first thousand files alone */
        p->daemon = MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, NULL,
                                     NULL, answer, p, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL,
                                     MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                                     (unsigned)CLIENTS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                     (size_t)CLIENT_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
                                     (unsigned)CLIENT_SECONDS, MHD_OPTION_END);
    }
    if (p && p->daemon) {
        *out = p;
        return 0;
    }
    (void)close(fd);
    free(p);
    return drps_err_set(err, -ENOMEM, "no thread or memory to serve metrics at port %u", port);
}

void drps_monitor_port_close(struct drps_monitor_port *p)
{
    if (!p) return;
    MHD_stop_daemon(p->daemon); /* closes the socket, too */
    free(p);
}

#else

int drps_monitor_port_open(struct drps_monitor *m, const char *address, uint32_t port,
                           struct drps_monitor_port **out, struct drps_err *err)
{
    (void)m, (void)address;
    *out = NULL;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "this build has no libmicrohttpd, and cannot serve metrics at port %u: "
                        "write them to a file",
                        port);
}

void drps_monitor_port_close(struct drps_monitor_port *p)
{
    (void)p;
}

#endif
