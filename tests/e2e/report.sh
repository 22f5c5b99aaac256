#!/usr/bin/env bash
# drps-stat --html: the page is well-formed, stands alone, has the numbers of --json, and shows names as text, whatever they
# are; several models stand side by side; a run that was not finished shows what there is; mistakes are refused.
. "$(dirname "$0")/lib.sh"
stat=$tools/drps-stat
/usr/bin/python3 -c '' 2>/dev/null || skip "there is no /usr/bin/python3, which reads the page"

# shows PAGE FOLDER...: the page of these is written, and has their numbers.
shows() {
    local page=$1 folder n=0 json=()
    shift
    "$stat" --html "$page" "$@" --quiet || fail "no page of $*"
    for folder in "$@"; do
        n=$((n + 1))
        "$stat" --json "$folder" >"$n.json"
        json+=("$n.json")
    done
    /usr/bin/python3 "$source/tests/e2e/report.py" "$page" "${json[@]}" || fail "the page of $*"
}

"$tools/drps-gen" ctr --samples 20K --fields 20 --rows 200K --seed 3 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 16 --test-fraction 0.1 --batch-size 200 --memory 64M -o fm.plan --quiet
# Rows that do not all fit in memory: a plan with windows.
"$tools/drps-index" data.svm --algo fm --factors 300 --batch-size 200 --memory 64M -o wide.plan --quiet
train() { # MODEL OPTIONS...
    local model=$1
    shift
    "$tools/drps-train" fm.plan -o "$model" --epochs 4 --quiet "$@"
}
train resident.model --memory 256M
train relay.model --store relay --memory 42M
train file.model --store file --memory 42M --lr 0.02

shows resident.html resident.model
grep -q 'All rows stayed in memory' resident.html || fail "it does not say that nothing was read"
shows relay.html relay.model
shows file.html file.model
shows plan.html fm.plan
grep -q 'None: all rows fit in the memory of <code>drps-index</code>' plan.html || fail "it does not say that there are no windows"
shows wide.html wide.plan
! grep -q 'None: all rows fit' wide.html || fail "it does not show windows"
shows all.html resident.model relay.model file.model fm.plan
grep -q 'Side by side' all.html || fail "models are not compared"
! grep -q 'Side by side' relay.html || fail "one model is compared"
sed -n '/<caption>What differs/,/<\/table>/p' all.html >differs.html
for what in 'learning rate' 'store' 'memory' 'content of the model'; do
    grep -qF "<th role=\"rowheader\" data-name=\"\" scope=\"row\">$what</th>" differs.html || fail "it does not say that '$what' differs"
done
! grep -qF 'algorithm</th>' differs.html || fail "it says that the algorithm differs"

# Several ranks.
"$tools/drps-index" data.svm --algo lor --workers 2 --test-fraction 0.1 -o two.plan --quiet
"$tools/drps-train" two.plan --local 2 --transport inproc -o two.model --epochs 2 --quiet
shows two.html two.model two.plan
grep -q '0 to 1' two.html || fail "the links between ranks are not there"

# The same page for the same folder, also on standard output.
"$stat" --html - relay.model >out.html
cmp out.html relay.html || fail "standard output has another page"

# Names are text. They are columns, classes, folders and words of the command line.
hostile='<script>alert("1")</script>'
{
    echo "class,\"<script>alert(\"\"1\"\")</script>\",b'&amp;"
    for ((i = 0; i < 300; i++)); do echo "<b>$((i % 3))</b>&,$((i % 7)),v\"$((i % 5))"; done
} >hostile.csv
sed -i 's/v"\([0-9]\)/"v""\1"/' hostile.csv
mkdir "in<i>'&"
"$tools/drps-index" hostile.csv --label class --algo mlr --test-fraction 0.2 --separator , -o "in<i>'&/<plan>" --quiet
"$tools/drps-train" "in<i>'&/<plan>" -o "in<i>'&/<model>\"" --epochs 2 --quiet
"$tools/drps-train" "in<i>'&/<plan>" -o "in<i>'&/\" onload='alert(1)'><img>" --epochs 2 --lr 0.5 --quiet
shows hostile.html "in<i>'&/<model>\"" "in<i>'&/\" onload='alert(1)'><img>" "in<i>'&/<plan>"
! grep -qiE '<(script|b|i|img|plan|model)>' hostile.html || fail "a name has become markup"
grep -qF '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;' hostile.html || fail "the name $hostile is not there"
grep -qF '&lt;b&gt;2&lt;/b&gt;&amp;' hostile.html || fail "the classes are not there"

# A run that was not finished: its checkpoints, and the model of an older version.
train kept.model --memory 256M --keep-checkpoints
"$stat" --html kept.html kept.model.checkpoint --quiet
/usr/bin/python3 - kept.html <<'PYTHON' || fail "the page of checkpoints"
import sys, xml.etree.ElementTree as xml
root = xml.parse(sys.argv[1]).getroot()
rows = [t for t in root.iter("table") if t.find("caption").text == "Epochs"][0].find("tbody")
assert len(rows) == 4, len(rows)
assert "not finished" in "".join(root.itertext())
PYTHON
rm -r kept.model
fails 1 'kept.model: No such file.*has left kept.model.checkpoint' "$stat" --html kept2.html kept.model
cp -r "$source/tests/e2e/older" older
chmod -R u+w older
"$stat" --html older.html older/plan older/trained --quiet || fail "no page of an older plan"
/usr/bin/python3 -c 'import sys, xml.etree.ElementTree as x; x.parse(sys.argv[1])' older.html || fail "the page of an older plan"

# What of a plan cannot be read is told in the page.
cp -r wide.plan hurt.plan
truncate -s 100 hurt.plan/windows.rec
"$stat" --html hurt.html hurt.plan --quiet || fail "no page of a damaged plan"
grep -q 'Not shown:.*hurt.plan/windows.rec' hurt.html || fail "the page does not say what is damaged"

# Mistakes.
fails 1 'resident.html exists.*--force' "$stat" --html resident.html fm.plan
"$stat" --html resident.html fm.plan --force --quiet || fail "--force does not replace"
cmp resident.html plan.html || fail "--force has another page"
fails 2 'relay.model/page.html lies in the folder relay.model' "$stat" --html relay.model/page.html relay.model
fails 2 "one plan or model at a time: 'file.model' is too much" "$stat" relay.model file.model
fails 2 "6 folders at a time" "$stat" --html x.html a b c d e f g
fails 2 '--json and --html' "$stat" --html x.html --json fm.plan
fails 2 'questions of their own' "$stat" --html x.html --verify fm.plan
fails 2 '--epoch, --windows and --link' "$stat" --html x.html --epoch 1 relay.model
fails 1 'nowhere: No such file' "$stat" --html x.html nowhere
fails 1 'older is neither a plan nor a model' "$stat" --html x.html relay.model older
[[ ! -e x.html && ! -e x.html.partial ]] || fail "a page was written for a mistake"
echo "ok mistakes"

# In a browser: nothing is wider than a telephone, and the console is empty.
for view in "--width 320" "--width 800" "--width 1400 --dark"; do
    for page in all.html two.html hostile.html; do
        status=0
        # shellcheck disable=SC2086  # options
        "$source/scripts/browser.py" $page $view --check >browser.txt 2>&1 || status=$?
        if ((status == 77)); then
            echo "SKIPPED in part: $(cat browser.txt)"
            exit 77
        fi
        ((status == 0)) || fail "$page $view: $(cat browser.txt)"
    done
done
echo "ok in Chromium"
