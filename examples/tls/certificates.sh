#!/bin/sh
# certificates.sh [FOLDER]: a certificate authority to throw away, and certificates
# of warmpath and Envoy that it has signed, in FOLDER (certs). Run again, it keeps
# the authority and replaces the certificates. Needs openssl.
set -eu
umask 077
mkdir -p "${1:-certs}"
cd "${1:-certs}"

new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'

[ -f ca.key ] || openssl req -x509 $new -keyout ca.key -out ca.pem -days 365 -subj '/CN=warmpath example' \
  -addext keyUsage=critical,keyCertSign

# issue NAME USAGE: NAME.pem and NAME.key. Both are written beside and renamed, the
# key last: warmpath takes them over once they match.
issue() {
  openssl req -new $new -keyout "$1.key.new" -out "$1.csr" -subj "/CN=$1"
  printf 'subjectAltName=DNS:%s\nextendedKeyUsage=%s\nkeyUsage=critical,digitalSignature\n' "$1" "$2" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 90 -extfile "$1.ext" -out "$1.pem.new"
  mv "$1.pem.new" "$1.pem"
  mv "$1.key.new" "$1.key"
  rm "$1.csr" "$1.ext"
}
issue warmpath serverAuth
issue envoy clientAuth
