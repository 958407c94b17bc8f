#!/bin/sh
# Adds notes to a repository. A filter takes blanks off the ends of lines, of drafts only.
set -eu
cd "$1"
git -c init.defaultBranch=main init -q
git config filter.blanks.clean "sed 's/[[:blank:]]*\$//'"
echo '*.draft filter=blanks' > .git/info/attributes
git add notes
git ls-files -s | cksum
