/*
 * Avazu click log: csv with the header "id,click,hour,C1,banner_pos,...". The label is click, id is
 * left out, hour (YYMMDDHH) becomes the hour of day, "hour=00" to "hour=23", and all other columns
 * are categories.
 */
#include "index/reader/columns.h"

#include <errno.h>
#include <stdlib.h>

static int set_kinds(struct drps_columns *c, const char *file, struct drps_err *err)
{
    static const struct {
        const char *name;
        int kind;
    } known[] = {
        {"id", DRPS_COLUMN_IGNORE}, {"click", DRPS_COLUMN_LABEL}, {"hour", DRPS_COLUMN_HOUR}};

    for (size_t i = 0; i < c->n; i++)
        c->columns[i].kind = DRPS_COLUMN_CATEGORY;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct drps_column *column = drps_columns_find(c, known[i].name, strlen(known[i].name), 0);
        if (!column)
            return drps_err_set(err, DRPS_E_FORMAT,
                                "%s: the header has no column '%s': not avazu data", file,
                                known[i].name);
        column->kind = known[i].kind;
    }
    return 0;
}

static int avazu_open(struct drps_reader *r, const char *head, size_t n, struct drps_err *err)
{
    struct drps_columns *c = calloc(1, sizeof(*c));
    const char *file = r->chunks.in.name, *end = head + n;
    r->state = c;
    if (!c) return drps_err_set(err, -ENOMEM, "avazu reader");
    while (head < end && (*head == '\n' || *head == '\r' || drps_is_blank(*head)))
        head++;
    if (head == end) return 0; /* no lines at all */
    const char *feed = memchr(head, '\n', (size_t)(end - head));
    if (!feed) feed = end;
    if (feed[-1] == '\r') feed--; /* head is no '\r', so feed > head */
    c->known_kinds = 1;
    int rc = drps_columns_init(c, head, (size_t)(feed - head), ',', file, err);
    if (rc == 0) rc = set_kinds(c, file, err);
    return rc < 0 ? rc : drps_columns_finish(c, r, err);
}

const struct drps_format drps_format_avazu = {
    .name = "avazu",
    .has_names = 1,
    .has_fields = 1,
    .open = avazu_open,
    .close = drps_columns_close,
    .begin_file = drps_columns_begin_file,
    .bound = drps_columns_bound,
    .line = drps_columns_line,
};
