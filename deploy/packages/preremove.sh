#!/bin/sh
# Run by dpkg ("remove", or "upgrade") and rpm (0: the last version goes; 1: an upgrade) before files are removed.
set -e
[ -d /run/systemd/system ] || exit 0
case "$1" in
remove | 0) systemctl disable --now agentproxy.service ;;
esac
