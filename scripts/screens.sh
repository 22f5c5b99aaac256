#!/usr/bin/env bash
# Makes the pictures in docs/ of what drps draws, from real runs. Needs a build in build/, chromium and chromedriver.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
    cat <<'TEXT'
Usage: scripts/screens.sh [PICTURE...]

Without arguments all pictures are made:
  report   docs/report.png, docs/report-phone.png: a page of drps-stat --html
TEXT
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$tree/build/bin:$PATH

# report: the same model with memory for all of its rows and for a fifth of them; its upper part, and a telephone's.
report() {
    drps-gen ctr --samples 200K --fields 39 --rows 1M --interactions 4 --seed 1 -o clicks.libsvm --quiet
    drps-index clicks.libsvm --algo fm --factors 32 --test-fraction 0.1 --memory 256M -o clicks.plan --quiet
    drps-train clicks.plan -o much.model --epochs 5 --lr 0.002 --memory 512M --quiet
    drps-train clicks.plan -o little.model --epochs 5 --lr 0.002 --memory 48M --quiet
    drps-stat --html report.html much.model little.model clicks.plan --quiet
    "$tree/scripts/browser.py" report.html --width 1300 --height 1300 --png "$tree/docs/report.png"
    drps-stat --html phone.html little.model --quiet
    "$tree/scripts/browser.py" phone.html --width 320 --height 1250 --dark --png "$tree/docs/report-phone.png"
}

pictures=(report)
case ${1-} in
-h | --help)
    usage
    exit 0
    ;;
esac
if (($# == 0)); then set -- "${pictures[@]}"; fi
cd "$work"
for picture; do
    if [[ " ${pictures[*]} " != *" $picture "* ]]; then
        echo "screens.sh: no picture '$picture'" >&2
        usage >&2
        exit 2
    fi
    "$picture"
done
