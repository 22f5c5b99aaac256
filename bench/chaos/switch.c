/*
 * A network switch whose links can be made bad, for bench/chaos.sh: it passes Ethernet frames
 * between interfaces, and delays, reorders, loses and duplicates them, or holds them to a rate. It
 * does what tc's netem does where the kernel has none, and all that is random in it follows from
 * its seed.
 *
 *   switch SEED INTERFACE...
 *
 * Interface i belongs to the host whose Ethernet address is 02:00:00:00:00:0(i+1). A line on
 * standard input changes the link of one host, in both directions:
 *
 *   PORT DELAY_US JITTER_US ORDERED LOSS_PPM DUPLICATE_PPM RATE_KBIT
 *
 * DELAY_US is what every frame takes and JITTER_US what it takes more, at most; with ORDERED 1
 * frames stay in order all the same. A rate of 0 is none. All zero is a good link. The end of
 * standard input ends the program.
 */
#define _GNU_SOURCE /* ppoll() */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PORTS_MAX = 16,
    FRAME_MAX = 70000,     /* the header of large frames, then up to 64 KiB of one */
    HEADER = 10,           /* struct virtio_net_hdr */
    WAITING_MAX = 1 << 13, /* frames; then others are lost, as in a switch without room */
    LATE_NS = 1000000000,  /* a frame that would wait so long for the rate is lost, too */
    AT_ONCE = 64
};

struct link {
    uint64_t delay_us, jitter_us, ordered, loss_ppm, duplicate_ppm, rate_kbit;
    uint64_t last_ns[2],
        free_ns[2]; /* from and to the host: of the frame before; when the rate has room again */
    int fd;
};

struct frame {
    uint64_t due_ns, number;
    int to;
    size_t bytes;
    unsigned char *data;
};

struct net {
    struct link links[PORTS_MAX];
    int ports;
    struct frame *heap[WAITING_MAX]; /* [waiting], the first is due first */
    size_t waiting;
    uint64_t numbers, random;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t draw(struct net *n, uint64_t below)
{
    n->random ^= n->random << 13;
    n->random ^= n->random >> 7;
    n->random ^= n->random << 17;
    return below ? (n->random >> 11) % below : 0;
}

/* ---- Frames that wait ---- */

static int earlier(const struct frame *a, const struct frame *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void swap(struct frame **a, struct frame **b)
{
    struct frame *was = *a;
    *a = *b;
    *b = was;
}

static void push(struct net *n, uint64_t due_ns, int to, const unsigned char *data, size_t bytes)
{
    struct frame *f = n->waiting < WAITING_MAX ? malloc(sizeof(*f) + bytes) : NULL;
    if (!f) return;
    *f = (struct frame){due_ns, n->numbers++, to, bytes, (unsigned char *)(f + 1)};
    memcpy(f->data, data, bytes);
    size_t at = n->waiting++;
    n->heap[at] = f;
    for (; at && earlier(n->heap[at], n->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&n->heap[at], &n->heap[(at - 1) / 2]);
}

static struct frame *pop(struct net *n)
{
    struct frame *first = n->heap[0];
    n->heap[0] = n->heap[--n->waiting];
    for (size_t at = 0, next; (next = 2 * at + 1) < n->waiting; at = next) {
        if (next + 1 < n->waiting && earlier(n->heap[next + 1], n->heap[next])) next++;
        if (!earlier(n->heap[next], n->heap[at])) break;
        swap(&n->heap[next], &n->heap[at]);
    }
    return first;
}

static void send_due(struct net *n)
{
    const uint64_t now = now_ns();
    while (n->waiting && n->heap[0]->due_ns <= now) {
        struct frame *f = pop(n);
        (void)!send(n->links[f->to].fd, f->data, f->bytes,
                    MSG_DONTWAIT); /* lost where the link is down */
        free(f);
    }
}

/* ---- What a link does to a frame ---- */

/* When a frame that comes to the link at *ns has passed it; 0: it is lost. */
static int pass(struct net *n, struct link *l, int way, size_t bytes, uint64_t *ns)
{
    if (draw(n, 1000000) < l->loss_ppm) return 0;
    if (l->rate_kbit) {
        if (l->free_ns[way] < *ns) l->free_ns[way] = *ns;
        if (l->free_ns[way] - *ns > LATE_NS) return 0;
        *ns = l->free_ns[way] += bytes * 8000000 / l->rate_kbit;
    }
    *ns += (l->delay_us + draw(n, l->jitter_us)) * 1000;
    if (l->ordered && *ns < l->last_ns[way]) *ns = l->last_ns[way];
    l->last_ns[way] = *ns;
    return 1;
}

static void carry(struct net *n, int from, int to, const unsigned char *data, size_t bytes)
{
    struct link *a = &n->links[from], *b = &n->links[to];
    const int twice = draw(n, 1000000) < a->duplicate_ppm || draw(n, 1000000) < b->duplicate_ppm;
    for (int i = 0; i <= twice; i++) {
        uint64_t ns = now_ns();
        if (pass(n, a, 0, bytes, &ns) && pass(n, b, 1, bytes, &ns)) push(n, ns, to, data, bytes);
    }
}

static void take(struct net *n, int from)
{
    static unsigned char data[FRAME_MAX];
    for (int i = 0; i < AT_ONCE; i++) {
        const ssize_t bytes = recv(n->links[from].fd, data, sizeof(data), MSG_DONTWAIT);
        if (bytes < HEADER + ETH_HLEN) return; /* nothing, or the link is down */
        const unsigned char *address = data + HEADER;
        const int known =
            !memcmp(address, "\2\0\0\0\0", 5) && address[5] >= 1 && address[5] <= n->ports;
        for (int to = 0; to < n->ports; to++)
            if (to != from && (!known || to == address[5] - 1))
                carry(n, from, to, data, (size_t)bytes);
    }
}

/* ---- Commands, and waiting ---- */

static int command(struct net *n)
{
    char line[200];
    struct link l = {0};
    int port;
    if (!fgets(line, sizeof(line), stdin)) return 0;
    if (sscanf(line, "%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &port, &l.delay_us, &l.jitter_us, &l.ordered, &l.loss_ppm, &l.duplicate_ppm,
               &l.rate_kbit) != 7 ||
        port < 0 || port >= n->ports) {
        fprintf(stderr, "switch: no command: %s", line);
        exit(1);
    }
    l.fd = n->links[port].fd;
    n->links[port] = l;
    return 1;
}

static int open_port(const char *name)
{
    const int on = 1, bytes = 4 << 20;
    struct sockaddr_ll at = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_ALL),
                             .sll_ifindex = (int)if_nametoindex(name)};
    const int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) ||
        bind(fd, (const struct sockaddr *)&at, sizeof(at))) {
        fprintf(stderr, "switch: %s: %s\n", name, strerror(errno));
        exit(1);
    }
    return fd;
}

static struct timespec until(const struct net *n)
{
    const uint64_t now = now_ns(), due = n->waiting ? n->heap[0]->due_ns : now + 1000000000;
    const uint64_t wait = due > now ? due - now : 0;
    return (struct timespec){(time_t)(wait / 1000000000), (long)(wait % 1000000000)};
}

static void forget_error(int fd)
{
    int error;
    socklen_t size = sizeof(error);
    (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size); /* the link went down */
}

int main(int argc, char **argv)
{
    static struct net n;
    struct pollfd wait[PORTS_MAX + 1] = {{.fd = 0, .events = POLLIN}};
    n.ports = argc - 2;
    if (n.ports < 1 || n.ports > PORTS_MAX) return fprintf(stderr, "switch SEED INTERFACE...\n"), 2;
    n.random = strtoull(argv[1], NULL, 10) * 2654435769u + 1;
    setvbuf(stdin, NULL, _IONBF, 0); /* poll() must know of what is left to read */
    for (int i = 0; i < n.ports; i++)
        wait[i + 1] =
            (struct pollfd){.fd = n.links[i].fd = open_port(argv[i + 2]), .events = POLLIN};
    for (;;) {
        const struct timespec t = until(&n);
        const int some = ppoll(wait, (nfds_t)n.ports + 1, &t, NULL);
        if (some < 0 && errno != EINTR) return perror("switch"), 1;
        if (some > 0 && wait[0].revents && !command(&n)) return 0;
        for (int i = 0; i < n.ports && some > 0; i++) {
            if (wait[i + 1].revents & POLLERR) forget_error(wait[i + 1].fd);
            if (wait[i + 1].revents) take(&n, i);
        }
        send_due(&n);
    }
}
