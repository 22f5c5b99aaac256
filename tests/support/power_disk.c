/* Folders, files, and the journal of what is not durable. Memory that is gone ends the program. */
#include "support/power_disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/drps_checksum.h"
#include "base/drps_rng.h"

enum { SECTOR = 512 };

static void *need(void *memory)
{
    if (!memory) abort();
    return memory;
}

/* ---- Nodes and entries ---- */

struct disk_node *disk_node_new(struct disk *d, int folder)
{
    struct disk_node *node = need(calloc(1, sizeof(*node)));
    node->folder = folder;
    node->last = &node->changes;
    node->number = d->all ? d->all->number + 1 : 0;
    node->next = d->all;
    d->all = node;
    return node;
}

void disk_init(struct disk *d)
{
    *d = (struct disk){.last = NULL};
    d->last = &d->ops;
    d->root = disk_node_new(d, 1);
}

static size_t seek(const struct disk_entries *e, const char *name)
{
    size_t i = 0;
    while (i < e->n && strcmp(e->entry[i].name, name) != 0)
        i++;
    return i;
}

struct disk_node *disk_find(const struct disk_node *folder, enum disk_view view, const char *name)
{
    const struct disk_entries *e = &folder->entries[view];
    const size_t i = seek(e, name);
    return i < e->n ? e->entry[i].node : NULL;
}

static struct disk_node *take(struct disk_entries *e, const char *name)
{
    const size_t i = seek(e, name);
    if (i == e->n) return NULL;
    struct disk_node *node = e->entry[i].node;
    free(e->entry[i].name);
    e->entry[i] = e->entry[--e->n];
    return node;
}

static void set(struct disk_entries *e, const char *name, struct disk_node *node)
{
    (void)take(e, name);
    if (e->n == e->cap) {
        e->cap = e->cap ? 2 * e->cap : 8;
        e->entry = need(realloc(e->entry, e->cap * sizeof(*e->entry)));
    }
    e->entry[e->n++] = (struct disk_entry){.name = need(strdup(name)), .node = node};
}

static void clear(struct disk_entries *e)
{
    while (e->n)
        free(e->entry[--e->n].name);
}

/* ---- Operations on entries ---- */

enum op_kind { LINK, UNLINK, RENAME, EXCHANGE };

struct disk_op {
    struct disk_op *next;
    enum op_kind kind;
    struct disk_node *folder[2]; /* [1] NULL: one name only */
    char *name[2];               /* own */
    struct disk_node *node;      /* of a LINK */
    int chosen;
};

static void apply(const struct disk_op *op, enum disk_view view)
{
    struct disk_entries *a = &op->folder[0]->entries[view];
    struct disk_entries *b = op->folder[1] ? &op->folder[1]->entries[view] : NULL;
    if (op->kind == LINK) {
        set(a, op->name[0], op->node);
        return;
    }
    struct disk_node *first = take(a, op->name[0]);
    if (op->kind == UNLINK || !first) return;
    struct disk_node *second = take(b, op->name[1]);
    set(b, op->name[1], first);
    if (op->kind == EXCHANGE && second) set(a, op->name[0], second);
}

static void add(struct disk *d, struct disk_op op, const char *name, const char *other)
{
    struct disk_op *own = need(malloc(sizeof(*own)));
    *own = op;
    own->name[0] = need(strdup(name));
    own->name[1] = other ? need(strdup(other)) : NULL;
    *d->last = own;
    d->last = &own->next;
    apply(own, DISK_LIVE);
}

void disk_link(struct disk *d, struct disk_node *folder, const char *name, struct disk_node *node)
{
    add(d, (struct disk_op){.kind = LINK, .folder = {folder}, .node = node}, name, NULL);
}

void disk_unlink(struct disk *d, struct disk_node *folder, const char *name)
{
    add(d, (struct disk_op){.kind = UNLINK, .folder = {folder}}, name, NULL);
}

void disk_rename(struct disk *d, struct disk_node *from, const char *name, struct disk_node *to,
                 const char *new_name)
{
    add(d, (struct disk_op){.kind = RENAME, .folder = {from, to}}, name, new_name);
}

void disk_exchange(struct disk *d, struct disk_node *a, const char *name, struct disk_node *b,
                   const char *other)
{
    add(d, (struct disk_op){.kind = EXCHANGE, .folder = {a, b}}, name, other);
}

static int same_name(const struct disk_op *a, const struct disk_op *b)
{
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            if (a->name[i] && b->name[k] && a->folder[i] == b->folder[k] &&
                strcmp(a->name[i], b->name[k]) == 0)
                return 1;
    return 0;
}

/* Chooses those without which the chosen ones could not be: earlier ones on the same name. */
static void choose_causes(struct disk *d)
{
    int more = 1;
    while (more) {
        more = 0;
        for (struct disk_op *late = d->ops; late; late = late->next)
            for (struct disk_op *op = d->ops; late->chosen && op != late; op = op->next)
                if (!op->chosen && same_name(op, late)) op->chosen = more = 1;
    }
}

static void op_free(struct disk_op *op)
{
    free(op->name[0]);
    free(op->name[1]);
    free(op);
}

void disk_sync_folder(struct disk *d, struct disk_node *folder)
{
    for (struct disk_op *op = d->ops; op; op = op->next)
        op->chosen = (op->folder[1] ? op->folder[1] : op->folder[0]) == folder;
    choose_causes(d);
    struct disk_op **at = &d->ops;
    while (*at) {
        struct disk_op *op = *at;
        if (!op->chosen) {
            at = &op->next;
            continue;
        }
        apply(op, DISK_DURABLE);
        *at = op->next;
        op_free(op);
    }
    d->last = at;
}

/* ---- Changes of a file ---- */

enum change_kind { WRITE, RESIZE, GROW };

struct disk_change {
    struct disk_change *next;
    enum change_kind kind;
    int under_way;
    uint64_t offset; /* or the size */
    size_t bytes;
    unsigned char data[];
};

static struct disk_change *change_new(struct disk_node *file, enum change_kind kind,
                                      uint64_t offset, size_t bytes)
{
    struct disk_change *c = need(malloc(sizeof(*c) + bytes));
    *c = (struct disk_change){.kind = kind, .offset = offset, .bytes = bytes};
    *file->last = c;
    file->last = &c->next;
    return c;
}

static struct disk_change *write_new(struct disk_node *file, const struct iovec *pieces,
                                     int pieces_n, size_t bytes, uint64_t offset)
{
    struct disk_change *c = change_new(file, WRITE, offset, bytes);
    size_t at = 0;
    for (int i = 0; i < pieces_n && at < bytes; i++) {
        const size_t left = bytes - at;
        const size_t n = pieces[i].iov_len < left ? pieces[i].iov_len : left;
        memcpy(c->data + at, pieces[i].iov_base, n);
        at += n;
    }
    return c;
}

void disk_write(struct disk_node *file, const struct iovec *pieces, int pieces_n, size_t bytes,
                uint64_t offset)
{
    (void)write_new(file, pieces, pieces_n, bytes, offset);
}

void disk_begin_write(struct disk_node *file, const struct iovec *pieces, int pieces_n,
                      size_t bytes, uint64_t offset)
{
    write_new(file, pieces, pieces_n, bytes, offset)->under_way = 1;
}

void disk_end_write(struct disk_node *file, uint64_t offset, size_t bytes)
{
    struct disk_change *c = file->changes;
    while (c && (!c->under_way || c->offset != offset))
        c = c->next;
    if (!c) return;
    c->under_way = 0;
    c->bytes = bytes;
}

void disk_resize(struct disk_node *file, uint64_t size)
{
    (void)change_new(file, RESIZE, size, 0);
}

void disk_grow(struct disk_node *file, uint64_t size)
{
    (void)change_new(file, GROW, size, 0);
}

void disk_lose_file(struct disk_node *file)
{
    while (file->changes) {
        struct disk_change *c = file->changes;
        file->changes = c->next;
        free(c);
    }
    file->last = &file->changes;
}

void disk_replace(struct disk_node *file, const void *data, size_t bytes)
{
    const struct iovec piece = {.iov_base = (void *)data, .iov_len = bytes}; /* only read */
    disk_lose_file(file);
    disk_resize(file, bytes);
    disk_write(file, &piece, 1, bytes, 0);
}

/* Bytes that grow. */
struct content {
    unsigned char *data; /* own */
    size_t bytes;
};

static void resize(struct content *c, uint64_t size)
{
    const size_t bytes = (size_t)size;
    c->data = need(realloc(c->data, bytes + 1));
    if (bytes > c->bytes) memset(c->data + c->bytes, 0, bytes - c->bytes);
    c->bytes = bytes;
}

static void put(struct content *c, const unsigned char *data, size_t bytes, uint64_t offset)
{
    if (offset + bytes > c->bytes) resize(c, offset + bytes);
    memcpy(c->data + offset, data, bytes);
}

static void change(struct content *c, const struct disk_change *by)
{
    if (by->kind == WRITE)
        put(c, by->data, by->bytes, by->offset);
    else if (by->kind == RESIZE || by->offset > c->bytes)
        resize(c, by->offset);
}

void disk_sync_file(struct disk_node *file)
{
    struct content c = {.data = file->data, .bytes = file->bytes};
    struct disk_change **at = &file->changes, *by;
    while ((by = *at)) {
        if (by->under_way) {
            at = &by->next;
            continue;
        }
        change(&c, by);
        *at = by->next;
        free(by); /* it is in the data now */
    }
    file->last = at;
    file->data = c.data;
    file->bytes = c.bytes;
}

/* ---- What is found ---- */

/* Draws for one cut: with some seeds nearly all is found, with others nearly nothing. */
struct draws {
    uint64_t seed, i;
    unsigned found_of_8;
};

static struct draws draws_of(uint64_t choice, uint64_t salt)
{
    static const unsigned shares[] = {1, 4, 6, 7};
    const uint64_t seed = drps_rng_at(choice, salt);
    return (struct draws){.seed = seed, .found_of_8 = shares[drps_rng_at(choice, 0) % 4]};
}

static unsigned draw(struct draws *d, unsigned n)
{
    return (unsigned)(drps_rng_at(d->seed, d->i++) % n);
}

static int is_found(struct draws *d, uint64_t choice)
{
    if (choice == DISK_NOTHING || choice == DISK_EVERYTHING) return choice == DISK_EVERYTHING;
    return draw(d, 8) < d->found_of_8;
}

void disk_choose(struct disk *d, uint64_t choice)
{
    struct draws draws = draws_of(choice, 1);
    for (struct disk_node *node = d->all; node; node = node->next) {
        const struct disk_entries *durable = &node->entries[DISK_DURABLE];
        clear(&node->entries[DISK_FOUND]);
        for (size_t i = 0; i < durable->n; i++)
            set(&node->entries[DISK_FOUND], durable->entry[i].name, durable->entry[i].node);
    }
    for (struct disk_op *op = d->ops; op; op = op->next) {
        op->chosen = is_found(&draws, choice);
        for (struct disk_op *cause = d->ops; cause != op; cause = cause->next)
            if (!cause->chosen && same_name(cause, op)) op->chosen = 0;
        if (op->chosen) apply(op, DISK_FOUND);
    }
}

/* Some of the sectors; the file may be as long as with all of them. */
static void tear(struct content *c, const struct disk_change *by, struct draws *d)
{
    for (size_t at = 0, n; at < by->bytes; at += n) {
        n = SECTOR - (size_t)((by->offset + at) % SECTOR);
        if (n > by->bytes - at) n = by->bytes - at;
        if (draw(d, 2)) put(c, by->data + at, n, by->offset + at);
    }
    if (draw(d, 2) && c->bytes < by->offset + by->bytes) resize(c, by->offset + by->bytes);
}

unsigned char *disk_found_bytes(const struct disk_node *file, uint64_t choice, size_t *bytes_out)
{
    struct draws d = draws_of(choice, 2 + file->number);
    struct content c = {.data = need(malloc(file->bytes + 1)), .bytes = file->bytes};
    if (file->bytes) memcpy(c.data, file->data, file->bytes);
    for (const struct disk_change *by = file->changes; by; by = by->next) {
        const int whole = is_found(&d, choice);
        if (whole)
            change(&c, by);
        else if (choice != DISK_NOTHING && by->kind == WRITE && draw(&d, 2))
            tear(&c, by, &d);
    }
    *bytes_out = c.bytes;
    return c.data;
}

uint64_t disk_found_sum(const struct disk_node *folder, uint64_t choice)
{
    const struct disk_entries *found = &folder->entries[DISK_FOUND];
    uint64_t sum = found->n;
    for (size_t i = 0; i < found->n; i++) {
        const struct disk_entry *e = &found->entry[i];
        size_t bytes = 0;
        unsigned char *data = e->node->folder ? NULL : disk_found_bytes(e->node, choice, &bytes);
        const uint64_t content =
            data ? drps_checksum(data, bytes) : disk_found_sum(e->node, choice);
        sum += drps_mix64(content ^ drps_mix64(drps_checksum(e->name, strlen(e->name))));
        free(data);
    }
    return sum;
}

void disk_destroy(struct disk *d)
{
    while (d->ops) {
        struct disk_op *op = d->ops;
        d->ops = op->next;
        op_free(op);
    }
    while (d->all) {
        struct disk_node *node = d->all;
        d->all = node->next;
        disk_lose_file(node);
        for (int view = 0; view < DISK_VIEWS; view++) {
            clear(&node->entries[view]);
            free(node->entries[view].entry);
        }
        free(node->data);
        free(node);
    }
}
