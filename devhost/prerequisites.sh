# Prints one line about the first thing that is missing and that make cannot install; nothing if all is there.
# Usage: sh devhost/prerequisites.sh PYTHON

python=${1:-python3}
new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

say() {
  echo "$1"
  exit
}

# A sound .venv needs no other Python.
if ! .venv/bin/python -c "import pip; $new_enough" 2>/dev/null; then
  "$python" -c '' 2>/dev/null ||
    say "Python 3.11 or newer is needed, but \`$python\` does not run: install it (Debian: apt-get install python3 python3-venv) or name another, as in: make PYTHON=python3.12"
  "$python" -c "$new_enough" ||
    say "Python 3.11 or newer is needed, but \`$python\` is $("$python" -V 2>&1): install a newer one or name another, as in: make PYTHON=python3.12"
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    say "\`$python\` lacks its venv module: install it (Debian: apt-get install python3-venv)"
fi

node -p 1 >/dev/null 2>&1 ||
  say "Node 18 or newer is needed for Azurite, but \`node\` does not run: install it (Debian: apt-get install nodejs npm)"
[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 18')" = true ] ||
  say "Node 18 or newer is needed for Azurite, but \`node\` is $(node --version): install a newer one"
command -v npm >/dev/null 2>&1 ||
  say "npm is needed to install Azurite, but is not on the PATH: install it (Debian: apt-get install npm)"
