#!/usr/bin/env bash
# "Reducing Redundant Communication", Figure 6: time of an epoch by what it is spent on, for text in mini-batches of 1000, as bars:
# r reduces (and sends directly), b broadcasts, c computes.
#   bench/papers/redundant-fig6.sh [--quick] [DATA]
# The paper's times are those of its Table III, and bars are to its, and to our, existing method. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redundant.sh"

# bar NAME REDUCE BROADCAST COMPUTE EXISTING: 60 letters are EXISTING seconds
bar() {
    awk -v name="$1" -v r="$2" -v b="$3" -v c="$4" -v all="$5" '
        function letters(letter, seconds,    text, i) {
            for (i = 0; i < int(60 * seconds / all + .5); i++) text = text letter
            return text
        }
        BEGIN { printf "%-26s %8.4f s  %s%s%s\n", name, r + b + c, letters("r", r), letters("b", b), letters("c", c) }'
}

bar "paper: existing" .397 .269 .0567 .7227
bar "paper: proposed" .356 .174 .0569 .7227
all=
for way in "${ways[@]}"; do
    name=$(part "$way" 1)
    if ! measure "$way" text 1000; then
        printf '%-26s not in this build\n' "ours: $name"
        continue
    fi
    read -r reduce broadcast compute < <(jq -r '"\(.reduce) \(.broadcast) \(.compute)"' "$work/way.json")
    all=${all:-$(awk "BEGIN { print $reduce + $broadcast + $compute }")}
    bar "ours: $name" "$reduce" "$broadcast" "$compute" "$all"
    record "paper-redundant-fig6|text, 1000|$name" "$(awk "BEGIN { printf \"%.4f\", $reduce + $broadcast + $compute }")" s
done
