# SPDX-License-Identifier: Apache-2.0
# Prints what the script $1 completes at the end of each command line.
source "$1"
while read -r line; do
  read -ra COMP_WORDS <<<"$line"
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _rota
  echo "$line: ${COMPREPLY[*]}"
done <<'END'
rota tr
rota help sched
rota train --mes
rota schedule zb
rota schedule --data
rota checkpoint v
rota machine show h100
rota compile --emit ker
rota compile --emit = ker
rota schedule --compare 1f1b,zbv,gp
rota train --data engl
rota train run
END
