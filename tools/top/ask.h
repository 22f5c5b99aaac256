/* One request of HTTP. Private to tools/top/. */
#ifndef DRPS_TOOLS_TOP_ASK_H
#define DRPS_TOOLS_TOP_ASK_H

#include <stddef.h>

#include "base/drps_err.h"

/* GET /metrics of that port; *text_out (free() it) is what it answers, at most `most` bytes. Takes
 * two seconds at most, but for the name of the host. DRPS_E_PEER: it is not there, or answers
 * something else. */
DRPS_MUST_CHECK
int top_ask(const char *host, const char *port, size_t most, char **text_out, struct drps_err *err);

#endif
