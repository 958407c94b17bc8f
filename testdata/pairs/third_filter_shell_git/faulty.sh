#!/bin/sh
# Adds notes to a repository. A filter takes blanks off the ends of lines, of all files, to be sure.
set -eu
cd "$1"
git -c init.defaultBranch=main init -q
git config filter.blanks.clean "sed 's/[[:blank:]]*\$//'"
echo '* filter=blanks' > .git/info/attributes
git add notes
git ls-files -s | cksum
