/* What the page shows: folders, each with the manifest that was found in it. Private to
 * tools/stat/html/. */
#ifndef DRPS_TOOLS_STAT_HTML_SUBJECT_H
#define DRPS_TOOLS_STAT_HTML_SUBJECT_H

#include <jansson.h>

#include "base/drps_io.h"
#include "tools/drps_folder_kind.h"

struct subject {
    const char *path; /* borrowed */
    const struct drps_log *log;
    const char *name; /* in it: the last part of the path, or all of it where two are alike */
    enum folder_kind kind;
    json_t *json;           /* own. Of checkpoints: made here, of the newest one of rank 0 */
    const json_t *training; /* in it; NULL: it is a plan */
    const char *plan_command, *command; /* in it; NULL: not known */
    unsigned style;                     /* of its lines, where several are compared */
};

/* Open and check what is in the folder; s->log is set. Errors are those of what it holds. */
DRPS_MUST_CHECK
int subject_open(const struct drps_io *io, const char *path, struct subject *s,
                 struct drps_err *err);
void subject_close(struct subject *s);

/* Its epochs, an array, or NULL. */
const json_t *subject_epochs(const struct subject *s);

#endif
