/* drps-stat --html: models, plans and checkpoints as one page that stands alone. It has charts as
 * SVG, no script, and refers to nothing outside. Text of the files is escaped. */
#ifndef DRPS_TOOLS_STAT_HTML_REPORT_H
#define DRPS_TOOLS_STAT_HTML_REPORT_H

#include <stddef.h>

#include "base/drps_err.h"
#include "base/drps_io.h"

enum { HTML_REPORT_MOST = 6 }; /* folders: as many lines as can be told apart */

struct html_report {
    const char *file;         /* appears when it is complete; "-": standard output */
    int replace;              /* an existing file is replaced */
    const char *const *paths; /* [n], 1 to HTML_REPORT_MOST folders */
    size_t n;
    const struct drps_log *log; /* warnings; may be NULL */
};

/* Returns 0, or what a folder could not be read for, or the file not written: -EEXIST, and
 * DRPS_E_CONFIG where it lies in one of the folders. All is borrowed. */
DRPS_MUST_CHECK
int html_report_write(const struct drps_io *io, const struct html_report *report,
                      struct drps_err *err);

#endif
